"""Task programs: equal to NumPy at two levels, how near a systolic array comes to its peak, how fast they are read.

The array is the one of examples/tasks: words enter at its corner, pass along its edges, sums leave down its columns.
Its peak is one product an element a cycle; the share is of a whole run, with feeds, skew and drains. One run of it is
SystemVerilog in Verilator. Lines are those that say something, of a program and of the C++ of its tasks; a body written
by hand is neither, and counted by itself (`body_lines`). Products and attention on the description of an NPU (`npu.py`)
are planned from tile programs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import npu
from benchmarks.registry import Figures, Value
from benchmarks.task_answers import ANSWERS, EXAMPLES
from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.blocks_beside import with_blocks
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.emit import emit_code
from penstock.compiler.pipeline.verify import compare, make_inputs, verify_rtl
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.compiler.tasks.check import check
from penstock.compiler.tasks.mapping.apply import elements
from penstock.compiler.tasks.network import read_network
from penstock.compiler.tasks.opened import open_network
from penstock.compiler.tasks.source import ProgramText
from penstock.dse.evaluation.assemble_tasks import TaskAssembler
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.simulated import simulate_design

BOARD, CLOCK_MHZ, DEPTH = "u280", 300.0, 64
ELEMENTS = 16
CUBES = ((16, 64), (16, 128), (16, 256), (16, 512), (16, 1024), (32, 512), (32, 1024))
"""Elements along an edge, and the size of the product."""
IN_VERILATOR, OPEN_BOARD, OPEN_DEPTH = 64, "ecp5-85k", 16
CHECKED = {256: (1, 63), 4096: (45, 44)}
"""Rows and columns of the array that has so many instances: elements, drains, edges, what gathers, loads and stores."""
SHORTER = "chain(element, drain)"
SHARDS, SHARE = 256, 16
IN_TURN = ("chain(score, softmax)", "chain(score_softmax, gather)")
"""Attention's tasks on one element, one after the other, as kernels that are called one by one."""
TOLERANCE = 1e-4
PAPER_LINES = {"hierarchical_gemm": 8, "attention": 44, "ffn": 14}
"""Of Dato's programs (its table 2), whose products of tiles are library kernels; its feed-forward is the two
projections that ours has too, and not the third."""


