"""LUTs, flip-flops, multipliers and block RAMs of a core, by synthesis with yosys; kept by structural shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from benchmarks.single_kernels.shape import structural_key
from penstock.compiler.backend.rtl.design import RtlDesign
from penstock.compiler.evidence import Evidence
from penstock.compiler.platforms import Resources
from penstock.profiling.cache import CacheStore, content_key, runs_folder
from penstock.profiling.open_rtl.cells import BRAM_CELLS, DSP_CELLS, FF_CELLS, LUT_CELLS, URAM_CELLS, resources_of
from penstock.profiling.open_rtl.failures import failed
from penstock.profiling.open_rtl.tools import Tool, find_yosys
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolRunner, clean_environment
from penstock.profiling.work_folder import private_folder

Synthesis = Literal["ecp5", "xcup"]
SYNTHESIS: dict[Synthesis, str] = {
    "ecp5": "synth_ecp5 -top {top}",
    "xcup": "synth_xilinx -family xcup -flatten -noiopad -top {top}",
}
REVISION = 1
"""Raise it when cells are counted in another way."""

# They hold no logic: wider LUTs' multiplexers, carry chains, buffers, constants.
FREE_CELLS = frozenset(
    ("PFUMX", "L6MUX21", "MUXF7", "MUXF8", "MUXF9", "CARRY4", "CARRY8", "BUFG", "GND", "VCC", "INV", "$scopeinfo")
)


@dataclass(frozen=True)
class Area:
    """What synthesis found. `logic_lut` is without carry chains and memories: LUT cells alone."""

    resources: Resources
    logic_lut: int
    cells: Mapping[str, int]
    family: Synthesis
    seconds: float
    cached: bool = False
    evidence: Evidence = "open-rtl"


def measure_area(
    design: RtlDesign, family: Synthesis, tools: ToolRunner | None = None, *, timeout: float = 1800.0
) -> Area:
    """Synthesise the core by itself. A core of the same shape that was measured before is not measured again."""
    yosys = find_yosys()
    key = content_key("area", REVISION, structural_key(design), family, yosys.version, SYNTHESIS[family])
    store = CacheStore("areas", keep=20_000)
    with store.making(key):
        document = store.read(key)
        if isinstance(document, dict):
            return _area(document["cells"], family, document["seconds"], cached=True)
        cells, seconds = _synthesise(design, SYNTHESIS[family], yosys, tools or ToolRunner(), timeout)
        area = _area(cells, family, seconds)
        store.write(key, {"cells": cells, "seconds": seconds, "resources": asdict(area.resources)})
    return area


def _synthesise(
    design: RtlDesign, synthesis: str, yosys: Tool, tools: ToolRunner, timeout: float
) -> tuple[dict[str, int], float]:
    with private_folder(runs_folder()) as folder:
        design.write(folder)
        reads = [f"read_verilog -sv -defer {name}" for name in design.files]
        (folder / "synth.ys").write_text(
            "\n".join([*reads, synthesis.format(top=design.top), "tee -o cells.json stat -json"]) + "\n"
        )
        env = clean_environment(**yosys.env)
        result = tools.run(
            ToolCommand((*yosys.argv, "-q", "-s", "synth.ys"), folder, folder / "logs", env, timeout=timeout)
        )
        try:  # YoWASP's exit codes are not to be trusted: what counts is the file
            document = json.loads((folder / "cells.json").read_text())
            cells = document["design"]["num_cells_by_type"]
        except (OSError, ValueError, KeyError) as error:
            if not result.ok:
                raise failed(
                    "yosys", result, "see the end of its log; the SystemVerilog may be more than it reads"
                ) from error
            raise ProfilingError(
                "report-missing", what="yosys left no count of cells", where=design.top,
                hint="see the end of its log", log_tail=result.tail,
            ) from error  # fmt: skip
        return {str(name): int(count) for name, count in cells.items()}, result.seconds


def _area(cells: Mapping[str, int], family: Synthesis, seconds: float, *, cached: bool = False) -> Area:
    unknown = sorted(name for name in cells if not _counted(name))
    if unknown:
        raise ProfilingError(
            "report-unreadable", what=f"yosys counts cells that nobody knows: {', '.join(unknown)}", where="yosys",
            hint="this version of yosys maps to other cells; use the one of constraints.txt",
        )  # fmt: skip
    logic = sum(count for name, count in cells.items() if name.startswith("LUT"))
    return Area(resources_of(cells), logic, dict(cells), family, seconds, cached)


def _counted(name: str) -> bool:
    return name in {*LUT_CELLS, *FF_CELLS, *DSP_CELLS, *BRAM_CELLS, *URAM_CELLS, *FREE_CELLS}
