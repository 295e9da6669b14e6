"""What people write beside runs: tags and notes of a run, saved views of the list."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from penstock.services.api.answers.documents import run_detail
from penstock.services.api.answers.labels import MOST_VIEWS, NewView, RunLabels, ViewList, ViewOut, ViewQuery, view_out
from penstock.services.api.answers.params import PROBLEMS, RunId
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import RunDetail
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Ctx
from penstock.services.jobs.runs import find_run, no_run

router = APIRouter(prefix="/v1", tags=["labels"], responses=PROBLEMS)


@router.patch("/runs/{run_id}", summary="Tags and notes of a run")
def label_run(run_id: RunId, asked: RunLabels, context: Ctx, caller: Caller) -> RunDetail:
    """Writes beside the run. What it was asked for and what it found is not touched; the change is an event of it."""
    with context.database.begin(caller.actor) as tx:
        caller.check_may_change(find_run(tx, run_id))
        run = tx.runs.lock(run_id)
        if run is None:
            raise no_run(run_id)
        tags = run.tags if asked.tags is None else list(dict.fromkeys(asked.tags))
        notes = run.notes if asked.notes is None else asked.notes
        changed = run if (tags, notes) == (run.tags, run.notes) else tx.runs.set_labels(run_id, tags, notes)
        return run_detail(tx, changed)


@router.get("/views", summary="Saved views of the list of runs")
def list_views(context: Ctx, caller: Caller) -> ViewList:
    """One's own; of everybody on a service that asks for no tokens."""
    with context.database.begin() as tx:
        return ViewList(items=[view_out(view) for view in tx.views.list(caller.owner)])


@router.post("/views", status_code=201, summary="Save a view of the list of runs")
def save_view(asked: NewView, context: Ctx, caller: Caller) -> ViewOut:
    """Keeps the question under its name; a name that is there already stands for the new question."""
    with context.database.begin(caller.actor) as tx:
        tx.views.hold(caller.owner)
        known = [view.name for view in tx.views.list(caller.owner)]
        if asked.name not in known and len(known) >= MOST_VIEWS:
            raise Problem(
                "quota-exceeded", f"you have {MOST_VIEWS} views", limit=f"at most {MOST_VIEWS} for each owner",
                hint="delete one that nobody needs",
            )  # fmt: skip
        query = asked.model_dump(include=set(ViewQuery.model_fields))
        return view_out(tx.views.save(owner=caller.owner, name=asked.name, query=query))


@router.delete("/views/{view_id}", status_code=204, summary="Delete a saved view")
def delete_view(
    view_id: Annotated[str, Path(max_length=64, description="the id of a view")], context: Ctx, caller: Caller
) -> None:
    """Runs are not touched."""
    with context.database.begin(caller.actor) as tx:
        if not tx.views.delete(view_id, caller.owner):
            raise Problem(
                "view-not-found", f"you have no view '{view_id}'", where="path", hint="GET /v1/views lists them"
            )
