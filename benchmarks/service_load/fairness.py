"""A small run of one owner, alone and beside another owner's run of ten thousand trials: how many times as long."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from benchmarks.service_load import SLOW
from penstock.services.api.plumbing import accounts
from penstock.services.cli.token import found_database
from penstock.services.settings import Settings
from penstock.services.supervisor.borrowed import BorrowedStack

FEW, TIMES = 4, 3
_LOOKS = 0.1


@dataclass(frozen=True)
class Fairness:
    """Seconds from submission to the end, the median of three; trials take a tenth of a second each."""

    alone: float
    beside: float

    @property
    def times(self) -> float:
        return round(self.beside / self.alone, 2)


def token_of_another(stack: BorrowedStack) -> str:
    settings = Settings(home=stack.home)
    with found_database(settings) as database:
        return accounts.create(database, settings, "another", owner="another", scope="submit").secret


async def measure_fairness(client: httpx.AsyncClient, model: str, other: str, trials: int) -> Fairness:
    """`client` carries the token of whoever has the large run."""
    alone = [_seconds(await _ended(client, await _start(client, model, other, FEW))) for _ in range(TIMES)]
    large = (await _start(client, model, "", trials))["id"]
    while not await _trials_done(client, large):  # its first trials are there
        await asyncio.sleep(_LOOKS)
    beside = [_seconds(await _ended(client, await _start(client, model, other, FEW))) for _ in range(TIMES)]
    (await client.post(f"/v1/runs/{large}/cancel")).raise_for_status()
    return Fairness(round(statistics.median(alone), 2), round(statistics.median(beside), 2))


async def _start(client: httpx.AsyncClient, model: str, token: str, trials: int) -> Mapping[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = {"model": model, "trials": trials, "name": f"{SLOW} {trials}"}
    return (await client.post("/v1/runs", json=asked, headers=headers)).raise_for_status().json()


async def _ended(client: httpx.AsyncClient, run: Mapping[str, Any]) -> Mapping[str, Any]:
    while (said := (await client.get(f"/v1/runs/{run['id']}?wait=20")).json())["state"] != "succeeded":
        assert said["state"] in ("queued", "running"), said
    return said


async def _trials_done(client: httpx.AsyncClient, run: str) -> int:
    said = (await client.get(f"/v1/runs/{run}")).raise_for_status().json()
    return int(said["progress"]["trials_done"])


def _seconds(run: Mapping[str, Any]) -> float:
    began, ended = (datetime.fromisoformat(run[name]) for name in ("created_at", "finished_at"))
    return (ended - began).total_seconds()
