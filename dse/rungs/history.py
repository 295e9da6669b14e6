"""What two rungs of evidence said of the same design, kept over searches: how far the weaker one is off."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from penstock.compiler.evidence import EVIDENCE, Evidence
from penstock.compiler.plan.names import LOAD, STORE
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.profiling import store
from penstock.profiling.cache import CacheStore

NEWEST = 2000
"""Pairs of one family that are kept."""


@dataclass(frozen=True)
class Pair:
    """One design's cycles on two rungs. `family` is the platforms' operator library, `mix` what sets the pace."""

    model: str
    design: str
    weaker: Evidence
    stronger: Evidence
    family: str
    mix: str
    weaker_cycles: float
    stronger_cycles: float

    @property
    def ratio(self) -> float:
        """What the weaker figure must be multiplied by to be the stronger one."""
        return self.stronger_cycles / self.weaker_cycles


class History(Protocol):
    """Where pairs are kept."""

    def pairs(self, family: str) -> Sequence[Pair]:
        """All of a family of platforms, the newest last."""
        ...

    def add(self, pairs: Sequence[Pair]) -> None:
        """Keep pairs; what is known of the same design is replaced."""
        ...


def mix_of(evaluation: Evaluation) -> str:
    """What kind of work sets a design's pace: designs that are alike in this are off by alike shares."""
    figures = evaluation.figures
    slowest = next(task for task in figures.tasks if task.name == figures.bottleneck)
    if slowest.waits_for_memory or slowest.layer.startswith((LOAD, STORE)):
        pace = "external memory"
    else:
        pace = "II = 1" if slowest.ii == 1 else "II > 1"
    return pace if figures.exact_times else f"{pace}, sampled times"


def model_of(evaluator: Evaluator) -> str:
    """The model's name, and what tells it from others of the same name."""
    program = evaluator.program
    told = [program.name, evaluator.quantize, sorted((name, array.shape) for name, array in program.params.items())]
    return f"{program.name}.{hashlib.sha256(repr(told).encode()).hexdigest()[:8]}"


def pairs_of(evaluator: Evaluator, evaluation: Evaluation, cycles: Mapping[Evidence, float]) -> list[Pair]:
    """Each rung of one design against the next stronger one that was measured."""
    known: list[tuple[Evidence, float]] = [(rung, float(cycles[rung])) for rung in EVIDENCE if cycles.get(rung, 0) > 0]
    model, design, family, mix = (
        model_of(evaluator), evaluation.design.digest(), evaluator.platform.operators, mix_of(evaluation),
    )  # fmt: skip
    return [
        Pair(model, design, weaker, stronger, family, mix, less, more)
        for (weaker, less), (stronger, more) in pairwise(known)
    ]


class FolderHistory:
    """Pairs in the cache folder, one file a family."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root

    @property
    def _files(self) -> CacheStore:
        return CacheStore("rungs", 64, self._root or store.kept_folder())

    def pairs(self, family: str) -> Sequence[Pair]:
        return _read(self._files.read(family))

    def add(self, pairs: Sequence[Pair]) -> None:
        files = self._files
        for family in sorted({pair.family for pair in pairs}):
            with files.making(family):
                new = [pair for pair in pairs if pair.family == family]
                merged = list(_merged(_read(files.read(family)), new).values())[-NEWEST:]
                files.write(family, [asdict(pair) for pair in merged])


def _merged(old: Iterable[Pair], new: Sequence[Pair]) -> dict[tuple[str, ...], Pair]:
    found: dict[tuple[str, ...], Pair] = {}
    for pair in (*old, *new):
        key = (pair.model, pair.design, pair.weaker, pair.stronger)
        found.pop(key, None)  # the newest comes last
        found[key] = pair
    return found


def _read(document: Any) -> list[Pair]:
    """What is of another form is forgotten: it only served to correct rankings."""
    entries: list[Any] = document or []
    try:
        return [Pair(**entry) for entry in entries]
    except TypeError:
        return []


def of_known_rungs(pairs: Sequence[Pair]) -> tuple[list[Pair], str]:
    """Without pairs of evidence that this version has no name for, and a sentence about those; "" without such.

    Another version may have kept them; they say nothing of the rungs that there are.
    """
    known = [pair for pair in pairs if pair.weaker in EVIDENCE and pair.stronger in EVIDENCE]
    strange = sorted({name for pair in pairs for name in (pair.weaker, pair.stronger)} - set(EVIDENCE))
    if not strange:
        return known, ""
    left, names = len(pairs) - len(known), ", ".join(f"'{name}'" for name in strange)
    kinds = "a kind" if len(strange) == 1 else "kinds"
    count = f"{left:,} comparisons on record are" if left > 1 else "1 comparison on record is"
    return known, (
        f"{count} left out: of evidence {names}, {kinds} that this version does not know "
        f"(it knows {', '.join(EVIDENCE)}); another version kept them"
    )
