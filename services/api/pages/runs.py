"""The list of runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from penstock.compiler.platforms import platform_names
from penstock.services.api.answers.documents import first_figure, run_list
from penstock.services.api.answers.labels import view_out
from penstock.services.api.answers.params import check_cursor
from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.plumbing.auth import caller_of
from penstock.services.api.plumbing.context import Ctx
from penstock.services.run_options import PlainText
from penstock.services.step_kinds import SIDE_KINDS
from penstock.web.course_view import Fall
from penstock.web.render import render_runs
from penstock.web.runs_view import FILTERS, SIDE, RunQuery

router = APIRouter(include_in_schema=False)

PAGE_ROWS = 50
MOST_TAGS = 12
"""Tags that are offered beside the search: those of the most runs."""
MOST_SPARKED = 5_000
"""Trials of all runs of a page together whose course is drawn: beyond that the older runs have none."""


@router.get("/")
def start() -> Response:
    """The list of runs is where everybody begins."""
    return RedirectResponse("/runs", status_code=307)


@router.get("/runs")
def runs_page(
    request: Request,
    framed: Framed,
    context: Ctx,
    state: Annotated[str, Query(max_length=20)] = "all",
    cursor: Annotated[str | None, Query(max_length=64)] = None,
    words: Annotated[PlainText, Query(max_length=200)] = "",
    platform: Annotated[PlainText, Query(max_length=64)] = "",
    owner: Annotated[PlainText, Query(max_length=200)] = "",
    tag: Annotated[PlainText, Query(max_length=40)] = "",
) -> Response:
    """The list of runs; an unknown filter shows all of them."""
    check_cursor(cursor, "run")
    asked = RunQuery(
        state if state in FILTERS else "all", words.strip(), platform, owner.strip(), tag.strip(), cursor or ""
    )
    who = caller_of(request, context) if context.options.auth else None
    with context.database.begin() as tx:
        found = tx.runs.list(
            cursor=cursor,
            limit=PAGE_ROWS,
            states=FILTERS[asked.state],
            owner=asked.owner or None,
            platform=asked.platform or None,
            words=asked.words,
            tag=asked.tag,
            with_step=SIDE_KINDS if asked.state == SIDE else (),
            without_step=() if asked.state == SIDE else SIDE_KINDS,
        )
        documents = run_list(tx, found.items)
        tags = list(tx.runs.tags(MOST_TAGS))
        views = [view_out(view).model_dump(mode="json") for view in tx.views.list(who.owner if who else None)]
        courses: dict[str, list[Fall]] = {}
        left = MOST_SPARKED
        by_figure: dict[str, list[str]] = {}
        for run, document in zip(found.items, documents, strict=True):
            left -= document.progress.trials_done
            if left >= 0:
                by_figure.setdefault(first_figure(run), []).append(run.id)
        for figure, ids in by_figure.items():
            courses |= tx.trial_pages.falls(ids, figure)
    html = render_runs(
        framed,
        [document.model_dump(mode="json") for document in documents],
        courses=courses,
        asked=asked,
        next_cursor=found.next_cursor,
        platforms=platform_names(),
        tags=tags,
        views=views,
    )
    return page(html)
