"""The one table of samplers: how the next setting is proposed. Light to import: what makes one imports Optuna."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.compiler.errors import PenstockError

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from penstock.dse.search.local import LocalProposer, Meaning
    from penstock.dse.space.tiling import Choices, Conditions


@dataclass(frozen=True)
class Searched:
    """What a sampler is made for: the space, a seed, and what a setting means, as far as that is known."""

    choices: Choices
    conditions: Conditions
    seed: int
    meaning: Meaning | None = None


@dataclass(frozen=True)
class SamplerKind:
    meaning: str
    make: Callable[[Searched], BaseSampler]
    proposes: Callable[[Searched], LocalProposer] | None = None
    """What proposes whole settings by the trials so far, where that is our own."""
    walks: bool = False
    """All its settings are known beforehand and each is tried once: nothing is proposed, and it ends by itself."""


def sampler_kind(name: str) -> SamplerKind:
    if name not in SAMPLERS:
        raise PenstockError(
            code="unknown-sampler", what=f"there is no sampler {name!r}",
            limit="known are " + ", ".join(SAMPLERS), hint="pass one of these names",
        )  # fmt: skip
    return SAMPLERS[name]


def _local(searched: Searched) -> LocalProposer:
    from penstock.dse.search.local import LocalProposer

    return LocalProposer(searched.choices, searched.conditions, searched.seed, searched.meaning)


def _anything(searched: Searched) -> LocalProposer:
    from penstock.dse.search.local import LocalProposer

    return LocalProposer(searched.choices, searched.conditions, searched.seed, searched.meaning, learns=False)


def _tpe(searched: Searched) -> BaseSampler:
    from optuna.exceptions import ExperimentalWarning
    from optuna.samplers import TPESampler

    with warnings.catch_warnings():
        # parameters that mean something only at times need groups, which Optuna has not promised to keep
        warnings.simplefilter("ignore", category=ExperimentalWarning)
        return TPESampler(seed=searched.seed, multivariate=True, group=True, n_startup_trials=16)


def _nsga2(searched: Searched) -> BaseSampler:
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(seed=searched.seed, population_size=24)


def _random(searched: Searched) -> BaseSampler:
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=searched.seed)


SAMPLERS: Mapping[str, SamplerKind] = {
    "local": SamplerKind(
        "what is near to the best so far; known settings of the same design are not tried again", _random, _local
    ),
    "tpe": SamplerKind(
        "by a multi-objective, multivariate tree of Parzen estimators over the groups of parameters", _tpe
    ),
    "nsga2": SamplerKind("by a genetic algorithm with generations of 24", _nsga2),
    "random": SamplerKind("anything that was not tried", _random, _anything),
    "grid": SamplerKind(
        "every distinct setting once, in an order of the seed's, and then ends; up to 20,000 settings", _random,
        walks=True,
    ),
}  # fmt: skip
DEFAULT_SAMPLER = "local"
