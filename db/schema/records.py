"""What repositories return: frozen records, detached from the database, safe to pass between threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

Json = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some rows of a list, and the cursor of the next ones; no cursor means that there are no more."""

    items: tuple[T, ...]
    next_cursor: str | None


TokenScope = Literal["read", "submit", "admin"]
SCOPES: tuple[TokenScope, ...] = ("read", "submit", "admin")
"""What a token may do; each holds the ones before it. `submit` changes one's own runs, `admin` everybody's."""


@dataclass(frozen=True)
class Token:
    """`owner` is the person or system whose it is: what runs, events and the audit log name."""

    id: str
    name: str
    prefix: str
    digest: bytes
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    owner: str
    scope: TokenScope


@dataclass(frozen=True)
class AuditEntry:
    """Something that somebody asked the service to change, and how it ended."""

    id: int
    at: datetime
    actor: str
    token_id: str | None
    action: str
    target: str
    status: int | None
    request_id: str | None
    client: str | None


@dataclass(frozen=True)
class Model:
    """A submitted model. `kind` is python, tasks, kernel, onnx, linalg, zoo or library; `source` what the user named.

    Its bytes, where it has any, are the content `sha256` of the store. `details` holds what an importer
    needs beyond them, such as the function of a Python file.
    """

    id: str
    name: str
    kind: str
    source: str
    sha256: str | None
    size: int | None
    details: Json
    owner: str | None
    created_at: datetime


@dataclass(frozen=True)
class Run:
    id: str
    model_id: str
    name: str
    state: str
    options: Json
    summary: Json
    error: Json | None
    owner: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    paused: bool
    """Its trials wait; whatever else it consists of goes on."""
    priority: int
    """Among the runs of its owner the higher one comes first."""
    used: float
    """Seconds that its steps took, counted from where its owner's other runs stood when it began."""
    pinned: bool = False
    """Kept until somebody unpins it: neither deleted nor collected."""
    tags: list[str] = field(default_factory=list[str])
    notes: str = ""
    """What people say of it."""


@dataclass(frozen=True)
class Step:
    """One node of a run's graph. `key` names it within its run: "import", "trial/0007".

    `memo` is what one attempt leaves for the next one, such as what it began in another system.
    """

    id: str
    run_id: str
    kind: str
    key: str
    queue: str
    state: str
    payload: Json
    may_fail: bool
    attempt: int
    max_attempts: int
    fence: int
    owner: str | None
    lease_until: datetime | None
    cancel_requested: bool
    input_hash: str | None
    reused_from: str | None
    progress: float | None
    progress_text: str | None
    memo: Json
    result: Json
    error: Json | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    due_at: datetime
    licence: str | None


@dataclass(frozen=True)
class NewStep:
    """A step to add to a run. `needs` and `needed_by` are keys of steps of the same run.

    With `may_fail` the steps that need it go on without it when it fails, and so does the run. `licence` names what it
    takes one of while it runs, of which there are so many.
    """

    kind: str
    key: str
    queue: str
    payload: Json = field(default_factory=dict[str, Any])
    needs: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    may_fail: bool = False
    max_attempts: int = 3
    licence: str | None = None


@dataclass(frozen=True)
class Attempt:
    """One claim of a step. `outcome` is the name of the transition that ended it; None while it runs."""

    step_id: str
    fence: int
    number: int
    worker: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    error: Json | None


@dataclass(frozen=True)
class Usage:
    """What an owner has going and kept: open runs, their trials, bytes of content; seconds of steps this month."""

    owner: str
    runs: int
    trials: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Freed:
    """What a removal takes: runs, models, and the bytes of content that nobody refers to afterwards."""

    runs: int
    models: int
    bytes: int


@dataclass(frozen=True)
class Webhook:
    """Where somebody wants to be told of the ends of runs: of their own ones, or of everybody's."""

    id: str
    owner: str | None
    everybody: bool
    url: str
    kinds: list[str]
    enabled: bool
    why_disabled: str
    generation: int
    """Of its secret, which is made from the service's key and never kept."""
    rotated_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Delivery:
    """Something to be told to a webhook. `state` is pending, delivered or failed."""

    id: str
    webhook_id: str
    kind: str
    body: str
    state: str
    attempts: int
    due_at: datetime
    status: int | None
    problem: str
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class DueDelivery:
    """One attempt at a delivery."""

    id: str
    webhook_id: str
    body: str
    attempts: int
    url: str
    generation: int
    rotated_at: datetime | None
    now: datetime
    """By the database's clock."""


@dataclass(frozen=True)
class Artifact:
    id: str
    run_id: str
    step_id: str
    name: str
    sha256: str
    size: int
    media_type: str
    created_at: datetime


@dataclass(frozen=True)
class NewArtifact:
    name: str
    sha256: str
    size: int
    media_type: str


@dataclass(frozen=True)
class TrialSummary:
    """What a trial found. `figures` maps an objective's name to its value; all carry `evidence`.

    `state` is complete or infeasible; a trial that could not be done is a failed step without a summary. `origin` is
    the trial of an earlier run whose setting this one took over; `version` is that of the code that evaluated it.
    """

    number: int
    state: str
    params: Json
    figures: Json
    evidence: str
    design: Json | None
    seconds: float
    origin: str = ""
    version: str = ""


@dataclass(frozen=True)
class MadeTrial:
    """A trial that another step made; with an `error` it came to no figures. `result` says why it is as it is."""

    summary: TrialSummary
    result: Json = field(default_factory=dict[str, Any])
    error: Json | None = None


@dataclass(frozen=True, kw_only=True)
class Trial(TrialSummary):
    step_id: str
    run_id: str
    created_at: datetime


@dataclass(frozen=True)
class ProfileRow:
    key: str
    platform: str
    tool: str
    evidence: str
    figures: Json
    created_at: datetime
    label: str
    seconds: float
    uses: int
    used_at: datetime


@dataclass(frozen=True)
class NewProfile:
    """A profile to keep. `seconds` is how long it took to measure, `label` what people know it by."""

    key: str
    platform: str
    tool: str
    evidence: str
    figures: Json
    seconds: float
    label: str = ""


@dataclass(frozen=True)
class ProfileKind:
    """What is kept of one tool: how many profiles, how often they spared a measurement, what they cost."""

    tool: str
    evidence: str
    profiles: int
    uses: int
    seconds: float


@dataclass(frozen=True)
class Citations:
    """What a run cites: profiles that were a hit, a miss or a wait, and how long they took to measure."""

    how: str
    profiles: int
    seconds: float


@dataclass(frozen=True)
class RungPair:
    """One design's cycles on two rungs of evidence. `mix` says what kind of work sets its pace."""

    model: str
    design: str
    weaker: str
    stronger: str
    family: str
    mix: str
    weaker_cycles: float
    stronger_cycles: float


@dataclass(frozen=True)
class RungDifference:
    """What pairs say of one rung against a stronger one. Shares of the stronger figure, ratio stronger to weaker."""

    family: str
    weaker: str
    stronger: str
    designs: int
    median_ratio: float
    typical: float
    worst: float


@dataclass(frozen=True)
class Event:
    """Something that happened to a run. Within one run, ids rise in the order of commits."""

    id: int
    run_id: str
    kind: str
    data: Json
    at: datetime
    actor: str | None = None
    """Who asked for it; None for what the service does by itself."""


@dataclass(frozen=True)
class IdempotencyKey:
    """A request that was made once. `status` is None while the first one is still in flight."""

    scope: str
    key: str
    request_hash: str
    status: int | None
    headers: Json | None
    body: Any
    created_at: datetime
