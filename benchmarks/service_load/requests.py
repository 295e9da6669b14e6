"""Requests at a given rate, and one after the other: how long each took, and what those who answered computed."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import httpx

from benchmarks.registry import Value
from benchmarks.service_load.processes import cpu_seconds

ANSWERING, LOAD = ("api", "postgres"), "load"
"""Kinds of processes: those that answer, and what asks."""


async def at_rate(
    ask: Callable[[int], Awaitable[httpx.Response]], *, each_second: float, seconds: float
) -> list[float]:
    """Milliseconds from when each request was due to its answer: a service that is late makes no request rarer."""
    began = time.monotonic()

    async def one(number: int) -> float:
        due = began + number / each_second
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        (await ask(number)).raise_for_status()
        return (time.monotonic() - due) * 1000

    return list(await asyncio.gather(*(one(number) for number in range(int(each_second * seconds)))))


async def in_turn(ask: Callable[[], Awaitable[httpx.Response]], times: int) -> tuple[list[float], int]:
    """Milliseconds of each, and the size of the last answer."""
    taken: list[float] = []
    size = 0
    for _ in range(times):
        began = time.monotonic()
        answer = await ask()
        taken.append((time.monotonic() - began) * 1000)
        answer.raise_for_status()
        size = len(answer.content)
    return taken, size


class CpuMeter:
    """Processor time of the service's processes for the length of a `with` block; and of this one, the load."""

    def __enter__(self) -> CpuMeter:
        self._before = _so_far()
        self.spent: Mapping[str, float] = {}
        return self

    def __exit__(self, *_: object) -> None:
        after = _so_far()
        self.spent = {kind: after[kind] - self._before.get(kind, 0.0) for kind in after}

    def of(self, kinds: Sequence[str]) -> float:
        return sum(self.spent.get(kind, 0.0) for kind in kinds)


def _so_far() -> Mapping[str, float]:
    return {**cpu_seconds(), LOAD: time.process_time()}


def row(measure: str, taken: Sequence[float], meter: CpuMeter, kb: float | None = None) -> Mapping[str, Value]:
    """A line of the table: times by the clock, and processor time a request."""
    cpu = {
        "cpu_ms": round(meter.of(ANSWERING) / len(taken) * 1000, 2),
        "api_cpu_ms": round(meter.of(("api",)) / len(taken) * 1000, 2),
        "load_cpu_ms": round(meter.of((LOAD,)) / len(taken) * 1000, 2),
    }
    return {**times(measure, taken), **cpu, "kb": kb}


def times(measure: str, taken: Sequence[float]) -> Mapping[str, Value]:
    """The same without what it cost."""
    ordered = sorted(taken)
    return {
        "measure": measure,
        "requests": len(ordered),
        "first_ms": round(taken[0], 1),
        "p50_ms": round(statistics.median(ordered), 1),
        "p95_ms": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
    }
