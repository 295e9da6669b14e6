"""What the API takes and gives for the upkeep of a service: what goes, and who is told; as schemas.py for all else."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from penstock.services.api.answers.schemas import Given
from penstock.services.run_options import PlainText, RequestBody


class FreedOut(Given):
    """What a removal took."""

    runs: int
    models: int
    bytes: int = Field(description="of content that nobody refers to now; the files go within the hours after")


class Collection(RequestBody):
    """What to collect."""

    older_than_days: float = Field(ge=0, le=36500, description="runs that ended, and models that came, so long ago")
    dry_run: bool = Field(False, description="say what would go, and leave it")


class Collected(FreedOut):
    dry_run: bool
    more: bool = Field(description="there is more: ask again")


WebhookKind = Literal["run.succeeded", "run.failed", "run.cancelled"]


class NewWebhook(RequestBody):
    """Where to tell of the ends of runs."""

    url: PlainText = Field(min_length=1, max_length=2000, description="https, among the targets that are allowed")
    kinds: list[WebhookKind] = Field(
        default=["run.succeeded", "run.failed"], min_length=1, max_length=3, description="of what to tell"
    )
    everybody: bool = Field(False, description="of everybody's runs, for administrators; else of one's own")


class WebhookOut(Given):
    id: str
    owner: str | None
    everybody: bool
    url: str
    kinds: list[str]
    enabled: bool
    why_disabled: str
    created_at: datetime


class WebhookSecret(WebhookOut):
    secret: str = Field(description="whsec_…: what signatures are checked with; shown only now")


class WebhookList(Given):
    items: list[WebhookOut]


class DeliveryOut(Given):
    id: str = Field(description="the header webhook-id, the same at every attempt")
    kind: str
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    due_at: datetime = Field(description="of the next attempt, while it is pending")
    status: int | None = Field(description="the last answer's; null: nobody answered")
    problem: str
    created_at: datetime
    finished_at: datetime | None


class DeliveryList(Given):
    items: list[DeliveryOut]
    next_cursor: str | None


class AuditOut(Given):
    id: int
    at: datetime
    actor: str = Field(description="the owner of the token; `operator NAME` for commands on the service's own machine")
    token_id: str | None
    action: str
    target: str
    status: int | None = Field(description="how the request ended; null for commands")
    request_id: str | None
    client: str | None = Field(description="the address that it came from")


class AuditList(Given):
    items: list[AuditOut]
    next_cursor: str | None = Field(description="pass as `cursor` for the next page; null on the last one")
