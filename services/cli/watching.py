"""Follows a run to its end by long polls, through short outages of the service, and says how it ended."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live

from penstock.services.api.answers.schemas import RunDetail
from penstock.services.cli.client import LONGEST_POLL_SECONDS, Service, ServiceError
from penstock.services.cli.exit_codes import CANCELLED, CONSTRAINTS_UNMET, FAILED, OK, TIMEOUT, UNMET
from penstock.services.cli.progress import change_lines, live_view

OVER = ("succeeded", "failed", "cancelled")
OUTAGE_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
_LIVE_POLL_SECONDS = 2  # clocks on the screen move even if nothing happens


class WatchTimeoutError(Exception):
    """The run was not over in time; it goes on."""

    exit_code = TIMEOUT

    def one_line(self) -> str:
        return str(self)


def exit_code_of(run: RunDetail) -> int:
    """The documented exit code for the end of a run."""
    if run.state == "succeeded":
        return OK
    if run.state == "cancelled":
        return CANCELLED
    return CONSTRAINTS_UNMET if run.error is not None and run.error.code in UNMET else FAILED


def follow(service: Service, run_id: str, console: Console, *, timeout: float | None = None) -> RunDetail:
    """Shows the run until it is over, and returns its last state."""
    follower = _Follower(service, None if timeout is None else time.monotonic() + timeout)
    if console.is_terminal:
        return _follow_live(follower, service.run(run_id), console)
    return _follow_lines(follower, service.run(run_id), console)


class _Follower:
    """Asks for news again and again, and bears with a service that is away for a while."""

    def __init__(self, service: Service, deadline: float | None) -> None:
        self._service = service
        self._deadline = deadline
        self._out_since: float | None = None
        self.note = ""

    def next(self, run: RunDetail, longest: int) -> RunDetail:
        """The run's next state; its last one with a `note` while the service is away."""
        left = float(longest) if self._deadline is None else self._deadline - time.monotonic()
        if left <= 0:
            raise WatchTimeoutError(f"{run.id} is still {run.state} - it goes on; watch it again, or cancel it")
        try:
            wait = max(1, min(longest, round(left)))
            news = self._service.run(run.id, wait=wait, after=run.last_event_id)
        except ServiceError as error:
            now = time.monotonic()
            self._out_since = self._out_since or now
            if not error.is_outage or now - self._out_since > OUTAGE_SECONDS:
                raise
            self.note = f"the service is away for {round(now - self._out_since)} s; the run is safe, trying again"
            time.sleep(_PAUSE_SECONDS)
            return run
        self._out_since, self.note = None, ""
        return news


def _follow_live(follower: _Follower, run: RunDetail, console: Console) -> RunDetail:
    with Live(live_view(run), console=console, auto_refresh=False, transient=False) as live:
        while run.state not in OVER:
            run = follower.next(run, _LIVE_POLL_SECONDS)
            live.update(live_view(run, follower.note), refresh=True)
    return run


def _follow_lines(follower: _Follower, run: RunDetail, console: Console) -> RunDetail:
    before: RunDetail | None = None
    noted = False
    while True:
        for line in change_lines(before, run):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if run.state in OVER:
            return run
        before = run
        run = follower.next(run, LONGEST_POLL_SECONDS)
        if follower.note and not noted:
            console.print(follower.note, markup=False, highlight=False, soft_wrap=True)
        noted = bool(follower.note)
