"""Templates filled with the documents of the API: every function takes plain records and returns HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from penstock.web import text
from penstock.web.measurements_view import view_profiles
from penstock.web.run_view import OptionLabels, StepKinds, view_run
from penstock.web.rungs_view import view_rungs
from penstock.web.runs_view import FILTERS, Document, view_runs
from penstock.web.search_view import ObjectiveViews
from penstock.web.trials_view import KnownTrials


class EvidenceLook(Protocol):
    """What a label says of one kind of evidence; whoever fills the pages knows all kinds."""

    @property
    def meaning(self) -> str: ...
    @property
    def look(self) -> str: ...


EvidenceKinds = Mapping[Any, EvidenceLook]


@cache
def environment() -> Environment:
    """The template environment; whatever a template misspells is an error, never an empty place."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "quantity": text.quantity,
        "microseconds": text.microseconds,
        "percent": text.percent,
        "size": text.size,
        "clock": text.clock,
        "stamp": text.stamp,
    }
    return made


def render_runs(
    runs: Sequence[Document],
    *,
    evidence_kinds: EvidenceKinds,
    service: Document,
    state: str,
    cursor: str | None,
    next_cursor: str | None,
    has_login: bool,
    now: datetime | None = None,
) -> str:
    """The list of runs."""
    return _page(
        "runs.html",
        evidence_kinds=evidence_kinds,
        service=service,
        has_login=has_login,
        rows=view_runs(runs, now or datetime.now(UTC)),
        filters=FILTERS,
        state=state,
        cursor=cursor,
        next_cursor=next_cursor,
    )


def render_run(
    run: Document,
    *,
    evidence_kinds: EvidenceKinds,
    option_labels: OptionLabels,
    step_kinds: StepKinds,
    objectives: ObjectiveViews,
    trials: KnownTrials,
    artifacts: Sequence[Document],
    events: Sequence[Document],
    service: Document,
    has_login: bool,
    now: datetime | None = None,
) -> str:
    """One run."""
    view = view_run(
        run,
        trials=trials,
        artifacts=artifacts,
        events=events,
        workers_alive=int(service["workers_alive"]),
        option_labels=option_labels,
        step_kinds=step_kinds,
        objectives=objectives,
        now=now or datetime.now(UTC),
    )
    return _page("run.html", evidence_kinds=evidence_kinds, service=service, has_login=has_login, view=view)


def render_measurements(
    profiles: Document,
    differences: Sequence[Document],
    *,
    evidence_kinds: EvidenceKinds,
    service: Document,
    has_login: bool,
) -> str:
    """What all runs share."""
    return _page(
        "measurements.html",
        evidence_kinds=evidence_kinds,
        service=service,
        has_login=has_login,
        profiles=profiles,
        kept=view_profiles(profiles),
        rungs=view_rungs(differences),
    )


def render_problem(document: Mapping[str, Any]) -> str:
    """An error as a page: what, where, which limit, what to do next."""
    return _page("problem.html", service=None, has_login=False, problem=document)


def render_login(*, failure: str, next_page: str) -> str:
    """The form that takes a token."""
    return _page("login.html", service=None, has_login=False, failure=failure, next_page=next_page)


def _page(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)
