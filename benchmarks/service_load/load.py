"""A private service under load: submissions, ten thousand steps that do nothing, watchers, pages, cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from benchmarks.registry import Value
from benchmarks.service_load import WAITING
from benchmarks.service_load.fairness import FEW, Fairness, measure_fairness, token_of_another
from benchmarks.service_load.processes import memory_mb
from benchmarks.service_load.requests import CpuMeter, at_rate, in_turn, row, times
from benchmarks.service_load.streams import EventReader
from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.borrowed import borrowed_stack
from penstock.services.supervisor.protocol import allow_many_connections

ROOT = Path(__file__).resolve().parents[2]
POSTS_A_SECOND, POST_SECONDS = 50.0, 12.0
IDLE_STREAMS, WATCHERS = 1000, 8
PAGE_TIMES, CANCELLED = 12, 200
LONGEST_SECONDS = 300.0
"""A quiet machine takes one minute."""
WITH_GOALS = 3
_HTML = {"Accept": "text/html"}
_OF_STEPS = {
    b"step.create": "steps made, all in one transaction",
    b"step.claim": "steps begun",
    b"step.succeed": "steps done",
}
_SETTINGS = {
    "PENSTOCK_STEP_MODULES": "benchmarks.service_load.noop",
    "PENSTOCK_MAX_WAITING_RUNS": "10000",
    "PYTHONPATH": str(ROOT),
}


@dataclass(frozen=True)
class LoadFigures:
    rows: list[Mapping[str, Value]]
    summary: Mapping[str, Value]


def measure_load(trials: int = 10_000, idle: int = IDLE_STREAMS) -> LoadFigures:
    """Everything that has a goal, on a service of its own."""
    allow_many_connections()
    with borrowed_stack(**_SETTINGS) as stack:
        return asyncio.run(_Load(stack.url, stack.token, token_of_another(stack), trials, idle).in_time())


class _Load:
    def __init__(self, url: str, token: str, other: str, trials: int, idle: int) -> None:
        self.url, self.token, self.other, self.trials, self.idle = url, token, other, trials, idle
        # shorter than the service keeps a connection: none is used that it is just closing
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=200, keepalive_expiry=2.0)
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.AsyncClient(base_url=url, headers=headers, timeout=120.0, limits=limits)
        self.rows: list[Mapping[str, Value]] = []

    async def in_time(self) -> LoadFigures:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await self.measure()
        except TimeoutError:
            done = ", ".join(str(row["measure"]) for row in self.rows) or "nothing"
            raise PenstockError(
                code="bench-failed", what=f"the load took longer than {LONGEST_SECONDS:.0f} s", where="service",
                limit=f"measured until then: {done}", hint="run it on a machine that does nothing else",
            ) from None  # fmt: skip

    async def measure(self) -> LoadFigures:
        async with self.client:
            answer = await self.client.post("/v1/models", json={"zoo": "mlp"})
            self.model = str(answer.raise_for_status().json()["id"])
            posted = await self._posts()
            idle, run, event_p95, steps_a_second = await self._ten_thousand_steps()
            pages = await self._pages(run)
            cancel_ms = await self._cancel()
            fair = await self._fairness()
            memory = {f"{kind}_mb": round(mb, 1) for kind, mb in sorted(memory_mb().items())}
            summary: dict[str, Value] = {
                "post_p95_ms": posted["p95_ms"], "post_cpu_ms": posted["cpu_ms"],
                "noop_steps_per_s": steps_a_second, "event_p95_ms": event_p95,
                **{f"page_10k_{name}": worst for name, worst in pages.items()},
                "idle_streams": idle, "cancel_10k_ms": cancel_ms, "small_run_times": fair.times, **memory,
            }  # fmt: skip
        return LoadFigures(self.rows, summary)

    async def _start(self, trials: int, name: str) -> httpx.Response:
        return await self.client.post("/v1/runs", json={"model": self.model, "trials": trials, "name": name})

    async def _posts(self) -> Mapping[str, Value]:
        """Submissions while the workers are busy; then they are cancelled one after the other, the newest first: those
        are sure to wait still."""
        started: list[str] = []

        async def post(number: int) -> httpx.Response:
            answer = await self._start(1, f"{WAITING} {number}")
            started.append(answer.json().get("id", ""))
            return answer

        await at_rate(post, each_second=5, seconds=2)  # what a first request loads is not what is measured
        with CpuMeter() as meter:
            taken = await at_rate(post, each_second=POSTS_A_SECOND, seconds=POST_SECONDS)
        found = self._keep(row(f"POST /v1/runs, {POSTS_A_SECOND:.0f} a second", taken, meter))
        waiting = iter(reversed(started))
        with CpuMeter() as meter:
            taken, _ = await in_turn(lambda: self.client.post(f"/v1/runs/{next(waiting)}/cancel"), CANCELLED)
        self._keep(row("POST cancel, a run that waits", taken, meter))
        for run in waiting:
            await self.client.post(f"/v1/runs/{run}/cancel")  # 409 where it came to its end
        return found

    async def _ten_thousand_steps(self) -> tuple[int, str, float, float]:
        """Steps a second, while readers follow them, and a thousand others a run in which nothing happens."""
        held = (await self._start(1, "held")).json()["id"]
        (await self.client.post(f"/v1/runs/{held}/pause")).raise_for_status()
        await self._until(held, lambda run: _done(run, "explore"))
        sleepers = [EventReader(self.url, self.token, held) for _ in range(self.idle)]
        sleeping = [asyncio.create_task(reader.follow(timed=False)) for reader in sleepers]
        await asyncio.gather(*(reader.opened.wait() for reader in sleepers))
        run = (await self._start(self.trials, "steps")).json()["id"]
        readers = [EventReader(self.url, self.token, run) for _ in range(WATCHERS)]
        with CpuMeter() as meter:
            await asyncio.gather(*(reader.follow() for reader in readers))
        every = f"events of {self.trials} steps to {WATCHERS} readers, of which {self.idle} sleep"
        late = [one for reader in readers for kind in reader.late_ms.values() for one in kind]
        found = self._keep(row(every, late, meter))
        for kind, what in _OF_STEPS.items():
            self._keep(times(f"of these: {what}", [one for reader in readers for one in reader.late_ms[kind]]))
        steps = {step["key"]: step for step in (await self.client.get(f"/v1/runs/{run}")).json()["steps"]}
        seconds = _seconds(steps["explore"]["finished_at"], steps["select"]["queued_at"])
        for kind, spent in meter.spent.items():
            each = round(spent / self.trials * 1000, 2)
            self._keep({"measure": f"a step that does nothing, {kind}", "requests": self.trials, "cpu_ms": each})
        (await self.client.post(f"/v1/runs/{held}/cancel")).raise_for_status()
        await asyncio.gather(*sleeping)
        return (
            sum(reader.ended for reader in sleepers),
            run,
            float(str(found["p95_ms"])),
            round(self.trials / seconds, 1),
        )

    async def _pages(self, run: str) -> Mapping[str, Value]:
        """What a browser and a program ask of a run of many trials; the worst of the first three is the figure."""
        asked = (
            ("page of the run", f"/runs/{run}", _HTML),
            ("front of the run", f"/v1/runs/{run}/front", {}),
            ("first page of its trials", f"/v1/runs/{run}/trials", {}),
            ("list of runs", "/runs", _HTML),
            ("the run", f"/v1/runs/{run}", {}),
        )
        found: list[Mapping[str, Value]] = []
        for name, path, headers in asked:
            with CpuMeter() as meter:
                taken, size = await in_turn(lambda p=path, h=headers: self.client.get(p, headers=h), PAGE_TIMES)
            found.append(self._keep(row(f"{name}, {self.trials} trials", taken, meter, round(size / 1000, 1))))
        return {
            name: max(float(str(one[column])) for one in found[:WITH_GOALS])
            for name, column in (("ms", "p95_ms"), ("first_ms", "first_ms"), ("cpu_ms", "cpu_ms"), ("kb", "kb"))
        }

    async def _cancel(self) -> float:
        """A run of many trials that has just made them."""
        run = (await self._start(self.trials, "cancelled")).json()["id"]
        await self._until(run, lambda said: _done(said, "explore"))
        with CpuMeter() as meter:
            taken, _ = await in_turn(lambda: self.client.post(f"/v1/runs/{run}/cancel"), 1)
        self._keep(row(f"POST cancel, a run of {self.trials} trials", taken, meter))
        return round(taken[0], 1)

    async def _fairness(self) -> Fairness:
        found = await measure_fairness(self.client, self.model, self.other, self.trials)
        for where, seconds in (("alone", found.alone), (f"beside another's of {self.trials}", found.beside)):
            self._keep({"measure": f"a run of {FEW} trials {where}, in seconds", "requests": 1, "seconds": seconds})
        return found

    async def _until(self, run: str, reached: Any) -> None:
        after = 0
        while not reached(said := (await self.client.get(f"/v1/runs/{run}?wait=20&after={after}")).json()):
            after = said["last_event_id"]

    def _keep(self, found: Mapping[str, Value]) -> Mapping[str, Value]:
        self.rows.append(found)
        return found


def _done(run: Mapping[str, Any], key: str) -> bool:
    return any(step["key"] == key and step["state"] == "succeeded" for step in run["steps"])


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
