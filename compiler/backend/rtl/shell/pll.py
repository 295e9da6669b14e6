"""The clock of a bitstream: the board's oscillator as it is, or through the chip's PLL (EHXPLLL)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor

from penstock.compiler.errors import PenstockError

# Limits of the ECP5's general-purpose PLL, in MHz: the rate at which phases are compared, its oscillator, its outputs.
COMPARED_MHZ = (3.125, 400.0)
OSCILLATOR_MHZ = (400.0, 800.0)
OUTPUT_MHZ = (10.0, 400.0)
MIDDLE_MHZ = 600.0
LARGEST_DIVIDER = 128
LARGEST_FEEDBACK = 80
EXACT_MHZ = 1e-9


@dataclass(frozen=True)
class Pll:
    """Dividers of one PLL: `output / source = feedback * inner / (reference * outer)`.

    The PLL compares source / reference with oscillator / (inner * feedback); the clock is oscillator / outer.
    """

    source_mhz: float
    reference: int
    feedback: int
    inner: int
    outer: int

    @property
    def oscillator_mhz(self) -> float:
        return self.source_mhz * self.feedback * self.inner / self.reference

    @property
    def output_mhz(self) -> float:
        return self.oscillator_mhz / self.outer


def find_pll(source_mhz: float, wanted_mhz: float) -> Pll | None:
    """The PLL whose clock is closest to what is wanted without being above it; None if the source is that clock."""
    if abs(source_mhz - wanted_mhz) < EXACT_MHZ:
        return None
    found = list(_candidates(source_mhz, wanted_mhz))
    if not found or min(wanted_mhz - pll.output_mhz for pll in found) > 0.1 * wanted_mhz:
        raise PenstockError(
            code="clock-out-of-range", what=f"no PLL makes {wanted_mhz:g} MHz of {source_mhz:g} MHz",
            limit=f"its oscillator runs at {OSCILLATOR_MHZ[0]:g} to {OSCILLATOR_MHZ[1]:g} MHz and is divided by "
            f"at most {LARGEST_DIVIDER}", hint="ask for a clock between 10 and 400 MHz",
        )  # fmt: skip
    return min(
        found, key=lambda p: (round(wanted_mhz - p.output_mhz, 6), p.reference, abs(p.oscillator_mhz - MIDDLE_MHZ))
    )


def _candidates(source_mhz: float, wanted_mhz: float) -> Iterator[Pll]:
    """All dividers within the limits. A low reference divider keeps the jitter low, so few of them are tried."""
    for reference in range(1, 9):
        compared = source_mhz / reference
        if not COMPARED_MHZ[0] <= compared <= COMPARED_MHZ[1]:
            continue
        for product in range(ceil(OSCILLATOR_MHZ[0] / compared), floor(OSCILLATOR_MHZ[1] / compared) + 1):
            outer = ceil(compared * product / wanted_mhz - EXACT_MHZ)
            inner = _first_divider(product, compared * product, wanted_mhz)
            if inner is not None and 1 <= outer <= LARGEST_DIVIDER:
                yield Pll(source_mhz, reference, product // inner, inner, outer)


def _first_divider(product: int, oscillator_mhz: float, wanted_mhz: float) -> int | None:
    """How much of the multiplication the first output's divider does; the feedback's divider does the rest."""
    possible = [
        divider
        for divider in range(1, LARGEST_DIVIDER + 1)
        if product % divider == 0 and product // divider <= LARGEST_FEEDBACK
        if OUTPUT_MHZ[0] <= oscillator_mhz / divider <= OUTPUT_MHZ[1]
    ]
    return min(possible, key=lambda divider: abs(oscillator_mhz / divider - wanted_mhz), default=None)


def instance(pll: Pll) -> str:
    """The PLL as SystemVerilog: from `clock` to `clk`, with `locked`.

    The feedback goes through the first output, the clock is the second one: so it need not be a multiple of the
    compared rate. The comments before the instance are attributes that the tools read.
    """
    attributes = (
        f'(* FREQUENCY_PIN_CLKI="{pll.source_mhz:g}" *) (* FREQUENCY_PIN_CLKOS="{pll.output_mhz:g}" *)\n'
        '    (* ICP_CURRENT="12" *) (* LPF_RESISTOR="8" *) (* MFG_ENABLE_FILTEROPAMP="1" *) (* MFG_GMCREF_SEL="2" *)'
    )
    return f"""
    logic pll_feedback;
    {attributes}
    EHXPLLL #(
        .PLLRST_ENA("DISABLED"), .INTFB_WAKE("DISABLED"), .STDBY_ENABLE("DISABLED"), .DPHASE_SOURCE("DISABLED"),
        .OUTDIVIDER_MUXA("DIVA"), .OUTDIVIDER_MUXB("DIVB"), .OUTDIVIDER_MUXC("DIVC"), .OUTDIVIDER_MUXD("DIVD"),
        .FEEDBK_PATH("CLKOP"), .CLKI_DIV({pll.reference}), .CLKFB_DIV({pll.feedback}),
        .CLKOP_ENABLE("ENABLED"), .CLKOP_DIV({pll.inner}), .CLKOP_CPHASE({pll.inner - 1}), .CLKOP_FPHASE(0),
        .CLKOS_ENABLE("ENABLED"), .CLKOS_DIV({pll.outer}), .CLKOS_CPHASE({pll.outer - 1}), .CLKOS_FPHASE(0)
    ) pll (
        .RST(1'b0), .STDBY(1'b0), .CLKI(clock), .CLKOP(pll_feedback), .CLKOS(clk), .CLKFB(pll_feedback),
        .CLKINTFB(), .PHASESEL0(1'b0), .PHASESEL1(1'b0), .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1),
        .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .ENCLKOS(1'b0), .LOCK(locked)
    );
"""
