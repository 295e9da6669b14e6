"""Task programs: equal to NumPy at two levels, how near a systolic array comes to its peak, how fast they are read.

The array is the one of examples/tasks: words enter at its corner, pass along its edges, sums leave down its columns.
Its peak is one product an element a cycle; the share is of a whole run, with feeds, skew and drains. Products and
attention on the description of an NPU (`npu.py`) are planned from tile programs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from benchmarks import npu
from benchmarks.registry import Figures, Value
from benchmarks.task_answers import ANSWERS, EXAMPLES
from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import compare, make_inputs
from penstock.compiler.platforms import load_platform
from penstock.compiler.tasks.check import check
from penstock.compiler.tasks.mapping.apply import elements
from penstock.compiler.tasks.network import read_network
from penstock.compiler.tasks.opened import open_network
from penstock.compiler.tasks.source import ProgramText
from penstock.dse.evaluation.assemble_tasks import TaskAssembler
from penstock.profiling.simulated import simulate_design

BOARD, CLOCK_MHZ, DEPTH = "u280", 300.0, 64
ELEMENTS, CUBES = 16, (64, 128, 256, 512)
GRIDS = (8, 16, 45)
SHARDS, SHARE = 256, 16
IN_TURN = ("chain(score, softmax)", "chain(score_softmax, gather)")
"""Attention's tasks on one element, one after the other, as kernels that are called one by one."""
TOLERANCE = 1e-4


def run(only: str = "") -> Figures:
    rows: list[Mapping[str, Value]] = [_program(name) for name in ANSWERS if only in name]
    rows += [_array(size) for size in CUBES if only in "array"]
    rows += [_checked(size) for size in GRIDS if only in "check"]
    rows += _attention() if only in "attention" else []
    rows += [_mapped()] if only in "map" else []
    rows += npu.rows(only)
    used = [share for row in rows if isinstance(share := row.get("utilisation_pct"), float)]
    shares = {row["name"]: row["pct_of_peak"] for row in rows if "pct_of_peak" in row}
    seconds = {row["name"]: row["seconds"] for row in rows if str(row["name"]).startswith("check")}
    summary: dict[str, Value] = {
        "systolic_pct_of_peak": shares.get(_name(max(CUBES))),
        "gemm_utilisation_pct": max(used, default=None),
        "attention_speedup_vs_unmapped": next((row["speedup"] for row in rows if "speedup" in row), None),
        "check_4096_s": seconds.get(f"check {max(GRIDS)}x{max(GRIDS)}"),
        "programs_equal": sum(row.get("equal") is True for row in rows),
    }
    return Figures("simulated", rows, summary)


def _program(name: str) -> dict[str, Value]:
    """Whether text and streams answer as NumPy does, on three sets of inputs."""
    program = import_model(str(EXAMPLES / f"{name}.py"))
    lowered = lower(program, Design(BOARD, CLOCK_MHZ, {}))
    equal = True
    for inputs in make_inputs(lowered):
        named = {port.name: value for port, value in zip(program.signature.inputs, inputs, strict=True)}
        wanted = [np.asarray(ANSWERS[name](named))]
        tolerance = TOLERANCE if program.signature.outputs[0].dtype == "float32" else 0.0
        equal &= compare("tasks", "NumPy", lowered.run_itensor(inputs), wanted, tolerance).equal
        equal &= compare("stream", "NumPy", lowered.run_stream(inputs), wanted, tolerance).equal
    return {"name": name, "instances": len(lowered.tasks), "equal": equal, "lines": _lines(name)}


def _lines(name: str) -> int:
    """Lines of the program that say something."""
    text = (EXAMPLES / f"{name}.py").read_text().partition('"""\n')[2]
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))


def _name(size: int) -> str:
    return f"array {ELEMENTS}x{ELEMENTS} on {size}^3"


def _array(size: int) -> dict[str, Value]:
    options = {"P": ELEMENTS, "Q": ELEMENTS, "M": size, "N": size, "K": size}
    reference = str(EXAMPLES / "systolic.py") + "?" + "&".join(f"{k}={v}" for k, v in options.items())
    begun = time.monotonic()
    platform = load_platform(BOARD)
    assembler = TaskAssembler(import_model(reference), platform, CLOCK_MHZ)
    network = assembler.network(Design(BOARD, CLOCK_MHZ, {}))
    found = simulate_design(network.with_depths(dict.fromkeys(network.channels, DEPTH)), platform, CLOCK_MHZ)
    peak = size**3 / ELEMENTS**2
    return {
        "name": _name(size), "instances": len(network.tasks), "cycles": found.latency,
        "pct_of_peak": round(100 * peak / found.latency, 2), "seconds": round(time.monotonic() - begun, 2),
    }  # fmt: skip


def _attention() -> list[Mapping[str, Value]]:
    """Three tasks side by side on three elements, and on one in turn."""
    platform = load_platform(BOARD)
    assembler = TaskAssembler(import_model(f"{EXAMPLES / 'attention.py'}?L=16&D=8"), platform, CLOCK_MHZ)
    rows: list[Mapping[str, Value]] = []
    for mapping in (IN_TURN, ()):
        network = assembler.network(Design(BOARD, CLOCK_MHZ, {}, mapping=mapping))
        deep = network.with_depths(dict.fromkeys(network.channels, DEPTH))
        cycles = simulate_design(deep, platform, CLOCK_MHZ).latency
        row = {"name": f"attention on {len(network.tasks)} elements", "instances": 3, "cycles": cycles}
        rows.append(row if not rows else {**row, "speedup": round(int(str(rows[0]["cycles"])) / cycles, 2)})
    return rows


def _mapped() -> dict[str, Value]:
    """Shards that are loaded, worked on and stored, each by an instance, on elements of so many."""
    options = (("N", str(4 * SHARDS)), ("SHARDS", str(SHARDS)), ("SHARE", str(SHARE)))
    begun = time.process_time()
    network = open_network("shared_elements.py", (EXAMPLES / "shared_elements.py").read_text(), "", options)
    made = elements(network, ())
    seconds = round(time.process_time() - begun, 3)
    name = f"map {len(network.instances)} instances onto {len(made.instances)} elements"
    return {"name": name, "instances": len(network.instances), "seconds": seconds}


def _checked(size: int) -> dict[str, Value]:
    """Elements, drains, edges, gathering, loads and stores of an array, read and checked."""
    options = {name: str(size) for name in ("P", "Q", "M", "N", "K")}
    source = ProgramText("systolic.py", (EXAMPLES / "systolic.py").read_text())
    begun = time.monotonic()
    network = read_network(source, options=options)
    check(network)
    seconds = round(time.monotonic() - begun, 3)
    return {"name": f"check {size}x{size}", "instances": len(network.instances), "seconds": seconds}
