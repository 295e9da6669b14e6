"""Axes for hand-drawn plots: a range with round ticks, linear or logarithmic by what the data needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LOG_FROM_RATIO = 12.0
_MOST_TICKS = 10
_ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """Maps values to pixels between `start` and `end` (which may run downwards)."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def pixel(self, value: float) -> float:
        return round(self.pixels([value])[0], 1)

    def pixels(self, values: Iterable[float]) -> list[float]:
        """Of many values, not rounded."""
        low, high, start = self.low, self.high, self.start
        if self.logarithmic:
            values = [math.log10(value) if value > low else math.log10(low) for value in values]
            low, high = math.log10(low), math.log10(high)
        scale = (self.end - start) / (high - low)
        return [start + (value - low) * scale for value in values]


def fit_axis(values: Sequence[float], start: float, end: float, *, from_zero: bool = False) -> Axis:
    """An axis that shows every value with some air; logarithmic if they span more than a decade."""
    low, high = min(values), max(values)
    if low > 0 and high / low > _LOG_FROM_RATIO:
        return _log_axis(low, high, start, end)
    if from_zero:
        low = min(low, 0.0)
    if high <= low:
        low, high = (low * 0.9, high * 1.1) if low > 0 else (low - 1.0, high + 1.0)
    step = round_step((high - low) / 5)
    bottom = math.floor((low - 0.02 * (high - low)) / step) * step
    if low >= 0:
        bottom = max(0.0, bottom)
    top = math.ceil((high + 0.02 * (high - low)) / step) * step
    count = round((top - bottom) / step)
    return Axis(bottom, top, start, end, False, tuple(float(f"{bottom + step * k:.12g}") for k in range(count + 1)))


def span_axis(most: float, start: float, end: float) -> Axis:
    """From 0 to exactly `most`, which nothing lies beyond: a count of trials, the whole of a share."""
    step = round_step(most / 5)
    return Axis(0.0, most, start, end, False, tuple(step * k for k in range(math.floor(most / step + 1e-9) + 1)))


def round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * step for step in _ROUND_STEPS if power * step >= least * (1 - 1e-9))


def _log_axis(low: float, high: float, start: float, end: float) -> Axis:
    low, high = low / 1.15, high * 1.15
    decades = math.log10(high / low)
    heads = (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = tuple(
        head * 10.0**power for power in range(first, last + 1) for head in heads if low <= head * 10.0**power <= high
    )
    stride = math.ceil(len(ticks) / _MOST_TICKS)
    return Axis(low, high, start, end, True, ticks[::stride])
