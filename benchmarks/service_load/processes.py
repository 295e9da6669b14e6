"""What the processes of a private service take: processor time and memory, by what each of them is."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping

import psutil

_MARKS = {
    "serve_api": "api", "services.worker.dispatcher": "dispatcher", "services.worker": "worker",
    "redis-server": "redis", "postgres": "postgres", "services.cli.main": "supervisor",
}  # fmt: skip


def cpu_seconds() -> Mapping[str, float]:
    """User and system time so far of each kind of process below this one, those that have ended among them."""
    spent: dict[str, float] = defaultdict(float)
    for kind, process in _ours():
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            spent[kind] += times.user + times.system + times.children_user + times.children_system
    return spent


def memory_mb() -> Mapping[str, float]:
    """The largest process of each kind, by what would be free without it: shared pages are divided."""
    held: dict[str, float] = {}
    for kind, process in _ours():
        with contextlib.suppress(psutil.Error):
            held[kind] = max(held.get(kind, 0.0), process.memory_full_info().pss / 2**20)
    return held


def _ours() -> list[tuple[str, psutil.Process]]:
    found: list[tuple[str, psutil.Process]] = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = " ".join(process.cmdline())
            kind = next((kind for mark, kind in _MARKS.items() if mark in words), None)
            if kind is not None:
                found.append((kind, process))
    return found
