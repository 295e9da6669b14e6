"""Families of devices: what follows for a platform from the kind of chip that it has. A platform's file names one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.compiler.evidence import Route


@dataclass(frozen=True)
class Family:
    """One kind of chip: whose tools build for it, which figures plan designs, how its memories are counted."""

    name: str
    route: Route
    """Whose tools build it: our SystemVerilog by open tools, or our C++ by AMD's."""
    operators: str
    """The library of `compiler/schedule/operators` whose figures hold on it."""
    has_xrt: bool
    """Whether a package for it has a host program for AMD's runtime."""
    block: str
    """What its 18-kbit block RAM is called."""
    pair: str = ""
    """What two of them together are, where the device counts so."""

    def blocks(self, bram18: int, uram: int) -> str:
        """Block memories as the device counts them."""
        pairs, singles = divmod(bram18, 2) if self.pair else (0, bram18)
        parts = [(pairs, self.pair), (singles, self.block), (uram, "URAM")]
        return " + ".join(f"{count} {name}" for count, name in parts if count)


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            "ultrascale-plus", route="vitis", operators="vitis-ultrascale-plus", has_xrt=True, block="BRAM18",
            pair="BRAM36",
        ),
        Family("ecp5", route="open", operators="open-ecp5", has_xrt=False, block="DP16KD"),
    )
}  # fmt: skip
