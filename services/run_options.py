"""The options of a run: one table. The REST API, the command line, the pages and the documentation all come from it.

An option is a field: its type and limits are what the API takes, its description what the API says of it, and `Said`
what people read elsewhere. What is done with it stands where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.evidence import DEFAULT_RUNG, LICENSED, RUNGS, Evidence, one_of
from penstock.compiler.lengths import parse_lengths
from penstock.compiler.platforms import load_platform, platform_names
from penstock.dse.evaluation.objectives import DEFAULT_OBJECTIVES, MOST_OBJECTIVES, OBJECTIVES, Goal
from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER, SAMPLERS
from penstock.dse.space.aligned_by import AlignedBy
from penstock.dse.support.budgets import DEFAULT_GAP, SIMULATIONS
from penstock.services.described import Described
from penstock.services.goals import Limits, ObjectiveNames, check_goal, refused

BitstreamTarget = Literal["hw", "hw_emu", "none"]

DEFAULT_PLATFORM = "u55c"
MOST_TRIALS = 10_000
MOST_LANES = 1_000_000
MOST_DIMS = 4
MOST_FIFO_SIMULATIONS, MOST_FIFO_SLACK = 100_000, 100
LARGEST_SEED = 2**31 - 1
LONGEST_NAME = 200
NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_]{0,99}"
"""How functions and their arguments may be called."""
PLAIN = r"^[^\x00-\x1f\x7f]*$"
_LARGEST_WHOLE = 2.0**63

MODEL_HELP = "FILE.py:FUNCTION, FILE.onnx, FILE.mlir, zoo:NAME?KEY=VALUE, or hf:, timm:, torchvision:, torch.nn:NAME"

COMPILE, EXPLORE, SUBMIT, CHECK, SPACE = "compile", "explore", "submit", "check", "space"
EXTENDED = "extended"
"""How many trials were added to a run after its start: kept beside its options."""


def plain_text(text: str) -> str:
    """Refuses what neither a database nor a terminal should see: control characters, and halves of characters."""
    if not re.fullmatch(PLAIN, text):
        raise PydanticCustomError("control_character", "contains a control character")
    if not is_unicode(text):
        raise PydanticCustomError("half_character", "contains half a character")
    return text


def is_unicode(text: str) -> bool:
    """Whether it can be written down: JSON can name halves of characters (\\ud800) that are nothing by themselves."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _known_platform(name: str) -> str:
    known = platform_names()
    if name in known:
        return name
    raise PydanticCustomError(
        "unknown_platform",
        "there is no platform '{name}'",
        {
            "name": name[:80],
            "limit": "the platforms are " + ", ".join(known),
            "hint": nearest(name, known, "choose one of these"),
        },
    )


PlainText = Annotated[str, AfterValidator(plain_text), Described({"pattern": PLAIN})]
if TYPE_CHECKING:
    Rung = Evidence
    Sampler = str
else:
    Rung = Literal[RUNGS]
    Sampler = Literal[tuple(SAMPLERS)]


@dataclass(frozen=True)
class Said:
    """An option in words: on the command line, and on a run's page."""

    help: str
    commands: tuple[str, ...] = (EXPLORE, SUBMIT)
    flag: str = ""
    """Where it is not called as the option itself, with dashes."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of commands that run in one process, where it is not that of the service."""
    most: int | None = None
    """The same of its upper limit."""
    label: str = ""
    absent: str = ""
    """What is meant where it is empty; without this it is left out of the page."""


