"""Pins and clock of a board as a Lattice preference file."""

from __future__ import annotations

from penstock.compiler.platforms import Board


def preferences(board: Board) -> str:
    """The LPF text. Only the oscillator has a frequency: that of a PLL's output follows from its dividers."""
    lines = [f"# {board.name}, {board.part}", "BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;"]
    lines.append(f'FREQUENCY PORT "clock" {board.oscillator_mhz:g} MHZ;')
    for pin in board.pins:
        port = f"leds[{pin.signal[3:]}]" if pin.signal.startswith("led") else pin.signal
        lines.append(f'LOCATE COMP "{port}" SITE "{pin.site}";')
        lines.append(f'IOBUF PORT "{port}" IO_TYPE={pin.io_type} PULLMODE={pin.pull};')
    return "\n".join(lines) + "\n"
