"""What nextpnr calls the chip of a platform."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.compiler.platforms import Platform
from penstock.profiling.protocol import ProfilingError

_PART = re.compile(r"LFE5U(?P<link>M5G|M)?-(?P<size>\d+)F-(?P<speed>\d)(?P<package>[A-Z]+)(?P<pins>\d+)C?I?$")
_PACKAGES = {"BG": "CABGA", "MG": "CSFBGA", "TG": "TQFP"}


@dataclass(frozen=True)
class Device:
    """What nextpnr calls a chip: `--85k --package CABGA381 --speed 6`."""

    size: str
    package: str
    speed: int

    @property
    def options(self) -> tuple[str, ...]:
        return (f"--{self.size}", "--package", self.package, "--speed", str(self.speed))


def device_of(platform: Platform) -> Device:
    """The chip of a platform, from its part's name."""
    match = _PART.match(platform.part.upper())
    if match is None or match["package"] not in _PACKAGES:
        raise ProfilingError(
            "bad-request", what=f"no open place and route for {platform.part}", where=platform.name,
            limit="clocks are measured on ECP5 only", hint="choose an ECP5 platform, or do without its clock",
        )  # fmt: skip
    link = {"M": "um-", "M5G": "um5g-"}.get(match["link"] or "", "")
    return Device(f"{link}{match['size']}k", _PACKAGES[match["package"]] + match["pins"], int(match["speed"]))
