"""The `bitstream/` folder of a package: a board's design, what simulates it, and the bitstream where there is one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from penstock.compiler.backend.rtl.shell import BoardDesign

FOLDER = "bitstream"
XCLBIN = ".xclbin"
SIMULATION = files("penstock.compiler.backend.rtl.shell").joinpath("simulation")


@dataclass(frozen=True)
class ChipUsage:
    """One resource of the chip after placement, in the tool's words: DP16KD, MULT18X18D, TRELLIS_COMB."""

    resource: str
    used: int
    available: int


@dataclass(frozen=True)
class Bitstream:
    """What place and route made of a board's design; its figures are `implemented`."""

    bit: bytes = field(repr=False)
    config: str = field(repr=False)
    netlist: str = field(repr=False)
    """The synthesised chip as Verilog: cells and nothing else."""
    fmax_mhz: float
    clock_mhz: float
    seed: int
    usage: tuple[ChipUsage, ...]
    tools: tuple[tuple[str, str], ...]
    evidence: str = "implemented"

    def report(self) -> dict[str, Any]:
        """The figures, as they stand in board.json."""
        return {
            "evidence": self.evidence,
            "clock_mhz": self.clock_mhz,
            "fmax_mhz": self.fmax_mhz,
            "seed": self.seed,
            "utilisation": {u.resource: {"used": u.used, "available": u.available} for u in self.usage},
            "tools": dict(self.tools),
        }


def xclbin_path(top: str) -> str:
    """Where the bitstream of a Vitis platform lies in a package: its host looks for the top's name."""
    return f"{FOLDER}/{top}{XCLBIN}"


def bitstream_files(design: BoardDesign, made: Bitstream | None) -> dict[str, bytes]:
    """Every file of the folder but its README, by its path in the package.

    Without a bitstream the board can still be simulated.
    """
    rtl = {f"rtl/{name}": text.encode() for name, text in {**design.rtl.files, **design.rtl.data}.items()}
    simulation = {
        f"simulation/{name}": SIMULATION.joinpath(name).read_bytes() for name in ("board.cpp", "ecp5_cells.sv")
    }
    contents = {**rtl, **simulation, f"{design.board.name}.lpf": design.constraints.encode()}
    if made is not None:
        contents[f"{design.board.name}.bit"] = made.bit
        contents[f"{design.board.name}.config"] = made.config.encode()
        contents["netlist.v"] = made.netlist.encode()
    contents["board.json"] = (json.dumps(board_document(design, made), indent=1) + "\n").encode()
    return {f"{FOLDER}/{name}": data for name, data in sorted(contents.items())}


def board_document(design: BoardDesign, made: Bitstream | None) -> Mapping[str, Any]:
    """board.json: what the host runtime needs to know of the board. Paths are below the folder."""
    board = design.board
    bit = f"{board.name}.bit"
    return {
        "schema": 1,
        "board": board.name,
        "part": board.part,
        "clock_mhz": design.clock_mhz,
        "baud": design.baud,
        "leds_active_low": board.leds_active_low,
        "reset_active_low": board.reset_active_low,
        "digest": design.digest,
        "top": design.rtl.top,
        "ports": [
            {
                "index": port.index,
                "argument": port.argument,
                "direction": port.direction,
                "element": port.element,
                "word_bits": port.word_bits,
                "word_bytes": port.word_bytes,
                "words": port.words,
            }
            for port in design.host_ports
        ],
        "sources": ["simulation/ecp5_cells.sv", *(f"rtl/{name}" for name in design.rtl.files)],
        "netlist_sources": ["simulation/ecp5_cells.sv", "netlist.v"] if made else [],
        "bitstream": bit if made else None,
        "load": [command.format(bitstream=f"{FOLDER}/{bit}") for command in board.load] if made else [],
        "report": made.report() if made else None,
    }
