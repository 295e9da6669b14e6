"""The space of a model, and what single settings of it cost: for programs that search by themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.search_space import EvaluatedSetting, ParameterInfo, SpaceInfo
from penstock.dse.bounds.bound import GoalBounds, LowerBound
from penstock.dse.bounds.reachable import check_reachable
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.least_room import check_room
from penstock.dse.search.samplers import means_something, within
from penstock.dse.space.tiling import Choices, Params, TilingSpace, Value

MOST_SETTINGS = 1000
"""In one file: an evaluation takes milliseconds to a second."""


def space_of(evaluator: Evaluator) -> SpaceInfo:
    """The whole space; an error where no design of it keeps to the limits."""
    check_reachable(evaluator)
    check_room(evaluator)
    bounds = GoalBounds(evaluator)
    bounds.check_possible()
    return described(evaluator, evaluator.space.choices, bounds.of_goal())


def described(evaluator: Evaluator, choices: Choices, bound: LowerBound) -> SpaceInfo:
    """As far as it is open."""
    space, goal, usual = evaluator.space, evaluator.goal, evaluator.space.settings({})
    guess = space.fitted_setting() or space.default_params()
    return SpaceInfo(
        model=evaluator.program.name,
        platform=evaluator.platform.name,
        clock_mhz=evaluator.clock_mhz,
        quantize=evaluator.quantize,
        objectives=goal.figures,
        limits=tuple(limit.text for limit in goal.limits),
        may_use=evaluator.may_use.as_dict(),
        parameters=tuple(
            ParameterInfo(
                name=name,
                values=values,
                usual=usual[name] if usual[name] in values else values[0],
                needs=dict(space.conditions.get(name, {})),
            )
            for name, values in choices.items()
        ),
        guess=within(guess, choices),
        bound=bound.value,
        bound_reason=bound.reason,
    )


def read_settings(path: Path, space: TilingSpace) -> list[dict[str, Value]]:
    """The settings of a file: an object of parameters, or a list of such objects, each checked against the space."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PenstockError(
            code="bad-parameter", what=f"{path} cannot be read as JSON", where="--params", limit=str(error)[:200],
            hint="write an object of parameters, as `penstock space MODEL` prints one under guess",
        ) from error  # fmt: skip
    given: list[Any] = document if isinstance(document, list) else [document]
    if not 1 <= len(given) <= MOST_SETTINGS:
        raise PenstockError(
            code="bad-parameter", what=f"{path} has {len(given)} settings", where="--params",
            limit=f"1 to {MOST_SETTINGS:,}", hint="split the file" if given else "write one at least",
        )  # fmt: skip
    return [_checked(one, space, f"--params, setting {number}") for number, one in enumerate(given)]


def _checked(given: Any, space: TilingSpace, where: str) -> dict[str, Value]:
    if not isinstance(given, Mapping):
        raise PenstockError(
            code="bad-parameter", what=f"{str(given)[:60]} is no setting", where=where,
            limit="an object of parameters", hint="see `penstock space MODEL`",
        )  # fmt: skip
    params: dict[str, Value] = {}
    for name, value in dict[str, Any](given).items():  # pyright: ignore[reportUnknownArgumentType]
        values = space.choices.get(name)
        if values is None:
            raise PenstockError(
                code="unknown-parameter", what=f"the space has no parameter {name[:60]!r}", where=where,
                limit=f"{len(space.choices)} parameters",
                hint=nearest(name, space.choices, "see `penstock space`"),
            )  # fmt: skip
        found = next((one for one in values if type(one) is type(value) and one == value), None)
        if found is None:
            raise PenstockError(
                code="bad-parameter", what=f"{name} cannot be {repr(value)[:60]}", where=where,
                limit="choices: " + ", ".join(map(str, values))[:200], hint="take one of the choices",
            )  # fmt: skip
        params[name] = found
    return whole(params, space)


def whole(params: Params, space: TilingSpace) -> dict[str, Value]:
    """A setting with all that means something, usual where it does not say."""
    settings = space.settings(params)
    return {name: v for name, v in settings.items() if means_something(name, settings, space.conditions)}


def all_evaluated(
    evaluator: Evaluator, settings: Sequence[Mapping[str, Value]], bound: LowerBound
) -> tuple[EvaluatedSetting, ...]:
    """Each with its own error where it means no design; an error where none of them means one."""
    found: list[EvaluatedSetting] = []
    errors: list[PenstockError] = []
    for params in settings:
        try:
            found.append(evaluated(evaluator, params, bound))
        except PenstockError as error:
            errors.append(error)
            found.append(_no_design(params, error))
    if errors and len(errors) == len(found):
        raise errors[0]
    return tuple(found)


def _no_design(params: Mapping[str, Value], error: PenstockError) -> EvaluatedSetting:
    return EvaluatedSetting(
        params=dict(params), feasible=False, values=(), constraints={}, figures={}, explanation="", gap_pct=None,
        digest="", design={}, error=error.one_line(),
    )  # fmt: skip


def evaluated(evaluator: Evaluator, params: Mapping[str, Value], bound: LowerBound) -> EvaluatedSetting:
    found = evaluator.evaluate(params)
    gap = 100 * bound.gap(found.values[0])
    return EvaluatedSetting(
        params=dict(found.params),
        feasible=found.feasible,
        values=found.values,
        constraints=found.constraints,
        figures=found.measures,
        explanation=found.explanation,
        gap_pct=round(gap, 2) if isfinite(gap) else None,
        digest=found.design.digest(),
        design=found.design.to_json(),
    )
