"""All trials of a run, however many: their pages in any order, what a drawing needs of them, the front of them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.db import Transaction
from penstock.db.repositories.trials import TrialRow
from penstock.db.schema.records import Page, Run
from penstock.dse.evaluation.choosing import unbeaten
from penstock.dse.evaluation.objectives import DEFAULT_OBJECTIVES, OBJECTIVES
from penstock.services.api.answers.documents import chosen_trial
from penstock.services.api.answers.params import check_cursor
from penstock.services.api.answers.schemas import FrontTrial, TrialFront


def trial_page(tx: Transaction, run: Run, sort: str, cursor: str | None, limit: int) -> Page[TrialRow]:
    """One page of the trials; `sort` is the name of an objective, or everything is by number."""
    objective = OBJECTIVES.get(sort)
    if objective is not None:
        return tx.trials.by_figures(run.id, (objective.plotted, objective.figure), cursor=cursor, limit=limit)
    check_cursor(cursor, "stp")
    return tx.trials.list_steps(run.id, cursor=cursor, limit=limit)


def front_out(tx: Transaction, run: Run, asked: Sequence[str] | None) -> TrialFront:
    """What no other trial beats in all objectives; figures of different evidence are not compared."""
    names = list(dict.fromkeys(asked or run.options.get("objectives") or DEFAULT_OBJECTIVES))
    names = [name for name in names if name in OBJECTIVES] or list(DEFAULT_OBJECTIVES)
    figures = [OBJECTIVES[name].figure for name in names]
    marks = [
        mark for mark in tx.trials.marks(run.id, figures)
        if mark.state == "complete" and all(figure in mark.figures for figure in figures)
    ]  # fmt: skip
    evidence = Counter(mark.evidence for mark in marks).most_common(1)[0][0] if marks else None
    compared = [mark for mark in marks if mark.evidence == evidence]
    front = unbeaten([tuple(mark.figures[figure] for figure in figures) for mark in compared])
    chosen = chosen_trial(run)
    return TrialFront(
        objectives=names,
        evidence=evidence,
        compared=len(compared),
        items=[
            FrontTrial(number=one.number, figures=dict(one.figures), chosen=one.number == chosen)
            for one in (compared[place] for place in front)
        ],
    )
