"""A part of the space that can be enumerated: its best design is known, and so how near searches come to it.

What is measured is the search that people get, in that part with a share of its designs for its trials, and in the
whole space with its defaults, where kernels differ and better designs lie. The sampler alone, which knows nothing of
the model, is shown beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.registry import Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.explore import explore
from penstock.dse.search.samplers import settings
from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Params, TilingOptions

SEEDS = 10
SHARE = 0.02
"""Of all distinct designs: what a search of the part may try."""


@dataclass(frozen=True)
class Case:
    """A model on a platform. Where kernels are not favoured one by one, the space can be enumerated."""

    model: str
    quantize: str | None
    platform: str

    def evaluator(self, *, whole: bool = False) -> Evaluator:
        program = prepare(import_model(self.model), self.quantize)
        options = TilingOptions(per_kernel=whole)
        return Evaluator.create(program, self.platform, quantize=self.quantize, options=options)


LENET = "zoo:mlp?inputs=400&hidden=120,84"
"""LeNet-5's dense layers, 400-120-84-10: the front end takes no convolutions, which come before them."""

DIGITS = "zoo:mlp?inputs=64&hidden=32,32"

CASES = (Case(LENET, "w8a8", "ecp5-45k"), Case(DIGITS, "w8a8", "u55c"), Case(DIGITS, "w8a8", "ecp5-45k"))

Answer = tuple[tuple[float, ...], dict[str, float]]


@dataclass(frozen=True)
class Enumerated:
    """Every design of a space, by what its settings mean. A setting that means no design has no answer."""

    evaluator: Evaluator
    count: int
    answers: Mapping[Hashable, Answer]

    @cached_property
    def best(self) -> float:
        return min(v[0] for v, constraints in self.answers.values() if max(constraints.values()) <= 0)

    def sample(self, seed: int, trials: int) -> float:
        """The first objective of the best design that the default sampler finds by itself."""
        space, goal = self.evaluator.space, self.evaluator.goal
        study = Study.create_or_load(
            "optimum", space.choices, conditions=space.conditions, objectives=goal.objectives, seed=seed,
            first=space.first_settings(), meaning=self.evaluator.means,
        )  # fmt: skip
        found = float("inf")
        for _ in range(trials):
            asked = study.ask()
            answer = self.answers.get(self.evaluator.means(asked.params))
            if answer is None:
                study.fail(asked.number, retry=False)
                continue
            study.tell(asked.number, *answer)
            if max(answer[1].values()) <= 0:
                found = min(found, answer[0][0])
        return found


def enumerate_designs(evaluator: Evaluator, progress: Callable[[int], None] = lambda done: None) -> Enumerated:
    """Model every distinct design of the space once."""
    answers: dict[Hashable, Answer] = {}
    count = 0
    for params in settings(evaluator.space.choices, evaluator.space.conditions):
        count += 1
        progress(count)
        _answer(evaluator, params, answers)
    return Enumerated(evaluator, count, answers)


def _answer(evaluator: Evaluator, params: Params, answers: dict[Hashable, Answer]) -> None:
    try:
        key = evaluator.means(params)
        if key not in answers:
            evaluation = evaluator.evaluate(params)
            answers[key] = (evaluation.values, evaluation.constraints)
    except PenstockError:
        return  # a setting that no design can follow; a search finds that out too


def gap_row(case: Case, progress: Callable[[int], None]) -> dict[str, Value]:
    """How far the worst of the seeds stays behind the optimum of the part: in that, and in the whole space."""
    part, whole = case.evaluator(), case.evaluator(whole=True)
    known = enumerate_designs(part, progress)
    trials = max(1, int(SHARE * len(known.answers)))
    inside = [explore(part, trials, seed=seed) for seed in range(SEEDS)]
    usual = [explore(whole, seed=seed) for seed in range(SEEDS)]
    looks = max(one.modelled + len(one.tried) for one in inside)
    sampled = [known.sample(seed, trials) for seed in range(SEEDS)]

    def gaps(found: Sequence[float]) -> list[float]:
        return [100 * (one / known.best - 1) for one in found]

    in_part = gaps([one.best.evaluation.values[0] for one in inside])
    in_whole = gaps([one.best.evaluation.values[0] for one in usual])
    return {
        "part": "optimum",
        "model": case.model,
        "platform": case.platform,
        "settings": known.count,
        "designs": len(known.answers),
        "optimum_cycles": known.best,
        "looks": looks,
        "share_of_designs_pct": round(100 * looks / len(known.answers), 3),
        "share_of_settings_pct": round(100 * looks / known.count, 3),
        "seeds": SEEDS,
        "worst_gap_pct": round(max(in_part), 3),
        "seeds_within_1pct": sum(gap <= 1 for gap in in_part),
        "whole_space_gap_pct": round(max(in_whole), 3),
        "whole_space_looks": max(one.modelled + len(one.tried) for one in usual),
        "sampler_gap_pct": round(max(gaps(sampled)), 3),
    }