class RequestBody(BaseModel):
    """A request body: unknown members are refused, so that a typing error never passes in silence.

    No value is taken for another one: `0` is not `false`, `"5"` is not `5`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, body: Any) -> Any:
        """JSON knows one kind of number: 8.0 is 8 there, alone, in a list and under a name."""
        if not isinstance(body, dict):
            return body
        return {name: _whole(value) for name, value in body.items()}


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LARGEST_WHOLE else value
    if isinstance(value, list):
        return [_whole(one) if isinstance(one, float) else one for one in value]
    if isinstance(value, dict):
        return {name: _whole(one) if isinstance(one, float) else one for name, one in value.items()}
    return value


def _known_ranges(texts: list[str]) -> list[str]:
    try:
        return [str(one) for one in parse_lengths(texts)]
    except PenstockError as error:
        raise refused(error) from None


SizeRanges = Annotated[
    list[Annotated[PlainText, Field(max_length=120)]],
    Field(
        max_length=MOST_DIMS,
        description="sizes that each call says, as NAME=LOW..HIGH or NAME=LOW..HIGH/STEP: of a PyTorch or ONNX model "
        "an option, parameter or open dim that sizes its inputs; the accelerator then does them all",
    ),
    AfterValidator(_known_ranges),
]
PlatformName = Annotated[PlainText, AfterValidator(_known_platform), Described({"enum": list(platform_names())})]
QuantisationName = Literal["w8a8", "w4a8"]


class RunOptions(RequestBody):
    """What a run is to do with its model."""

    platform: Annotated[
        PlatformName,
        Said(
            f"device to design for [default: {DEFAULT_PLATFORM}]",
            (COMPILE, EXPLORE, SUBMIT, CHECK, SPACE),
            defaults={COMPILE: None, EXPLORE: None, CHECK: None, SPACE: None},
        ),
    ] = Field(DEFAULT_PLATFORM, description="the device to compile for: one of the platforms of this service")
    trials: Annotated[
        StrictInt | None,
        Said(
            "designs to try [default: as many as suit the space]",
            (COMPILE, EXPLORE, SUBMIT),
            most=100_000,
            absent="as many as suit the space",
        ),
    ] = Field(None, ge=1, le=MOST_TRIALS, description="designs to try; null: as many as suit the space")
    gap: Annotated[
        float,
        Said(
            "stop searching with a design so many percent above what none can be below", (COMPILE, EXPLORE, SUBMIT),
            label="stop at a gap of",
        ),
    ] = Field(
        DEFAULT_GAP, ge=0, le=1000, allow_inf_nan=False,
        description="percent above the lower bound of the first objective at which the search ends; 0: only at it",
    )  # fmt: skip
    quantize: Annotated[
        QuantisationName | None,
        Said(
            "w8a8: eight-bit weights and activations; w4a8: four-bit weights",
            (COMPILE, EXPLORE, SUBMIT, CHECK, SPACE),
            absent="as the model is",
        ),
    ] = Field(None, description="w8a8: 8-bit weights and activations; w4a8: 4-bit weights; null: as the model is")
    dims: Annotated[
        SizeRanges,
        Said(
            "a size that each call says, as seq=1..64, or seq=16..64/16 in steps; may be repeated",
            (COMPILE, EXPLORE, SUBMIT, CHECK, SPACE),
            flag="--dim",
            label="sizes of a call",
            absent="as the model's example inputs",
        ),
    ] = []
    seed: Annotated[StrictInt, Said("of the search: equal seeds give equal designs", (COMPILE, EXPLORE, SUBMIT))] = (
        Field(0, ge=0, le=LARGEST_SEED, description="of the search; the same seed tries the same designs")
    )
    objectives: Annotated[
        ObjectiveNames,
        Said(
            f"{one_of(tuple(OBJECTIVES))}; up to {('', 'one', 'two', 'three')[MOST_OBJECTIVES]}, "
            "the most important first",
            (EXPLORE, SUBMIT, SPACE),
            flag="--objective",
        ),
    ] = list(DEFAULT_OBJECTIVES)
    limits: Annotated[
        Limits,
        Said(
            "a hard limit such as dsp<=0.5 or latency_us<=20; may be repeated",
            (EXPLORE, SUBMIT, SPACE),
            flag="--limit",
            absent="those of the platform",
        ),
    ] = []
    sampler: Annotated[Sampler, Said(one_of(tuple(SAMPLERS)))] = Field(
        DEFAULT_SAMPLER, description="how settings are proposed; grid: all settings of a small space once"
    )
    fix: Annotated[
        list[Annotated[PlainText, Field(max_length=120)]],
        Said("a parameter that is not searched, as order=parallel-outer", label="fixed"),
    ] = Field([], max_length=32, description="parameters of the space that are not searched, as order=parallel-outer")
    warm_start: Annotated[
        bool, Said("begin with what earlier runs of the same model found [default: yes]", (SUBMIT,))
    ] = Field(True, description="begin with the best settings of earlier runs of the same model on the same platform")
    max_lanes: Annotated[
        StrictInt | None,
        Said("the most operations side by side", (COMPILE, EXPLORE, SUBMIT, SPACE), label="most lanes"),
    ] = Field(
        None,
        ge=2,
        le=MOST_LANES,
        description="the most operations side by side in all kernels together; null: as many as the device holds",
    )
    equalisation: Annotated[
        StrictInt | None,
        Said(
            "how FIFOs are sized: 0 (normal) costs no time, 100 (conservative) as much as if every task were as slow "
            "as the slowest [default: 0, or what the search finds where bits of FIFOs are limited or an objective]",
            (COMPILE, EXPLORE, SUBMIT, SPACE),
            most=100,
            absent="0, or as the search finds",
        ),
    ] = Field(
        None, ge=0, le=100,
        description="percent of the way from FIFOs that cost no time (normal) to FIFOs that cost as much as if every "
        "task were as slow as the slowest (conservative); null: 0, or what the search finds where objectives or limits "
        "speak of fifo_bits",
    )  # fmt: skip
    aligned_by: Annotated[
        AlignedBy,
        Said(
            "what lanes follow under allocation=aligned: intensity (the work), connection (neighbours), both or "
            "neither",
            label="aligned by",
        ),
    ] = Field(
        "both",
        description="what lanes follow where allocation is aligned: each kernel's work (intensity), factors that "
        "connected kernels share (connection), both or neither",
    )
    fifo_simulations: Annotated[
        StrictInt,
        Said(
            "simulations that making FIFOs shallow may take; a long one counts as several", (COMPILE, EXPLORE, SUBMIT)
        ),
    ] = Field(
        SIMULATIONS,
        ge=0,
        le=MOST_FIFO_SIMULATIONS,
        description="simulations that making FIFOs as shallow as they can be may take, a long one counting as several; "
        "with fewer they are deeper than they need to be, never too shallow",
    )
    fifo_slack: Annotated[
        float,
        Said(
            "percent that a run may end later for fewer bits of FIFOs", (COMPILE, EXPLORE, SUBMIT),
        ),
    ] = Field(
        0.0, ge=0, le=MOST_FIFO_SLACK, allow_inf_nan=False,
        description="percent that a run of the chosen design may end later so that its FIFOs hold fewer bits",
    )  # fmt: skip
    evidence: Annotated[Rung, Said(f"what the choice comes from: {one_of(RUNGS)}", (COMPILE, EXPLORE, SUBMIT))] = Field(
        DEFAULT_RUNG,
        description="what the choice among the best designs and its figures come from; the search itself is modelled",
    )
    bitstream: Annotated[
        BitstreamTarget | None,
        Said("hw, hw_emu or none [default: hw where the evidence's tools can build it]", (COMPILE, SUBMIT)),
    ] = Field(
        None,
        description="hw: for the card, or the open route's board; hw_emu: for the card's emulation; none; "
        f"null: for the card where the evidence is {one_of(LICENSED)}, for a board of the open route always",
    )
    priority: Annotated[StrictInt, Said("among your own runs the higher one goes first", (SUBMIT,))] = Field(
        0, ge=-10, le=10, description="among the runs of its owner the higher one goes first"
    )

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        check_goal(self.objectives, self.limits, self.platform)
        return self

    @property
    def goal(self) -> Goal:
        """What the search keeps small, and what it must keep within."""
        return Goal.of(self.objectives, self.limits).on(load_platform(self.platform))

    @classmethod
    def stored(cls, options: Mapping[str, Any]) -> Self:
        """Of a run that was taken in: it was checked then, and what it does not say is as by default."""
        known = {name: value for name, value in options.items() if name in cls.model_fields and value is not None}
        return cls.model_construct(**known)


def said(name: str) -> Said:
    """An option in words."""
    return next(one for one in RunOptions.model_fields[name].metadata if isinstance(one, Said))


def option_labels() -> dict[str, tuple[str, str]]:
    """For a run's page, in order: what each option is called there, and what it means where it is empty."""
    labels = {name: (said(name).label or name.replace("_", " "), said(name).absent) for name in RunOptions.model_fields}
    return labels | {EXTENDED: ("further trials", "")}
