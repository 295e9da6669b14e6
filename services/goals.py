"""What a run may be asked to keep small and to keep within, as types of request bodies."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.objectives import LIMITED, MOST_LIMITS, MOST_OBJECTIVES, OBJECTIVES, Goal
from penstock.dse.evaluation.objectives import check_limits as parse_limits
from penstock.dse.evaluation.objectives import check_objectives as known_objectives
from penstock.services.described import Described


def refused(error: PenstockError) -> PydanticCustomError:
    """An error of the search's own vocabulary as one of a request body."""
    words = {"what": error.what, "limit": error.limit, "hint": error.hint}
    return PydanticCustomError(
        error.code.replace("-", "_"),  # pyright: ignore[reportArgumentType]
        "{what}",
        {name: text for name, text in words.items() if text},
    )


def check_objective(name: str) -> str:
    try:
        return known_objectives([name])[0]
    except PenstockError as error:
        raise refused(error) from None


def check_each_once(names: list[str]) -> list[str]:
    if len(set(names)) != len(names):
        raise PydanticCustomError(
            "repeated_objective", "names an objective twice", {"hint": "name each objective once"}
        )
    return names


def check_limits(texts: list[str]) -> list[str]:
    try:
        return [limit.text for limit in parse_limits(texts)]
    except PenstockError as error:
        raise refused(error) from None


def check_goal(objectives: list[str], limits: list[str], platform: str) -> None:
    """Limits on one resource may be a count and a share: only the platform says whether they agree."""
    try:
        Goal.of(objectives, limits).on(load_platform(platform))
    except PenstockError as error:
        raise refused(error) from None


ObjectiveNames = Annotated[
    list[Annotated[str, AfterValidator(check_objective), Described({"enum": list(OBJECTIVES)})]],
    Field(
        min_length=1,
        max_length=MOST_OBJECTIVES,
        description="what a good design keeps small, the most important first: "
        + "; ".join(f"{o.name}: {o.meaning}" for o in OBJECTIVES.values()),
    ),
    AfterValidator(check_each_once),
    Described({"uniqueItems": True}),
]

Limits = Annotated[
    list[Annotated[str, Field(max_length=60)]],
    Field(
        max_length=MOST_LIMITS,
        description="what a design must keep: NAME<=VALUE or NAME>=VALUE, as dsp<=0.5 or latency_us<=20; names: "
        + ", ".join(LIMITED)
        + ". Of a resource, up to 1 is a share of what a design may use, above it a count; of bandwidth, above it GB/s",
    ),
    AfterValidator(check_limits),
]
