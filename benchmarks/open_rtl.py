"""The open route: kernels measured a minute, two 16 × 16 arrays at their peak, area of products beside a known table.

It works in a cache folder of its own, so nothing is known before.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from benchmarks.registry import Figures, Value
from benchmarks.single_kernels.area import measure_area
from benchmarks.single_kernels.cycles import cycles_of
from benchmarks.single_kernels.measure import Measurement
from benchmarks.single_kernels.requests import prepare
from benchmarks.small_kernels import CLOCK, PLATFORM, alone, distinct_kernels, lowered, matrix_product
from benchmarks.systolic import elements, operands, systolic_array
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.profiling.open_rtl.run import simulate_rtl
from penstock.profiling.open_rtl.tools import find_yosys
from penstock.profiling.open_rtl.verilate import build
from penstock.profiling.protocol import ProfileRequest, ProfilingError
from penstock.profiling.tool_runner import ToolRunner

SIZE, SIDE = 16, 256
# LUT cells, flip-flops, DSPs and 18-kbit block RAMs of an earlier generator for the same products, on UltraScale+
KNOWN = {
    ((16, 32, 64), 1): (94, 151, 1, 1),
    ((16, 32, 64), 4): (166, 376, 4, 1),
    ((16, 32, 64), 16): (1508, 1386, 16, 0),
    ((16, 64, 256), 64): (1662, 4330, 64, 15),
}
# How each product is walked, by its lanes: tile and unroll of m, n and k
WALKS = {
    1: ((1, 1, 64), (1, 1, 1)),
    4: ((1, 32, 64), (1, 1, 4)),
    16: ((1, 32, 64), (1, 4, 4)),
    64: ((1, 64, 256), (1, 1, 64)),
}
WARM_UP = (2, 4, 4)


def run() -> Figures:
    with _own_cache():
        rate, rows = _kernels()
        systolic = _systolic()
        broadcast = _broadcast()
        areas = list(_areas())
    summary: dict[str, Value] = {
        "kernels_per_minute": rate,
        "systolic_pct_of_peak": systolic["pct_of_peak"],
        "broadcast_pct_of_peak": broadcast["pct_of_peak"],
        "areas_no_worse": sum(bool(row["no_worse"]) for row in areas if row["no_worse"] is not None),
        "areas_compared": sum(row["no_worse"] is not None for row in areas),
    }
    return Figures("open-rtl", [*rows, systolic, broadcast, *areas], summary)


@contextmanager
def _own_cache() -> Iterator[None]:
    before = os.environ.get("PENSTOCK_HOME")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        os.environ["PENSTOCK_HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["PENSTOCK_HOME"]
            else:
                os.environ["PENSTOCK_HOME"] = before


def _kernels() -> tuple[float, list[Mapping[str, Value]]]:
    """Cycles of many kernels, once and once again. What is built once a machine is built before."""
    requests = list(distinct_kernels())
    _sound(cycles_of([alone("warm up", lowered(matrix_product(*WARM_UP), (2, 4, 4), (1, 1, 1)))]))
    first = _pass("kernels", requests)
    return float(str(first["kernels_per_minute"])), [first, _pass("the same kernels again", requests)]


def _pass(what: str, requests: Sequence[ProfileRequest]) -> Mapping[str, Value]:
    cpu, began = _cpu_seconds(), time.monotonic()
    found = _sound(cycles_of(requests))
    seconds, cpu = time.monotonic() - began, _cpu_seconds() - cpu
    return {
        "what": what,
        "kernels": len(requests),
        "distinct": len({request.text for request in requests}),
        "seconds": round(seconds, 2),
        "kernels_per_minute": round(60 * len(requests) / seconds, 1),
        "measured_now": sum(one.built for one in found),
        "cache_hits": sum(not one.built for one in found),
        "verilate_and_compile_s": round(sum(one.build_s for one in found), 2),
        "run_s": round(sum(one.run_s for one in found), 2),
        "cpu_s_per_kernel": round(cpu / len(requests), 3),
        "values_checked": sum(one.values for one in found),
    }


def _sound(found: Sequence[Measurement | ProfilingError]) -> list[Measurement]:
    sound = [one for one in found if isinstance(one, Measurement)]
    if len(sound) < len(found):
        raise next(one for one in found if isinstance(one, ProfilingError))
    return sound


def _cpu_seconds() -> float:
    """Of this process and of all tools that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _systolic() -> Mapping[str, Value]:
    """256 elements that hand their operands on, as a network of tasks; the numbers are numpy's."""
    module = systolic_array(SIZE, (SIDE // SIZE) ** 2, SIDE)
    library = load_library(load_platform(PLATFORM).operators, CLOCK)
    design = emit_rtl(module, library, {}, tasks=elements(SIZE))
    rng = np.random.default_rng(7)
    left, right = (rng.integers(-128, 128, (SIDE, SIDE)).astype(np.int8) for _ in range(2))
    inputs, outputs = operands(left, right, SIZE)
    tools = ToolRunner()
    program = build(design, tools)
    run = simulate_rtl(design, inputs, program=program, tools=tools)
    wrong = [name for name, wanted in outputs.items() if not np.array_equal(run.outputs[name], wanted)]
    if wrong or run.latency is None:
        raise RuntimeError(f"the array computes other numbers than numpy: {wrong[:4]}")
    return _array_row(
        "systolic array: operands go from element to element, output stationary", run.latency,
        round(program.verilate_s + program.compile_s, 1), round(run.seconds, 1),
    )  # fmt: skip


def _broadcast() -> Mapping[str, Value]:
    """The compiler's own nest with 16 × 16 lanes, output stationary: operands are broadcast to all lanes."""
    module = lowered(matrix_product(SIDE, SIDE, SIDE), (SIZE, SIZE, SIDE), (SIZE, SIZE, 1))
    (found,) = _sound(cycles_of([alone("array", module)]))
    return _array_row(
        "array of one nest: operands are broadcast, output stationary", found.latency, round(found.build_s, 1),
        round(found.run_s, 1),
    )  # fmt: skip


def _array_row(what: str, cycles: int, build_s: float, run_s: float) -> Mapping[str, Value]:
    ideal = SIDE**3 // SIZE**2
    return {
        "what": what,
        "size": f"{SIZE}x{SIZE} int8",
        "product": f"{SIDE}x{SIDE}x{SIDE}",
        "cycles": cycles,
        "ideal_cycles": ideal,
        "pct_of_peak": round(100 * ideal / cycles, 3),
        "build_s": build_s,
        "run_s": run_s,
    }


def _areas() -> Iterator[Mapping[str, Value]]:
    find_yosys()
    for (shape, lanes), known in KNOWN.items():
        m, n, k = shape
        module = lowered(matrix_product(m, n, k), *WALKS[lanes])
        kernel = prepare(alone("area", module))
        (found,) = _sound(cycles_of([alone("area", module)]))
        for family in ("xcup", "ecp5"):
            area = measure_area(kernel.design, family)
            have = (area.logic_lut, area.resources.ff, area.resources.dsp, area.resources.bram18)
            row: dict[str, Value] = {
                "what": f"product {m}x{n}x{k} int8, U={lanes}",
                "unroll": "x".join(map(str, WALKS[lanes][1])),
                "family": family,
                "cycles": found.latency,
                "ideal_cycles": m * n * k // lanes,
                "lut_cells": area.logic_lut,
                **area.resources.as_dict(),
                "synthesis_s": round(area.seconds, 1),
                "known_lut_ff_dsp_bram18": "/".join(map(str, known)) if family == "xcup" else None,
                "no_worse": all(a <= b for a, b in zip(have, known, strict=True)) if family == "xcup" else None,
            }
            yield row
