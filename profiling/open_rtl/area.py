"""LUTs, flip-flops, multipliers and block RAMs of a core, by synthesis with yosys; kept by structural shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from penstock.compiler.backend.rtl.design import RtlDesign
from penstock.compiler.evidence import Evidence
from penstock.compiler.platforms import Resources
from penstock.compiler.platforms.families import Synthesis
from penstock.profiling.cache import CacheStore, content_key, runs_folder
from penstock.profiling.open_rtl.failures import failed
from penstock.profiling.open_rtl.shape import structural_key
from penstock.profiling.open_rtl.tools import Tool, find_yosys
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolRunner, clean_environment
from penstock.profiling.work_folder import private_folder

SYNTHESIS: dict[Synthesis, str] = {
    "ecp5": "synth_ecp5 -top {top}",
    "xcup": "synth_xilinx -family xcup -flatten -noiopad -top {top}",
}
REVISION = 1
"""Raise it when cells are counted in another way."""

# What a cell takes. Carry chains: CCU2C sits in the two LUTs of a slice, CARRY4 and CARRY8 have no LUTs of their own.
# Memories in LUTs count as the LUTs that they occupy (TRELLIS_DPR16X4: four, and two for its write side).
LUT_CELLS: dict[str, int] = {
    "LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6,
    **{f"LUT{n}": 1 for n in (1, 2, 3, 5, 6)}, "INV": 0,
    "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1,
    "RAM16X1S": 1, "RAM16X1D": 2, "RAM32X1S": 1, "RAM32X1D": 2, "RAM64X1S": 1, "RAM64X1D": 2, "RAM128X1S": 2,
    "RAM128X1D": 4, "RAM256X1S": 4, "RAM256X1D": 8, "RAM512X1S": 8,
    "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8,
}  # fmt: skip
FF_CELLS = ("TRELLIS_FF", "FDRE", "FDSE", "FDCE", "FDPE")
DSP_CELLS = ("MULT18X18D", "MULT9X9D", "DSP48E2", "DSP48E1")
BRAM_CELLS = {"DP16KD": 1, "PDPW16KD": 1, "RAMB18E1": 1, "RAMB18E2": 1, "RAMB36E1": 2, "RAMB36E2": 2}
URAM_CELLS = ("URAM288", "URAM288_BASE")
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


def resources_of(cells: Mapping[str, int]) -> Resources:
    """What so many cells of each kind take."""
    return Resources(
        lut=sum(count * LUT_CELLS.get(name, 0) for name, count in cells.items()),
        ff=sum(cells.get(name, 0) for name in FF_CELLS),
        dsp=sum(cells.get(name, 0) for name in DSP_CELLS),
        bram18=sum(count * BRAM_CELLS.get(name, 0) for name, count in cells.items()),
        uram=sum(cells.get(name, 0) for name in URAM_CELLS),
    )


def _counted(name: str) -> bool:
    return name in {*LUT_CELLS, *FF_CELLS, *DSP_CELLS, *BRAM_CELLS, *URAM_CELLS, *FREE_CELLS}
