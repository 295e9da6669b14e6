"""What cells of the netlists of open synthesis take: LUTs, flip-flops, multipliers and block RAMs."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.platforms import Resources

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


def resources_of(cells: Mapping[str, int]) -> Resources:
    """What so many cells of each kind take."""
    return Resources(
        lut=sum(count * LUT_CELLS.get(name, 0) for name, count in cells.items()),
        ff=sum(cells.get(name, 0) for name in FF_CELLS),
        dsp=sum(cells.get(name, 0) for name in DSP_CELLS),
        bram18=sum(count * BRAM_CELLS.get(name, 0) for name, count in cells.items()),
        uram=sum(cells.get(name, 0) for name in URAM_CELLS),
    )
