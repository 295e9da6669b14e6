"""A space that can be enumerated: its best design is known, and so how near searches with other seeds come to it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from benchmarks.registry import Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.samplers import settings
from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Params, TilingOptions

SEEDS = 10
SHARE = 0.02
"""Of all distinct designs: what a search may look at."""


@dataclass(frozen=True)
class Case:
    """A model on a platform. Kernels are not favoured one by one, which keeps the space enumerable."""

    model: str
    quantize: str | None
    platform: str

    def evaluator(self) -> Evaluator:
        program = prepare(import_model(self.model), self.quantize)
        options = TilingOptions(per_kernel=False)
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

    def search(self, seed: int, trials: int) -> float:
        """The first objective of the best design that a search with the default sampler finds."""
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
    """How far the worst of the seeds stays behind the optimum."""
    known = enumerate_designs(case.evaluator(), progress)
    trials = max(1, int(SHARE * len(known.answers)))
    gaps = [100 * (known.search(seed, trials) / known.best - 1) for seed in range(SEEDS)]
    return {
        "part": "optimum",
        "model": case.model,
        "platform": case.platform,
        "settings": known.count,
        "designs": len(known.answers),
        "optimum_cycles": known.best,
        "trials": trials,
        "share_of_designs_pct": round(100 * trials / len(known.answers), 3),
        "share_of_settings_pct": round(100 * trials / known.count, 3),
        "seeds": SEEDS,
        "worst_gap_pct": round(max(gaps), 3),
        "seeds_within_1pct": sum(gap <= 1 for gap in gaps),
    }
