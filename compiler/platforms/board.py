"""The board around a chip, as far as a bitstream needs it: oscillator, pins, and what loads the bitstream."""

from __future__ import annotations

from dataclasses import dataclass

SIGNALS = ("clock", "reset_button", "uart_rx", "uart_tx", "led0", "led1", "led2")
"""Pins that every board has; it may have `led3` and more."""


@dataclass(frozen=True)
class BoardPin:
    """One pin of the chip. `signal` is what the shell calls it, `uart_rx` being what the chip receives."""

    signal: str
    site: str
    io_type: str
    pull: str


@dataclass(frozen=True)
class Board:
    """`load` are commands that put `{bitstream}` onto the board, the usual one first."""

    name: str
    part: str
    oscillator_mhz: float
    baud: int
    leds_active_low: bool
    reset_active_low: bool
    load: tuple[str, ...]
    pins: tuple[BoardPin, ...]

    @property
    def leds(self) -> int:
        """How many LEDs the shell may light."""
        return sum(pin.signal.startswith("led") for pin in self.pins)