def run(only: str = "") -> Figures:
    rows: list[Mapping[str, Value]] = [_program(name) for name in ANSWERS if only in name]
    rows += [_array(edge, size) for edge, size in CUBES if only in _name(edge, size)]
    rows += [_in_verilator()] if only in "verilator" else []
    rows += [_checked(count) for count in CHECKED if only in _checked_name(count)]
    rows += _attention() if only in "attention" else []
    rows += [_mapped()] if only in "map" else []
    rows += npu.rows(only)
    of_cpp = [share for row in rows if isinstance(share := row.get("pct_of_cpp"), float)]
    used = [share for row in rows if isinstance(share := row.get("utilisation_pct"), float)]
    shares = {row["name"]: row["pct_of_peak"] for row in rows if "pct_of_peak" in row}
    seconds = {row["name"]: row["seconds"] for row in rows if "seconds" in row}
    summary: dict[str, Value] = {
        "systolic_pct_of_peak": shares.get(_name(ELEMENTS, 512)),
        "gemm_utilisation_pct": max(used, default=None),
        "attention_speedup_vs_unmapped": next((row["speedup"] for row in rows if "speedup" in row), None),
        "check_4096_s": seconds.get(_checked_name(4096)),
        "programs_equal": sum(row.get("equal") is True for row in rows if "lines" in row),
        "most_pct_of_cpp_lines": max(of_cpp, default=None),
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
    path = EXAMPLES / f"{name}.py"
    whole = with_blocks(path, path.read_text())
    bodies = [one.body.text for one in read_network(ProgramText(name, whole)).program.bodies]
    text = path.read_text().partition('"""\n')[2]
    for body in bodies:
        text = text.replace(body, "")
    lines = _lines(text, "#")
    with TemporaryDirectory(prefix="penstock-bench-") as folder:
        emit_code(lowered, Path(folder), part="", clock_mhz=CLOCK_MHZ)
        cpp = _lines((Path(folder) / "hls" / "penstock_top.cpp").read_text(), "//")
    more = {"paper_lines": PAPER_LINES[name]} if name in PAPER_LINES else {}
    more |= {"body_lines": sum(_lines(body, "//") for body in bodies)} if bodies else {}
    return {
        "name": name, "instances": len(lowered.tasks), "equal": equal, "lines": lines, "cpp_lines": cpp,
        "pct_of_cpp": round(100 * lines / cpp, 1), **more,
    }  # fmt: skip


def _lines(text: str, comment: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(comment))


def _name(edge: int, size: int) -> str:
    return f"array {edge}x{edge} on {size}^3"


def _systolic(edge: int, size: int) -> Program:
    options = {"P": edge, "Q": edge, "M": size, "N": size, "K": size}
    return import_model(str(EXAMPLES / "systolic.py") + "?" + "&".join(f"{k}={v}" for k, v in options.items()))


def _array(edge: int, size: int) -> dict[str, Value]:
    begun = time.monotonic()
    platform = load_platform(BOARD)
    assembler = TaskAssembler(_systolic(edge, size), platform, CLOCK_MHZ)
    network = assembler.network(Design(BOARD, CLOCK_MHZ, {}))
    found = simulate_design(network.with_depths(dict.fromkeys(network.channels, DEPTH)), platform, CLOCK_MHZ)
    peak = size**3 / edge**2
    return {
        "name": _name(edge, size), "instances": len(network.tasks), "cycles": found.latency,
        "pct_of_peak": round(100 * peak / found.latency, 2), "seconds": round(time.monotonic() - begun, 2),
    }  # fmt: skip


def _in_verilator() -> dict[str, Value]:
    """The array as SystemVerilog: its answer, and its cycles beside those that are simulated."""
    program, platform = _systolic(ELEMENTS, IN_VERILATOR), load_platform(OPEN_BOARD)
    plain = Design(OPEN_BOARD, platform.clock_mhz, {})
    assembler = TaskAssembler(program, platform, platform.clock_mhz)
    channels = assembler.network(plain).channels
    lowered = lower(program, replace(plain, fifo_depths=dict.fromkeys(channels, OPEN_DEPTH)))
    inputs = make_inputs(lowered, random_sets=1)
    core = WholeCore.of(lowered, platform)
    equal = verify_rtl(lowered, core.answers(inputs), inputs).equal
    measured = core.run(inputs[0]).latency
    assert measured is not None, "a run whose answers are equal has come to its end"
    simulated = simulate_design(assembler.network(lowered.design), platform, platform.clock_mhz).latency
    share = round(100 * IN_VERILATOR**3 / ELEMENTS**2 / measured, 2)
    return {
        "name": f"verilator {_name(ELEMENTS, IN_VERILATOR)}", "instances": len(lowered.tasks), "cycles": simulated,
        "open_rtl_cycles": measured, "equal": equal, "pct_of_peak": share,
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


def _checked_name(instances: int) -> str:
    return f"check and map {instances} instances"


def _checked(instances: int) -> dict[str, Value]:
    """A text is read and checked, and each element put together with its drain, by the clock and by the processor."""
    rows, columns = CHECKED[instances]
    options = {"P": rows, "Q": columns, "M": rows, "N": columns, "K": rows}
    source = ProgramText("systolic.py", (EXAMPLES / "systolic.py").read_text())
    begun, worked = time.monotonic(), time.process_time()
    network = read_network(source, options={name: str(value) for name, value in options.items()})
    check(network)
    made = elements(network, (SHORTER,))
    return {
        "name": _checked_name(instances), "instances": len(network.instances), "elements": len(made.instances),
        "seconds": round(time.monotonic() - begun, 3), "processor_seconds": round(time.process_time() - worked, 3),
    }  # fmt: skip
