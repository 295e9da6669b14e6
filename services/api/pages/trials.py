"""The trials of a run: a table that is sorted and filtered in its address, the same as CSV, and one trial."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response, StreamingResponse

from penstock.db import Database, Transaction
from penstock.db.repositories.trial_pages import TrialFilter
from penstock.db.schema.records import Run
from penstock.dse.evaluation.objectives import OBJECTIVES
from penstock.services.api.answers.documents import chosen_trial, run_detail, trial_detail, trial_out, trial_state
from penstock.services.api.answers.params import RunId
from penstock.services.api.answers.trials import front_out
from penstock.services.api.pages.drawn import Drawn, Passing
from penstock.services.api.pages.frame import Entered, Framed, page
from penstock.services.api.pages.run import model_trial, run_document
from penstock.services.api.plumbing.context import Ctx
from penstock.services.jobs.runs import find_run, no_trial
from penstock.services.run_options import PlainText
from penstock.services.step_kinds import TRIAL, StepKey
from penstock.web.render import render_over_time, render_slices, render_trial, render_trials
from penstock.web.runs_view import Document
from penstock.web.search_view import ObjectiveAxis, axes_of, known_axis
from penstock.web.trials_view import PAGE_ROWS, STATES, KnownTrials, TrialQuery

router = APIRouter(include_in_schema=False)

CSV_ROWS = 500
MOST_SAMPLED = 2_000
"""Trials that slices and courses are drawn of: every so many where there are more."""
MOST_STRANDS = 150
"""Trials whose settings are drawn beside those of the table."""
_MOST_PAGES = 10_000
_FILTER = re.compile(r"([A-Za-z_][\w.]{0,119})(<=|>=|=)(\S{1,400})")

QueryText = Annotated[PlainText, Query(max_length=1000)]


def _asked(
    sort: QueryText = "",
    falling: Annotated[str, Query(max_length=5)] = "",
    state: Annotated[str, Query(max_length=20)] = "all",
    where: QueryText = "",
    columns: QueryText = "",
    axis: Annotated[list[str] | None, Query(max_length=3)] = None,
    page: Annotated[int, Query(ge=0, le=_MOST_PAGES)] = 0,
) -> TrialQuery:
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    return TrialQuery(
        "" if sort == "number" else sort[:120], bool(falling), state if state in STATES else "all", where.strip(),
        names, tuple(dict.fromkeys(name for name in axis or () if name in OBJECTIVES)), page,
    )  # fmt: skip


AskedOfTable = Annotated[TrialQuery, Depends(_asked)]


def filters_of(where: str) -> tuple[tuple[TrialFilter, ...], str]:
    """What the words ask for, and in a sentence which of them could not be read."""
    found: list[TrialFilter] = []
    for word in where.split():
        match = _FILTER.fullmatch(word)
        if match is None:
            known = "NAME<=VALUE, NAME>=VALUE, NAME=VALUE or NAME=ONE|OTHER"
            return (), f"'{word[:80]}' is no condition: write {known}, without blanks"
        found.append(TrialFilter(*match.groups()))
    return tuple(found), ""


@router.get("/runs/{run_id}/trials")
def trials_page(run_id: RunId, framed: Framed, drawn: Drawn, context: Ctx, query: AskedOfTable) -> Response:
    """The table, with the trade-off above it."""
    conditions, refused = filters_of(query.where)
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        detail = run_detail(tx, run)
        matching, rows = _rows(tx, run, query, conditions, PAGE_ROWS)
        passing = Passing(STATES[query.state], conditions)
        drawings = drawn.of(tx, run, detail.last_event_id, query.axes, passing)
        trials = KnownTrials(
            drawings, rows, model_trial(tx, run, detail), query, matching,
            [(one.name, one.relation, one.value) for one in conditions], passing.of(tx, run), _beside(tx, run),
        )  # fmt: skip
    return page(render_trials(framed, run_document(detail), trials, OBJECTIVES, refused=refused))


@router.get("/runs/{run_id}/trials.csv", dependencies=[Entered])
def trials_csv(run_id: RunId, context: Ctx, query: AskedOfTable) -> Response:
    """Every trial that the table would show, page after page, with all its figures and parameters."""
    conditions, _ = filters_of(query.where)
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
    headers = {"Content-Disposition": f'attachment; filename="{run.id}-trials.csv"', "Cache-Control": "no-store"}
    lines = _lines(context.database, run, query, conditions)
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/runs/{run_id}/trials/{number}")
def trial_page(
    run_id: RunId, number: Annotated[int, Path(ge=0, le=2**31 - 1)], framed: Framed, context: Ctx
) -> Response:
    """One trial with its design, and why it was not taken."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        row = tx.trials.step_of(run.id, str(StepKey(TRIAL, number)))
        if row is None:
            raise no_trial(run_id, number)
        step = tx.steps.get(row.step_id)
        found, detail = tx.trials.by_number(run.id, number), run_detail(tx, run)
        model = model_trial(tx, run, detail)
        front = [one.number for one in front_out(tx, run, None).items]
    why = step.result if step is not None else None
    trial = trial_detail(row, chosen_trial(run), found.design if found else None, why).model_dump(mode="json")
    return page(render_trial(framed, run_document(detail), trial, model=model, front=front, objectives=OBJECTIVES))


