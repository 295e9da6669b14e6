"""What a monitor wants to know, in Prometheus' text format: queues, workers, licences, what owners used, the disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from penstock.services.api.plumbing.context import Context
from penstock.services.api.plumbing.health import HealthLook
from penstock.services.version import version

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]


class MetricLines:
    """Lines of the format, each metric once with its help and its kind."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, name: str, kind: str, meaning: str, values: Iterable[tuple[Labels, float]]) -> None:
        found = [f"penstock_{name}{_labelled(labels)} {value:.12g}" for labels, value in values]
        self._lines += [f"# HELP penstock_{name} {meaning}", f"# TYPE penstock_{name} {kind}", *found]

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def measured(context: Context, look: HealthLook) -> str:
    """One look at everything; raises what the database raises when it is away."""
    settings = context.settings
    with context.database.begin() as tx:
        ages, running, runs = tx.queues.ages(), tx.queues.running(), tx.runs.count_by_state()
        licences, used, lost = tx.queues.licences_in_use(), tx.shares.totals(), tx.attempts.lost()
        trials = tx.trials.made_lately(hours=1.0)
    now = datetime.now(UTC)
    alive = [sign for sign in look.workers if sign.alive]
    slots: dict[str, int] = {}
    for sign in alive:
        for queue in sign.queues:
            slots[queue] = slots.get(queue, 0) + sign.concurrency
    page = MetricLines()
    page.add("info", "gauge", "The version of the API.", [({"version": version()}, 1)])
    page.add("broker_up", "gauge", "Whether the broker answers.", [({}, float(not look.problem))])
    page.add("runs", "gauge", "Runs by state.", [({"state": state}, count) for state, count in runs.items()])
    waiting = [({"queue": age.queue}, age.waiting) for age in ages]
    page.add("queue_waiting", "gauge", "Steps that could be done now and wait for a worker.", waiting)
    oldest = [({"queue": age.queue}, max(0.0, (now - age.oldest).total_seconds())) for age in ages]
    page.add("queue_oldest_seconds", "gauge", "How long the oldest of them has waited.", oldest)
    page.add("steps_running", "gauge", "Steps being worked on.", [({"queue": q}, n) for q, n in running.items()])
    page.add("workers_alive", "gauge", "Workers that gave a sign of life lately.", [({}, len(alive))])
    page.add("worker_slots", "gauge", "Steps that they can do at once.", [({"queue": q}, n) for q, n in slots.items()])
    wanted = {age.queue: age.waiting for age in ages}
    for queue, count in running.items():
        wanted[queue] = wanted.get(queue, 0) + count
    page.add(
        "workers_wanted", "gauge", "Steps that could run now: the slots to have of each queue, for autoscaling.",
        [({"queue": queue}, count) for queue, count in wanted.items()],
    )  # fmt: skip
    page.add("leases_lost_total", "counter", "Steps taken back from workers that died.", [({}, lost)])
    page.add("trials_last_hour", "gauge", "Trials that ended in the last hour.", [({}, trials)])
    steps = [({"owner": owner}, count) for owner, (count, _) in used.items()]
    page.add("attempts_total", "counter", "Attempts at steps that ended, by the owner of the run.", steps)
    seconds = [({"owner": owner}, total) for owner, (_, total) in used.items()]
    page.add("step_seconds_total", "counter", "Time that they took.", seconds)
    held = [({"licence": name}, licences.get(name, 0)) for name in settings.licences]
    page.add("licences_in_use", "gauge", "Counted licences that running steps hold.", held)
    there = [({"licence": name}, count) for name, count in settings.licences.items()]
    page.add("licences", "gauge", "How many of them there are.", there)
    free = shutil.disk_usage(settings.home).free
    page.add("disk_free_bytes", "gauge", "Room where the service keeps its files.", [({}, free)])
    page.add("streams", "gauge", "Event streams and long polls of this process.", [({}, context.hub.listeners)])
    return page.text()


def _labelled(labels: Labels) -> str:
    if not labels:
        return ""
    shown = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(shown) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
