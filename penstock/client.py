"""The Python client of a Penstock service: these names, and what their objects show, are public (docs/client.md)."""

from __future__ import annotations

from penstock.services.api.answers.health import HealthOut, WorkerHealth
from penstock.services.api.answers.schemas import (
    ArtifactOut,
    EventOut,
    MeOut,
    ModelOut,
    PlatformOut,
    RunDetail,
    RunOut,
    TrialDetail,
    TrialFront,
    TrialOut,
)
from penstock.services.api.answers.upkeep import (
    Collected,
    DeliveryOut,
    FreedOut,
    WebhookOut,
    WebhookSecret,
)
from penstock.services.client.asynchronous import AsyncClient
from penstock.services.client.blocking import Client
from penstock.services.client.errors import (
    ConflictError,
    DamagedDownloadError,
    InvalidRequestError,
    LimitReachedError,
    NotAllowedError,
    NotFoundError,
    NotPenstockError,
    ServerFailedError,
    ServiceError,
    StillRunningError,
    UnreachableError,
    UsageError,
)
from penstock.services.client.limits import LimitFound
from penstock.services.client.model_source import ModelSource

__all__ = [
    # the two ways to ask
    "Client",
    "AsyncClient",
    "ModelSource",
    # what comes back
    "ArtifactOut",
    "Collected",
    "DeliveryOut",
    "EventOut",
    "FreedOut",
    "HealthOut",
    "LimitFound",
    "MeOut",
    "ModelOut",
    "PlatformOut",
    "RunDetail",
    "RunOut",
    "TrialDetail",
    "TrialFront",
    "TrialOut",
    "WorkerHealth",
    "WebhookOut",
    "WebhookSecret",
    # what can go wrong
    "ServiceError",
    "UnreachableError",
    "NotPenstockError",
    "NotAllowedError",
    "NotFoundError",
    "ConflictError",
    "LimitReachedError",
    "InvalidRequestError",
    "ServerFailedError",
    "DamagedDownloadError",
    "StillRunningError",
    "UsageError",
]
