"""Two to six runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from penstock.db import Transaction
from penstock.dse.evaluation.objectives import OBJECTIVES
from penstock.services.api.answers.documents import run_detail, run_list
from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.pages.run import model_trial
from penstock.services.api.plumbing.context import Ctx
from penstock.services.jobs.runs import find_run
from penstock.services.run_options import option_labels
from penstock.services.step_kinds import SIDE_KINDS
from penstock.web.compare_view import LEAST, MOST
from penstock.web.courses import Courses, RunCourse, draw_courses
from penstock.web.render import render_compare
from penstock.web.search_view import axes_of, known_axis
from penstock.web.text import Document

router = APIRouter(include_in_schema=False)

_OFFERED = 40


@router.get("/compare")
def compare_page(
    framed: Framed, context: Ctx, run: Annotated[list[str] | None, Query(max_length=50)] = None
) -> Response:
    """With `run` given two to six times the comparison, else a list to choose from."""
    asked = list(dict.fromkeys(run or ()))
    if not LEAST <= len(asked) <= MOST:
        refused = "" if not asked else f"{len(asked)} runs were asked for: choose {LEAST} to {MOST}."
        with context.database.begin() as tx:
            newest = tx.runs.list(limit=_OFFERED, without_step=SIDE_KINDS)
            recent = [one.model_dump(mode="json") for one in run_list(tx, newest.items)]
        return page(render_compare(framed, recent=recent, refused=refused))
    documents: list[Document] = []
    models: list[Document | None] = []
    sent: list[str] = []
    with context.database.begin() as tx:
        for run_id in asked:
            found = find_run(tx, run_id[:64])
            detail = run_detail(tx, found)
            documents.append(detail.model_dump(mode="json"))
            models.append(model_trial(tx, found, detail))
            model = tx.models.get(found.model_id)
            sent.append("" if model is None else (model.sha256 or "")[:12] or model.source)
        courses = _courses(tx, documents, models)
    return page(
        render_compare(framed, runs=documents, models=models, labels=option_labels(), courses=courses, sent=sent)
    )


def _courses(tx: Transaction, runs: Sequence[Document], models: Sequence[Document | None]) -> Courses | None:
    """Of runs that want the same of one model first, by figures of one evidence."""
    axes = [axes_of(run["options"].get("objectives") or (), OBJECTIVES)[0] for run in runs]
    known = [model for model in models if model]
    kinds = {model["evidence"] for model in known}
    if len({axis.figure for axis in axes}) > 1 or len({run["model"]["name"] for run in runs}) > 1 or len(kinds) != 1:
        return None
    axis = known_axis(axes[0], known)
    falls = tx.trial_pages.falls([run["id"] for run in runs], axis.figure)
    found = [RunCourse(run["name"], falls.get(run["id"], ()), run["progress"]["trials_done"]) for run in runs]
    return draw_courses(found, axis)
