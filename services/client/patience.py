"""How long a client bears with a service that is busy or away: for one request, and while it follows a run."""

from __future__ import annotations

import time
from dataclasses import dataclass

import httpx

from penstock.services.client.errors import BUSY_STATUS, ServiceError, StillRunningError, refusal

OUTAGE_SECONDS = 60.0
RETRIES = 3
_LONGEST_PAUSE = 5.0
_PAUSE_SECONDS = 1.0


def pause_before_retry(response: httpx.Response, retries_left: int) -> float:
    """How long to wait before the same request again; raises what the answer says if that is of no use."""
    if response.status_code not in BUSY_STATUS or retries_left == 0:
        raise refusal(response)
    text = response.headers.get("Retry-After", "1")
    return min(float(text) if text.isdecimal() else 1.0, _LONGEST_PAUSE)


@dataclass
class Patience:
    """While a run is followed: short outages are borne, and the whole may have a time limit."""

    seconds: float | None = None
    _out_since: float | None = None

    def __post_init__(self) -> None:
        self._deadline = None if self.seconds is None else time.monotonic() + self.seconds

    def left(self, run_id: str, state: str, longest: int) -> int:
        """How long the next request may wait for news; raises when the time is over."""
        left = float(longest) if self._deadline is None else self._deadline - time.monotonic()
        if left <= 0:
            line = f"{run_id} is still {state} - it goes on; watch it again, or cancel it"
            raise StillRunningError(line, code="still-running")
        return max(1, min(longest, round(left)))

    def bear(self, error: ServiceError) -> float:
        """How long to pause after that error; raises it if it is no outage, or one that lasts."""
        now = time.monotonic()
        self._out_since = self._out_since or now
        if not error.is_outage or now - self._out_since > OUTAGE_SECONDS:
            raise error
        return _PAUSE_SECONDS

    @property
    def away_seconds(self) -> float:
        return 0.0 if self._out_since is None else time.monotonic() - self._out_since

    def answered(self) -> None:
        self._out_since = None
