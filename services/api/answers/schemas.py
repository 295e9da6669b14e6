"""What the API takes and gives, as types; docs/openapi.json is made from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from penstock.compiler.reference import LIBRARIES, MODEL_PATTERN
from penstock.services.described import Described
from penstock.services.run_options import (
    DEFAULT_PLATFORM,
    LONGEST_NAME,
    MOST_TRIALS,
    NAME_PATTERN,
    PlainText,
    PlatformName,
    QuantisationName,
    RequestBody,
    RunOptions,
    SizeRanges,
)

RunStateName = Literal["queued", "running", "failing", "cancelling", "succeeded", "failed", "cancelled"]
ScopeName = Literal["read", "submit", "admin"]
StepStateName = Literal["blocked", "queued", "running", "succeeded", "failed", "cancelled"]


_PAIR = f"{NAME_PATTERN}=([!\"$'-~]|%[2-6][0-9A-Fa-f]|%7[0-9A-Ea-e]){{0,200}}"
_LAYERS = r"[A-Za-z0-9_]{1,60}(\.[A-Za-z0-9_]{1,60}){0,8}"
_FROM = "|".join(map(re.escape, (*LIBRARIES, "zoo")))
_NAMED_MODEL = rf"^({_FROM}):{MODEL_PATTERN}(\?({_PAIR}(&{_PAIR})*)?)?(#({_LAYERS})?)?$"
"""LIBRARY:NAME?KEY=VALUE&KEY=VALUE#LAYERS, as a URL writes them."""
_ARGUMENT = {"pattern": "^[ -~]*$", "maxLength": 200}


class NewRun(RunOptions):
    """A run to start."""

    model: PlainText = Field(min_length=1, max_length=64, description="the id of a model")
    name: PlainText = Field("", max_length=LONGEST_NAME, description="what to call the run; default: the model's name")


OPTION_NAMES = tuple(NewRun.model_fields)


class NewCheck(RequestBody):
    """For what a model is to be looked at."""

    platform: PlatformName = Field(DEFAULT_PLATFORM, description="the device: one of the platforms of this service")
    quantize: QuantisationName | None = Field(
        None, description="w8a8: as with 8-bit weights and activations; w4a8: 4-bit weights"
    )
    dims: SizeRanges = Field(default_factory=list[str])


class MoreTrials(RequestBody):
    """How far to extend a run."""

    trials: StrictInt = Field(ge=1, le=MOST_TRIALS, description="further designs to try")


class ToldSetting(RequestBody):
    """The setting of a trial."""

    params: dict[Annotated[str, Field(max_length=200)], Any] | None = Field(
        max_length=2000, description="usual ones may be left out; null: the search's own sampler decides"
    )


class ZooReference(RequestBody):
    """A model that Penstock brings along, with its arguments."""

    zoo: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$", description="its name")
    arguments: Annotated[
        dict[str, Annotated[str, Described(_ARGUMENT)] | int | float | bool],
        Described({"propertyNames": {"pattern": f"^{NAME_PATTERN}$"}}),
    ] = Field(default_factory=dict, max_length=32, description="arguments of its entry function")
    name: PlainText = Field("", max_length=LONGEST_NAME, description="what to call the model; default: its zoo name")


class NamedModel(RequestBody):
    """A model of the zoo or of a library that the workers have, built with random weights."""

    reference: Annotated[PlainText, Described({"pattern": _NAMED_MODEL})] = Field(
        min_length=1,
        max_length=2000,
        description="as hf:gpt2?n_layer=2, timm:NAME, torchvision:NAME, torch.nn:NAME or zoo:NAME; with #h its "
        "layers `h` share an accelerator",
    )
    name: PlainText = Field("", max_length=LONGEST_NAME, description="what to call the model; default: its own name")


class Given(BaseModel):
    """A response body."""

    model_config = ConfigDict(from_attributes=True)


class ErrorOut(Given):
    """Why something failed: what, where, which limit, and what to do next."""

    code: str
    what: str
    where: str = ""
    limit: str = ""
    hint: str = ""
    log_tail: str = Field("", description="the last lines of the log of what failed")
    others: list[str] = Field([], description="what else is wrong, where a check looked on after the first mistake")


class ModelOut(Given):
    id: str
    name: str
    owner: str | None = Field(None, description="whose it is; null on a service that asks for no tokens")
    kind: Literal["python", "tasks", "onnx", "kernel", "linalg", "zoo", "library"]
    source: str = Field(description="what was submitted: a file's name and entry, or a reference")
    sha256: str | None
    size: int | None
    created_at: datetime
    url: str


class ModelRef(Given):
    id: str
    name: str
    kind: str
    url: str


class Progress(Given):
    """How far a run is, in steps and in trials."""

    steps_done: int
    steps_total: int
    trials_done: int = Field(description="trials that ended, whether they fit the platform, do not, or failed")
    trials_failed: int
    trials_infeasible: int | None = Field(
        None, description="trials that ended and do not keep every limit; in lists null for runs that are over"
    )
    trials_running: int
    trials_total: int
    trials_per_minute: float | None = Field(None, description="of the last three minutes; null: none ended")
    seconds_left: float | None = Field(None, description="until the last trial ends, at that pace; null: not known")


class Best(Given):
    """The best design so far by the run's first objective that keeps its limits."""

    trial: int
    latency: float | None = Field(description="in cycles")
    latency_us: float | None
    resource_share: float | None = Field(description="the largest share of any resource")
    evidence: str


