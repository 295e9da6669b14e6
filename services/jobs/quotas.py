"""How much of the service one owner may have: runs and trials at once, content kept, hours of steps a month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.db import Transaction
from penstock.services.jobs.refused import RefusedError

GB = 1 << 30


@dataclass(frozen=True)
class Quotas:
    """Limits of each owner; None is no limit. Where nobody is asked for a token, all that is done is one owner's."""

    runs: int | None = None
    trials: int | None = None
    gb: float | None = None
    hours: float | None = None

    @property
    def any(self) -> bool:
        return any(limit is not None for limit in (self.runs, self.trials, self.gb, self.hours))


NO_QUOTAS = Quotas()


def most_of_one(most: int) -> int:
    """Of places that all owners share, how many one may hold: the last quarter is for the others."""
    return max(1, most - most // 4)


def check_quotas(tx: Transaction, owner: str | None, quotas: Quotas, *, runs: int = 0, trials: int = 0) -> None:
    """Refuse what would take an owner over a limit. What is going is left alone."""
    if not quotas.any:
        return
    tx.shares.lock_quotas(owner)  # two requests at once must not both fit into what is left for one
    used = tx.shares.of_owner(owner)
    _check("runs queued or running", used.runs, runs, quotas.runs, "wait for some to end, or cancel some")
    _check("trials of runs that are not over", used.trials, trials, quotas.trials, "ask for fewer, or wait")
    _check("GB of files", round(used.bytes / GB, 3), 0, quotas.gb, "delete runs and models that nobody needs")
    _check("hours of steps this month", round(used.seconds / 3600, 2), 0, quotas.hours, "wait for the next month")


def _check(what: str, used: float, more: float, most: float | None, hint: str) -> None:
    over = most is not None and (used + more > most or (not more and used >= most))
    if over:
        raise RefusedError(
            "quota-exceeded",
            f"you have {used:g} {what}" + (f", and ask for {more:g} more" if more else ""),
            limit=f"at most {most:g} for each owner",
            hint=f"{hint}; an administrator sets the limits",
        )


def asked_trials(options: Mapping[str, object]) -> int:
    trials = options.get("trials")
    return trials if isinstance(trials, int) else 0
