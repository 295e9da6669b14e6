"""What the handlers share: settings, database, content store, event hub; one per application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from penstock.db import Database
from penstock.services.api.plumbing.hub import EventHub
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.api.plumbing.turns import Turns
from penstock.services.settings import Settings
from penstock.services.store import ContentStore


@dataclass(frozen=True)
class Context:
    """The application's parts. `token_key` is the key of token digests; empty without tokens."""

    settings: Settings
    options: ApiOptions
    database: Database
    store: ContentStore
    hub: EventHub
    intake_turns: Turns
    token_key: bytes


def of_request(request: Request) -> Context:
    """The context of the application that serves this request."""
    return cast(Context, request.app.state.context)


Ctx = Annotated[Context, Depends(of_request)]