class Chosen(Given):
    """The design that the run settled on, by the evidence that it was chosen by."""

    trial: int | None = Field(description="null: the design was given, not searched for")
    latency: float = Field(description="in cycles")
    latency_us: float
    evidence: str = Field(description="of the latency")
    resource_share: float | None = Field(description="the largest share of any resource's limit")
    share_evidence: str = Field(description="of the resources")


class RunOut(Given):
    id: str
    name: str
    state: RunStateName
    owner: str | None = Field(None, description="whose it is; null on a service that asks for no tokens")
    pinned: bool = Field(False, description="neither deleted nor collected until it is unpinned")
    tags: list[str] = Field(default_factory=list, description="words by which people find it")
    paused: bool = Field(description="its trials are held back until it is resumed")
    model: ModelRef
    options: dict[str, Any]
    progress: Progress
    best: Best | None = Field(description="null: no trial is any good yet; in lists also where the run has chosen")
    chosen: Chosen | None = Field(description="null: the run has not chosen yet")
    error: ErrorOut | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    url: str
    page: str = Field(description="the page that shows this run to people")


class AttemptOut(Given):
    number: int
    worker: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None = Field(description="the name of the transition that ended it; null while it runs")
    error: ErrorOut | None


class StepOut(Given):
    id: str
    kind: str
    key: str
    queue: str
    state: StepStateName
    attempt: int
    max_attempts: int
    worker: str | None
    lease_until: datetime | None = Field(description="until when its worker is believed alive")
    reused: bool = Field(description="its outputs were already known")
    progress: float | None
    progress_text: str | None
    error: ErrorOut | None
    attempts: list[AttemptOut] = Field(description="earlier attempts and the current one; empty for trials")
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None


class RunEstimate(Given):
    """When a run may begin and end, if the service goes on as it does."""

    start: datetime
    end: datetime
    basis: str = Field(description="what it rests on")


class LogOut(Given):
    key: str = Field(description="of the step")
    tail: str = Field(description="the last lines")
    at: datetime = Field(description="of the worker's last sign that the log had grown")


class RunDetail(RunOut):
    estimate: RunEstimate | None = Field(
        None, description="in GET /v1/runs/{id}; null: it is over or held back, or nothing was measured yet"
    )
    notes: str = Field("", description="what people say of it")
    summary: dict[str, Any] = Field(description="what the run found, once it has")
    logs: list[LogOut] = Field(default_factory=list, description="what tools of its steps write just now")
    steps: list[StepOut] = Field(description="every step but the trials, which have a list of their own")
    waiting_for: str = Field(description="why nothing moves, if so: in one sentence; else empty")
    last_event_id: int = Field(description="where to begin reading events")


class TrialOut(Given):
    number: int
    state: Literal["complete", "infeasible", "failed", "cancelled", "running", "queued", "blocked"]
    chosen: bool
    params: dict[str, Any]
    figures: dict[str, Any]
    evidence: str | None = Field(description="where all figures of this trial come from; null while there are none")
    seconds: float | None
    attempt: int
    worker: str | None
    error: ErrorOut | None
    created_at: datetime | None
    origin: str = Field("", description="the trial of an earlier run, or the agent, that its setting is from, if it is")
    version: str = Field("", description="of Penstock, its code and its tables, when it was evaluated")


class TrialDetail(TrialOut):
    design: dict[str, Any] | None = Field(description="the design's record, for penstock compile --design")
    explanation: str = Field("", description="why it is as fast and as large as it is")
    constraints: dict[str, float] = Field(
        default_factory=dict, description="by which part each limit is missed; not above 0: it is kept"
    )


class AskedTrials(Given):
    """Trials whose settings are to be told."""

    run: str
    trials: list[int] = Field(description="their numbers")
    url: str = Field(description="of the space that settings are of")


class ArtifactOut(Given):
    id: str
    name: str
    step: str
    sha256: str
    size: int
    media_type: str
    created_at: datetime
    url: str


class EventOut(Given):
    id: int
    kind: str
    at: datetime
    data: dict[str, Any]
    actor: str | None = Field(None, description="who asked for it; null: the service itself")


class MeOut(Given):
    owner: str | None = Field(description="null: this service asks for no tokens")
    scope: ScopeName


class LoginLink(Given):
    url: str = Field(description="to be opened with a browser")
    expires_at: datetime | None = Field(description="null: it is only the address of the pages; no token is asked for")


class RunList(Given):
    items: list[RunOut]
    next_cursor: str | None = Field(description="pass as `cursor` for the next page; null on the last one")


class ModelList(Given):
    items: list[ModelOut]
    next_cursor: str | None


class TrialList(Given):
    items: list[TrialOut]
    next_cursor: str | None


class TrialFront(Given):
    """The trials that no other one beats in every objective, of all that keep every limit."""

    objectives: list[str] = Field(description="what was compared, the most important first")
    evidence: str | None = Field(description="of all figures compared; trials of other evidence take no part")
    compared: int = Field(description="how many trials took part")
    items: list[FrontTrial] = Field(description="by the first objective")


class FrontTrial(Given):
    number: int
    figures: dict[str, float] = Field(description="those that the objectives stand for")
    chosen: bool


class ArtifactList(Given):
    items: list[ArtifactOut]


class EventList(Given):
    items: list[EventOut]


class PlatformOut(Given):
    name: str
    title: str
    part: str
    clock_mhz: float


class PlatformList(Given):
    items: list[PlatformOut]


class ProblemOut(Given):
    """RFC 9457: what every error looks like."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    what: str
    where: str | None = None
    limit: str | None = None
    hint: str | None = None
    errors: list[Mapping[str, str]] | None = None
    request_id: str
