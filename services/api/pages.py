"""The pages for people: the same documents that the API gives, drawn by web/."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from penstock.compiler.evidence import EVIDENCE_KINDS
from penstock.db import Transaction
from penstock.db.schema.records import Run
from penstock.dse.evaluation.objectives import OBJECTIVES
from penstock.services.api.answers.documents import (
    artifact_out,
    chosen_trial,
    event_out,
    run_detail,
    run_list,
    trial_out,
    trial_state,
)
from penstock.services.api.answers.evidence import differences_out, profiles_out
from penstock.services.api.answers.params import RunId, check_cursor
from penstock.services.api.answers.schemas import RunDetail, StepOut
from penstock.services.api.answers.trials import trial_page
from penstock.services.api.plumbing.auth import caller_of
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.health import check
from penstock.services.jobs.runs import find_run
from penstock.services.run_options import option_labels
from penstock.services.step_kinds import STEP_KINDS, TRIAL, StepKey
from penstock.web.render import render_measurements, render_run, render_runs
from penstock.web.runs_view import FILTERS, Document
from penstock.web.search_view import drawn_figures
from penstock.web.trials_view import SORTS, KnownTrials

router = APIRouter(include_in_schema=False)

PAGE_ROWS = 50
TRIAL_ROWS = 100
SHOWN_EVENTS = 150


@router.get("/")
def start() -> Response:
    """The list of runs is where everybody begins."""
    return RedirectResponse("/runs", status_code=307)


@router.get("/runs")
def runs_page(
    request: Request,
    context: Ctx,
    state: Annotated[str, Query(max_length=20)] = "all",
    cursor: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """The list of runs; an unknown filter shows all of them."""
    if not _may_enter(request, context):
        return _to_login(request)
    check_cursor(cursor, "run")
    state = state if state in FILTERS else "all"
    with context.database.begin() as tx:
        page = tx.runs.list(cursor=cursor, limit=PAGE_ROWS, states=FILTERS[state])
        runs = [run.model_dump(mode="json") for run in run_list(tx, page.items)]
    html = render_runs(
        runs,
        evidence_kinds=EVIDENCE_KINDS,
        service=_service(request, context),
        state=state,
        cursor=cursor,
        next_cursor=page.next_cursor,
        has_login=context.options.auth,
    )
    return _page(html)


@router.get("/runs/{run_id}")
def run_page(
    run_id: RunId,
    request: Request,
    context: Ctx,
    sort: Annotated[str, Query(max_length=20)] = "number",
    cursor: Annotated[str | None, Query(max_length=64)] = None,
    trial: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Response:
    """One run, with a page of its trials: those after the cursor, or from one trial on."""
    if not _may_enter(request, context):
        return _to_login(request)
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        detail = run_detail(tx, run)
        trials = _trials(tx, run, detail, sort if sort in SORTS else "number", cursor, trial)
        files = tx.artifacts.list(run.id, limit=500).items
        keys = {step.id: step.key for step in tx.steps.by_ids({file.step_id for file in files})}
        events = tx.events.newest(run.id, SHOWN_EVENTS)
    html = render_run(
        detail.model_dump(mode="json") | {"steps": [_in_its_turn(step) for step in detail.steps]},
        step_kinds=STEP_KINDS,
        objectives=OBJECTIVES,
        evidence_kinds=EVIDENCE_KINDS,
        option_labels=option_labels(),
        trials=trials,
        artifacts=[artifact_out(file, keys).model_dump(mode="json") for file in files],
        events=[event_out(event).model_dump(mode="json") for event in events],
        service=_service(request, context),
        has_login=context.options.auth,
    )
    return _page(html)


@router.get("/measurements")
def measurements_page(request: Request, context: Ctx) -> Response:
    """What all runs share: measured kernels, and how far the rungs of evidence differ."""
    if not _may_enter(request, context):
        return _to_login(request)
    with context.database.begin() as tx:
        profiles = profiles_out(tx).model_dump(mode="json")
        differences = [one.model_dump(mode="json") for one in differences_out(tx)]
    html = render_measurements(
        profiles,
        differences,
        evidence_kinds=EVIDENCE_KINDS,
        service=_service(request, context),
        has_login=context.options.auth,
    )
    return _page(html)


def _trials(
    tx: Transaction, run: Run, detail: RunDetail, sort: str, cursor: str | None, first: int | None
) -> KnownTrials:
    """All trials as marks of the drawings, and one page of them in full."""
    chosen = chosen_trial(run)
    if first:
        before = tx.steps.by_key(run.id, str(StepKey(TRIAL, first - 1)))
        sort, cursor = "number", before.id if before else None
    page = trial_page(tx, run, sort, cursor, TRIAL_ROWS)
    model = chosen if chosen is not None else detail.best.trial if detail.best else None
    row = None if model is None else tx.trials.step_of(run.id, str(StepKey(TRIAL, model)))
    figures = drawn_figures(run.options.get("objectives") or (), OBJECTIVES)
    return KnownTrials(
        marks=[
            {"number": mark.number, "state": trial_state(mark.state), "evidence": mark.evidence,
             "figures": mark.figures, "chosen": mark.number == chosen}
            for mark in tx.trials.marks(run.id, figures)
        ],
        rows=[trial_out(one, chosen).model_dump(mode="json") for one in page.items],
        model=None if row is None else trial_out(row, chosen).model_dump(mode="json"),
        sort=sort,
        cursor=cursor,
        next_cursor=page.next_cursor,
    )  # fmt: skip


def _in_its_turn(step: StepOut) -> Document:
    return step.model_dump(mode="json") | {"turn": StepKey.parse(step.key).turn}


def _service(request: Request, context: Context) -> Document:
    return check(context, request.app.state.broker, in_full=True).model_dump(mode="json")


def _may_enter(request: Request, context: Context) -> bool:
    return not context.options.auth or caller_of(request, context) is not None


def _to_login(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/login?next={quote(request.url.path + query)}", status_code=303)


def _page(html: str, status: int = 200) -> Response:
    return HTMLResponse(html, status_code=status, headers={"Cache-Control": "no-store"})
