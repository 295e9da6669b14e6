"""Pins and clock of a board as a Lattice preference file, and a part number in the words of nextpnr."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compiler.errors import PenstockError
from compiler.platforms import Board

_PART = re.compile(r"LFE5(?P<family>U|UM|UM5G)-(?P<size>\d+)F-(?P<speed>[678])BG(?P<balls>\d+)[CI]")


@dataclass(frozen=True)
class Device:
    """An ECP5 as nextpnr-ecp5 wants it: `--85k --package CABGA381 --speed 6`."""

    option: str
    package: str
    speed: str

    def options(self) -> tuple[str, ...]:
        return (f"--{self.option}", "--package", self.package, "--speed", self.speed)


def device_of(part: str) -> Device:
    """The device behind a part number, or an error if it is no ECP5."""
    match = _PART.fullmatch(part)
    if match is None:
        raise PenstockError(
            code="no-bitstream-for-part", what=f"no bitstream can be made for part {part!r}",
            limit="the open place-and-route knows Lattice ECP5 (LFE5U, LFE5UM, LFE5UM5G)",
            hint="choose a platform with a [board], for instance ulx3s-85f",
        )  # fmt: skip
    family = {"U": "", "UM": "um-", "UM5G": "um5g-"}[match["family"]]
    return Device(f"{family}{match['size']}k", f"CABGA{match['balls']}", match["speed"])


def preferences(board: Board) -> str:
    """The LPF text. Only the oscillator has a frequency: that of a PLL's output follows from its dividers."""
    lines = [f"# {board.name}, {board.part}", "BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;"]
    lines.append(f'FREQUENCY PORT "clock" {board.oscillator_mhz:g} MHZ;')
    for pin in board.pins:
        port = f"leds[{pin.signal[3:]}]" if pin.signal.startswith("led") else pin.signal
        lines.append(f'LOCATE COMP "{port}" SITE "{pin.site}";')
        lines.append(f'IOBUF PORT "{port}" IO_TYPE={pin.io_type} PULLMODE={pin.pull};')
    return "\n".join(lines) + "\n"
