"""What the API says of its own health and of its workers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from penstock.services.api.answers.schemas import Given


class PartHealth(Given):
    status: Literal["ok", "warning", "down"]
    detail: str


class WorkerHealth(Given):
    name: str
    queues: list[str]
    concurrency: int = Field(description="steps that it runs at once")
    last_sign_of_life: datetime
    alive: bool
    drains: bool = Field(False, description="it begins nothing more")


class WorkerList(Given):
    items: list[WorkerHealth]


class QueueHealth(Given):
    name: str
    waiting: int
    running: int


class HealthOut(Given):
    """Whether the service can do its work, part by part."""

    status: Literal["ok", "starting", "degraded", "down"] = Field(
        description="ok; starting: it takes requests, and its workers may come in a moment; degraded: it takes "
        "requests but nothing moves; down: it cannot take requests"
    )
    version: str
    auth: str = Field(description="who may ask")
    database: PartHealth
    broker: PartHealth
    disk: PartHealth
    workers_alive: int
    workers: list[WorkerHealth]
    queues: list[QueueHealth]
    python_models: bool = Field(description="whether Python models are taken")
