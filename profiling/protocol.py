"""The one interface of all that measures: a request in, a profile with its evidence out, typed failures.

A profile is a function of its content key (text, platform, clock, tool, version), so it may be kept for ever
and shared by everybody who asks for the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import EVIDENCE, Evidence
from penstock.compiler.platforms import Resources

SCHEMA = "penstock.profile/1"

FailureKind = Literal[
    "tool-missing", "tool-failed", "timeout", "out-of-memory", "licence", "report-missing",
    "report-unreadable", "deadlock", "wrong-result", "bad-request", "source-error", "csim-mismatch", "cosim-failed",
    "timing-not-met", "disk-full", "bad-target", "cancelled",
]  # fmt: skip


def failure_kind(code: str) -> FailureKind | None:
    """The kind of a failed measurement by its error's code; None for other errors."""
    return next((kind for kind in get_args(FailureKind) if code == f"profile-{kind}"), None)


@dataclass(frozen=True)
class ProfileRequest:
    """What to measure: a stream-level module as text (a nest in its task, a task, or a whole design)."""

    name: str
    text: str
    platform: str
    clock_mhz: float

    def key(self, tool: str, tool_version: str) -> str:
        """The content key. The name is not part of it: the same text is the same hardware."""
        parts = [self.text, self.platform, repr(float(self.clock_mhz)), tool, tool_version]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Profile:
    """What a tool says. A figure that the tool does not give is None, never 0.

    `ii` and `depth` belong to a single kernel; a design of several has none of its own.
    """

    key: str
    name: str
    tool: str
    tool_version: str
    evidence: Evidence
    clock_mhz: float
    latency_cycles: int
    interval_cycles: int
    initial_delay_cycles: int
    ii: int | None
    depth: int | None
    resources: Resources | None
    fmax_mhz: float | None = None
    report: Mapping[str, Any] | None = None
    """What else the tool's report says, as JSON of the profiler's own."""

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @staticmethod
    def from_json(document: dict[str, Any]) -> Profile:
        """Read what `to_json` wrote; a document of another schema is refused."""
        fields = dict(document)
        if fields.pop("schema", None) != SCHEMA or fields.get("evidence") not in EVIDENCE:
            raise PenstockError(
                code="bad-profile", what="not a profile record of this version",
                limit=f"this version reads {SCHEMA}", hint="profile the kernel again",
            )  # fmt: skip
        try:
            area = fields["resources"]
            return Profile(**{**fields, "resources": None if area is None else Resources(**area)})
        except (KeyError, TypeError) as error:
            raise PenstockError(
                code="bad-profile",
                what=f"the profile record does not fit: {error}",
                hint="profile the kernel again",
            ) from error


class ProfilingError(PenstockError):
    """A measurement that did not come about. `kind` says why; `log_tail` holds the tool's last words."""

    def __init__(
        self,
        kind: FailureKind,
        *,
        what: str,
        where: str = "",
        limit: str = "",
        hint: str = "",
        log_tail: str = "",
    ) -> None:
        super().__init__(code=f"profile-{kind}", what=what, where=where, limit=limit, hint=hint)
        self.kind: FailureKind = kind
        self.log_tail = log_tail

    def to_dict(self) -> dict[str, str]:
        """With the end of the log, where there is one."""
        return super().to_dict() | ({"log_tail": self.log_tail} if self.log_tail else {})

    @property
    def retry_later(self) -> bool:
        """Whether the same job may succeed later as it is: such an attempt does not count."""
        return self.kind == "licence"


@runtime_checkable
class Profiler(Protocol):
    """One way to measure. Implementations are stateless: equal requests give equal profiles."""

    @property
    def tool(self) -> str:
        """The tool's name, part of the content key."""
        ...

    @property
    def evidence(self) -> Evidence:
        """What its figures count as."""
        ...

    def version(self) -> str:
        """The tool's version, part of the content key; raises "tool-missing" where it is not there."""
        ...

    def profile(self, request: ProfileRequest) -> Profile:
        """Measure, or raise `ProfilingError`."""
        ...
