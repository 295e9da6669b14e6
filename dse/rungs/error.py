"""How far one rung is off another, from recorded pairs, and what that corrects.

A ratio is the stronger figure over the weaker one. With few pairs nothing is corrected, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from penstock.compiler.evidence import Evidence
from penstock.dse.rungs.history import Pair

ENOUGH = 5
"""Pairs from which on a median ratio is believed."""

QUANTILES = 21
"""How finely the spread of ratios is looked at."""


@dataclass(frozen=True)
class RungError:
    """What recorded pairs say of one rung against another, for some group of designs. Shares, not per cent."""

    family: str
    weaker: Evidence
    stronger: Evidence
    model: str | None
    """The one model that they are of; None for all models of the family."""
    designs: int
    median_ratio: float
    typical: float
    """Half of the designs are off by no more than this share."""
    worst: float

    @property
    def believed(self) -> bool:
        """Whether there are enough pairs to correct by them."""
        return self.designs >= ENOUGH

    @property
    def sentence(self) -> str:
        """For people: how far off, over how many designs, and what follows from it."""
        if self.median_ratio == 1 and self.worst == 0:
            off = f"{self.weaker} was exact against {self.stronger}"
        else:
            sign = "low" if self.median_ratio > 1 else "high"
            shift = abs(self.median_ratio - 1)
            off = f"{self.weaker} was off by {self.typical:.2%} against {self.stronger}, at worst by {self.worst:.2%}"
            off += f", in the middle {shift:.2%} too {sign}" if shift else ""
        designs = f"{self.designs} design{'s' if self.designs != 1 else ''}"
        return f"{off} ({designs}{'' if self.believed else f'; nothing is corrected below {ENOUGH}'})"


def error_of(pairs: Sequence[Pair], model: str | None = None) -> RungError:
    """The error over some pairs of one family and one step between rungs; there is at least one."""
    first, ratios = pairs[0], [pair.ratio for pair in pairs]
    off = [abs(1 / ratio - 1) for ratio in ratios]  # of the stronger figure
    return RungError(
        first.family, first.weaker, first.stronger, model, len(pairs), median(ratios), median(off), max(off)
    )  # fmt: skip


def errors_of(pairs: Sequence[Pair], model: str | None = None) -> list[RungError]:
    """Every step between rungs that was recorded, family by family; with `model`, of that model alone."""
    groups: dict[tuple[str, str, str], list[Pair]] = {}
    for pair in pairs:
        if model is None or pair.model == model:
            groups.setdefault((pair.family, pair.weaker, pair.stronger), []).append(pair)
    return [error_of(groups[key], model) for key in sorted(groups)]


@dataclass(frozen=True)
class Correction:
    """The ratios of those designs that are most like one, and the median that its figure is multiplied by."""

    ratio: float = 1.0
    ratios: tuple[float, ...] = (1.0,)
    basis: str = "nothing is corrected: too few designs were measured on both rungs"

    @staticmethod
    def between(pairs: Sequence[Pair], weaker: Evidence, stronger: Evidence, model: str, mix: str) -> Correction:
        """By the closest group with enough pairs: the model's own with this mix, any model's, the whole family."""
        step = [pair for pair in pairs if (pair.weaker, pair.stronger) == (weaker, stronger)]
        alike = [pair for pair in step if pair.mix == mix]
        groups = (
            (f"{mix}, the same model", [pair for pair in alike if pair.model == model]),
            (f"{mix}, all models", alike),
            ("all designs of the family", step),
        )
        for basis, group in groups:
            if len(group) >= ENOUGH:
                ratios = [pair.ratio for pair in group]
                return Correction(median(ratios), _quantiles(ratios), f"{basis} ({len(group)} designs)")
        return Correction()


def _quantiles(ratios: Sequence[float]) -> tuple[float, ...]:
    """The ratios, or as many of them as tell how they are spread."""
    ordered = sorted(ratios)
    if len(ordered) <= QUANTILES:
        return tuple(ordered)
    return tuple(ordered[round(i * (len(ordered) - 1) / (QUANTILES - 1))] for i in range(QUANTILES))