@router.get("/runs/{run_id}/slices")
def slices_page(run_id: RunId, framed: Framed, context: Ctx, across: QueryText = "", down: QueryText = "") -> Response:
    """What each parameter does to what the search wants first, and two of them together."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        detail = run_detail(tx, run)
        axis = axes_of(run.options.get("objectives") or (), OBJECTIVES)[0]
        model = model_trial(tx, run, detail)
        known = known_axis(axis, [model] if model else [])
        count, sample = tx.trial_pages.sample(run.id, known.figure, MOST_SAMPLED)
    return page(render_slices(framed, run_document(detail), sample, count, known, across, down))


@router.get("/runs/{run_id}/over-time")
def over_time_page(run_id: RunId, framed: Framed, context: Ctx, of: QueryText = "") -> Response:
    """The trials that ended by their number and by the clock; of one objective, the first asked for unless named."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        detail = run_detail(tx, run)
        asked: list[str] = [name for name in run.options.get("objectives") or () if name in OBJECTIVES]
        name = of if of in OBJECTIVES else next(iter(asked), "latency")
        model = model_trial(tx, run, detail)
        axis = known_axis(ObjectiveAxis.of(OBJECTIVES[name]), [model] if model else [])
        count, ended = tx.trial_pages.ended(run.id, axis.figure, MOST_SAMPLED)
    names = {name: objective.axis for name, objective in OBJECTIVES.items()}
    return page(render_over_time(framed, run_document(detail), ended, count, axis, names, name))


def _beside(tx: Transaction, run: Run) -> list[Document]:
    chosen = chosen_trial(run)
    spread = tx.trial_pages.spread(run.id, MOST_STRANDS)
    return [
        {"number": one.number, "state": trial_state(one.state), "chosen": one.number == chosen, "params": one.params,
         "figures": one.figures}
        for one in spread
    ]  # fmt: skip


def _rows(
    tx: Transaction, run: Run, query: TrialQuery, conditions: Sequence[TrialFilter], limit: int
) -> tuple[int, list[Document]]:
    matching, rows = tx.trial_pages.page(
        run.id, sort=query.sort, falling=query.falling, states=STATES[query.state], filters=conditions,
        offset=query.page * limit, limit=limit,
    )  # fmt: skip
    chosen = chosen_trial(run)
    return matching, [trial_out(row, chosen).model_dump(mode="json") for row in rows]


def _lines(database: Database, run: Run, query: TrialQuery, conditions: Sequence[TrialFilter]) -> Iterator[str]:
    """CSV as it comes from the database, so that a long search is never in memory as a whole."""
    with database.begin() as tx:
        figures, params = tx.trial_pages.names(run.id)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["trial", "state", "chosen", "evidence", *figures, *params, "seconds", "error"])
    for number in range(_MOST_PAGES):
        with database.begin() as tx:
            _, rows = _rows(tx, run, replace(query, page=number), conditions, CSV_ROWS)
        for row in rows:
            writer.writerow(
                [row["number"], row["state"], row["chosen"], row["evidence"] or ""]
                + [row["figures"].get(name, "") for name in figures]
                + [_plain(row["params"].get(name, "")) for name in params]
                + [row["seconds"] if row["seconds"] is not None else "", _plain((row["error"] or {}).get("what", ""))]
            )
        yield text.getvalue()
        text.seek(0)
        text.truncate()
        if len(rows) < CSV_ROWS:
            return


def _plain(value: object) -> object:
    """Text that a spreadsheet takes for text, whatever it begins with."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@" and value else value
