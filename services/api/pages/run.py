"""A run's own pages: what is going on and what it found; its log and its files."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from penstock.db import Transaction
from penstock.db.schema.records import Run
from penstock.services.api.answers.documents import (
    artifact_out,
    chosen_trial,
    event_out,
    run_detail,
    trial_out,
)
from penstock.services.api.answers.params import RunId
from penstock.services.api.answers.schemas import RunDetail
from penstock.services.api.pages.drawn import Drawn
from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.plumbing.context import Ctx
from penstock.services.jobs.runs import find_run
from penstock.services.run_options import option_labels
from penstock.services.step_kinds import STEP_KINDS, TRIAL, StepKey
from penstock.web.event_lines import ORDINARY, QUIET
from penstock.web.render import render_log, render_run
from penstock.web.runs_view import Document
from penstock.web.trials_view import KnownTrials

router = APIRouter(include_in_schema=False)

SHOWN_EVENTS = 150


@router.get("/runs/{run_id}")
def run_page(run_id: RunId, framed: Framed, drawn: Drawn, context: Ctx) -> Response:
    """One run: how far it is, and what it found."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        detail = run_detail(tx, run)
        trials = KnownTrials(drawn.of(tx, run, detail.last_event_id), model=model_trial(tx, run, detail))
        files = files_of(tx, run)
        newest = tx.events.newest(run.id, 1)
    html = render_run(
        framed,
        run_document(detail),
        step_kinds=STEP_KINDS,
        option_labels=option_labels(),
        trials=trials,
        artifacts=files,
        last_news=newest[0].at.isoformat() if newest else None,
    )
    return page(html)


@router.get("/runs/{run_id}/log")
def run_log_page(run_id: RunId, framed: Framed, context: Ctx) -> Response:
    """What happened, which step did it, and every file."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        document = run_document(run_detail(tx, run))
        files = files_of(tx, run)
        found = tx.events.newest(run.id, SHOWN_EVENTS, without=QUIET, ordinary=ORDINARY, of=f"{TRIAL}/")
    events = [event_out(event).model_dump(mode="json") for event in found]
    return page(render_log(framed, document, step_kinds=STEP_KINDS, artifacts=files, events=events))


def run_document(detail: RunDetail) -> Document:
    steps = [step.model_dump(mode="json") | {"turn": StepKey.parse(step.key).turn} for step in detail.steps]
    return detail.model_dump(mode="json") | {"steps": steps}


def files_of(tx: Transaction, run: Run) -> list[dict[str, Any]]:
    """The newest first."""
    files = tx.artifacts.list(run.id, limit=500).items
    keys = {step.id: step.key for step in tx.steps.by_ids({file.step_id for file in files})}
    return [artifact_out(file, keys).model_dump(mode="json") for file in files]


def model_trial(tx: Transaction, run: Run, detail: RunDetail) -> Document | None:
    """What the others are compared with: the chosen trial, or the best so far."""
    chosen = chosen_trial(run)
    number = chosen if chosen is not None else detail.best.trial if detail.best else None
    row = None if number is None else tx.trials.step_of(run.id, str(StepKey(TRIAL, number)))
    return None if row is None else trial_out(row, chosen).model_dump(mode="json")
