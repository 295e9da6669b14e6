"""What is drawn of all trials of a run is drawn once for each event of the run, however many tabs ask.

Of ten thousand trials that is most of what a page costs, and nothing but an event can change it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from penstock.db import Transaction
from penstock.db.repositories.trial_pages import TrialFilter
from penstock.db.schema.records import Run
from penstock.dse.evaluation.objectives import OBJECTIVES
from penstock.services.api.answers.documents import chosen_trial, trial_state
from penstock.web.runs_view import Document
from penstock.web.search_view import drawn_figures
from penstock.web.trial_drawings import TrialDrawings, draw_trials

KEPT = 32


@dataclass(frozen=True)
class Passing:
    """What is asked of trials."""

    states: tuple[str, ...] = ()
    filters: tuple[TrialFilter, ...] = ()

    def of(self, tx: Transaction, run: Run) -> frozenset[int] | None:
        """Those that pass; None where nothing is asked."""
        if not self.states and not self.filters:
            return None
        return tx.trial_pages.numbers(run.id, states=self.states, filters=self.filters)


@dataclass
class _Place:
    lock: threading.Lock = field(default_factory=threading.Lock)
    drawings: TrialDrawings | None = None


class DrawnTrials:
    """The drawings of the runs that were looked at last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: OrderedDict[tuple[str, int, tuple[str, ...], Passing], _Place] = OrderedDict()

    def of(
        self, tx: Transaction, run: Run, last_event_id: int, axes: Sequence[str] = (), passing: Passing | None = None
    ) -> TrialDrawings:
        """Over these objectives, or those of the run; trials that do not pass are pale.

        `last_event_id` was read before: what is drawn may be newer, and is drawn again with the next event. Who
        comes while it is drawn waits for it.
        """
        asked = tuple(axes) or tuple(run.options.get("objectives") or ())
        key = (run.id, last_event_id, asked, passing or Passing())
        with self._lock:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
            while len(self._places) > KEPT:
                self._places.popitem(last=False)
        with place.lock:
            if place.drawings is None:
                options = {**run.options, "objectives": asked}
                kept = passing.of(tx, run) if passing else None
                place.drawings = draw_trials(options, run.summary, _marks(tx, run, asked), OBJECTIVES, kept)
            return place.drawings


def _marks(tx: Transaction, run: Run, asked: Sequence[str]) -> list[Document]:
    """All trials, each with no more than the drawings need."""
    chosen = chosen_trial(run)
    figures = drawn_figures(asked, OBJECTIVES)
    return [
        {"number": mark.number, "state": trial_state(mark.state), "evidence": mark.evidence,
         "figures": mark.figures, "chosen": mark.number == chosen}
        for mark in tx.trials.marks(run.id, figures)
    ]  # fmt: skip


def _drawn(request: Request) -> DrawnTrials:
    drawn: DrawnTrials = request.app.state.drawn
    return drawn


Drawn = Annotated[DrawnTrials, Depends(_drawn)]
