"""What the options of a run mean for its search, in one place for every command and step that searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.dse.evaluation.objectives import DEFAULT_GOAL, Goal
from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER
from penstock.dse.space.options import TilingOptions
from penstock.dse.support.budgets import DEFAULT_GAP, SIMULATIONS

_ALIKE = ("sampler", "seed", "fifo_simulations", "fifo_slack", "gap")


def space_options(options: Mapping[str, Any]) -> TilingOptions:
    """What they leave of the space. A command that lacks an option has it as by default."""
    named = ("max_lanes", "equalisation", "aligned_by")
    return TilingOptions(**{name: options[name] for name in named if options.get(name) is not None})


@dataclass(frozen=True)
class SearchSettings:
    """How a search is made, so that it can be made again."""

    sampler: str = DEFAULT_SAMPLER
    seed: int = 0
    goal: Goal = DEFAULT_GOAL
    fixed: tuple[str, ...] = ()
    fifo_simulations: int = SIMULATIONS
    fifo_slack: float = 0.0
    gap: float = DEFAULT_GAP
    space: TilingOptions = field(default_factory=TilingOptions)

    @classmethod
    def of(cls, options: Mapping[str, Any], goal: Goal = DEFAULT_GOAL) -> SearchSettings:
        """Of options by their names, and what the search is for."""
        alike = {name: options[name] for name in _ALIKE if name in options}
        return cls(goal=goal, fixed=tuple(options.get("fix") or ()), space=space_options(options), **alike)
