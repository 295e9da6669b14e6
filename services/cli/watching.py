"""Follows a run to its end by long polls, through short outages of the service, and says how it ended."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live

from penstock.services.api.answers.schemas import RunDetail
from penstock.services.cli.exit_codes import CANCELLED, CONSTRAINTS_UNMET, FAILED, OK, UNMET
from penstock.services.cli.progress import change_lines, live_view
from penstock.services.client.blocking import Client
from penstock.services.client.calls import LONGEST_POLL_SECONDS
from penstock.services.client.errors import ServiceError
from penstock.services.client.patience import Patience
from penstock.services.client.states import is_over

_LIVE_POLL_SECONDS = 2  # clocks on the screen move even if nothing happens


def exit_code_of(run: RunDetail) -> int:
    """The documented exit code for the end of a run."""
    if run.state == "succeeded":
        return OK
    if run.state == "cancelled":
        return CANCELLED
    return CONSTRAINTS_UNMET if run.error is not None and run.error.code in UNMET else FAILED


def follow(service: Client, run_id: str, console: Console, *, timeout: float | None = None) -> RunDetail:
    """Shows the run until it is over, and returns its last state."""
    follower = _Follower(service, timeout)
    if console.is_terminal:
        return _follow_live(follower, service.run(run_id), console)
    return _follow_lines(follower, service.run(run_id), console)


class _Follower:
    """Asks for news again and again, and bears with a service that is away for a while."""

    def __init__(self, service: Client, timeout: float | None) -> None:
        self._service = service
        self._patience = Patience(timeout)
        self.note = ""

    def next(self, run: RunDetail, longest: int) -> RunDetail:
        """The run's next state; its last one with a `note` while the service is away."""
        wait = self._patience.left(run.id, run.state, longest)
        try:
            news = self._service.run(run.id, wait=wait, after=run.last_event_id)
        except ServiceError as error:
            pause = self._patience.bear(error)
            away = round(self._patience.away_seconds)
            self.note = f"the service is away for {away} s; the run is safe, trying again"
            time.sleep(pause)
            return run
        self._patience.answered()
        self.note = ""
        return news


def _follow_live(follower: _Follower, run: RunDetail, console: Console) -> RunDetail:
    with Live(live_view(run), console=console, auto_refresh=False, transient=False) as live:
        while not is_over(run):
            run = follower.next(run, _LIVE_POLL_SECONDS)
            live.update(live_view(run, follower.note), refresh=True)
    return run


def _follow_lines(follower: _Follower, run: RunDetail, console: Console) -> RunDetail:
    before: RunDetail | None = None
    noted = False
    while True:
        for line in change_lines(before, run):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if is_over(run):
            return run
        before = run
        run = follower.next(run, LONGEST_POLL_SECONDS)
        if follower.note and not noted:
            console.print(follower.note, markup=False, highlight=False, soft_wrap=True)
        noted = bool(follower.note)
