"""What of a synthesised board is the core and what its shell, by the instance that each cell of the netlist is of.

Synthesis dissolves modules but names a cell after the signal that it drives, with the instances above it. Logic that
both share counts where that signal is. What placing adds to carry signals through is in neither.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from penstock.compiler.platforms import Resources
from penstock.profiling.open_rtl.cells import resources_of

CORE = "core."
"""How the core's instance is called in a board's top."""

_CELL = re.compile(r"  (?P<kind>[A-Z][A-Z0-9_]*) (?:#\($|\\?(?P<name>\S+)\s+\($)")
_NAME = re.compile(r"  \) \\?(?P<name>\S+)\s+\($")


@dataclass(frozen=True)
class Parts:
    core: Resources
    shell: Resources


def parts_of(netlist: str) -> Parts:
    """Of a netlist as yosys writes it in Verilog."""
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    kind = ""
    for line in netlist.splitlines():
        cell, end = _CELL.match(line), _NAME.match(line) if kind else None
        if cell is not None and cell["name"] is None:
            kind = cell["kind"]  # its parameters come first, its name on the line that closes them
            continue
        if cell is not None:
            counts[cell["name"].startswith(CORE)][cell["kind"]] += 1
        elif end is not None:
            counts[end["name"].startswith(CORE)][kind] += 1
            kind = ""
    shell, core = counts
    return Parts(resources_of(core), resources_of(shell))
