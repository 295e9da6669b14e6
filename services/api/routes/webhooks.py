"""/v1/webhooks: where owners want to be told of the ends of their runs, and what was told."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from penstock.db import Transaction
from penstock.db.repositories.base import BadCursorError
from penstock.db.schema.ids import is_id
from penstock.db.schema.records import Webhook
from penstock.services.api.answers.params import PROBLEMS, Cursor, PageLimit, bad_cursor
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.upkeep import (
    DeliveryList,
    DeliveryOut,
    NewWebhook,
    WebhookList,
    WebhookOut,
    WebhookSecret,
)
from penstock.services.api.plumbing.auth import Caller, Who
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.secret_key import load_key
from penstock.services.webhooks.signing import secret_of
from penstock.services.webhooks.targets import TargetRefusedError, check_name

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], responses=PROBLEMS)

WebhookId = Annotated[str, Path(max_length=64, description="the id of a webhook")]
MOST_WEBHOOKS = 20


@router.post("", status_code=201, summary="Be told of the ends of runs")
def create_webhook(asked: NewWebhook, context: Ctx, caller: Caller) -> WebhookSecret:
    """Messages after the Standard Webhooks specification, signed with the secret that only this answer shows."""
    try:
        check_name(asked.url, context.settings.webhook_targets)
    except TargetRefusedError as error:
        raise Problem(
            "webhook-target-refused", str(error), where="body.url",
            hint="an administrator sets PENSTOCK_WEBHOOK_TARGETS for the API and the dispatcher",
        ) from None  # fmt: skip
    if asked.everybody and caller.scope != "admin":
        raise Problem(
            "forbidden", "the runs of everybody are told to administrators only", where="body.everybody",
            limit=f"the scope of your token is {caller.scope}", hint="leave it out to be told of your own",
        )  # fmt: skip
    with context.database.begin(caller.actor) as tx:
        if len(tx.webhooks.list(owner=caller.owner)) >= MOST_WEBHOOKS:
            raise Problem(
                "quota-exceeded", f"you have {MOST_WEBHOOKS} webhooks", limit=f"at most {MOST_WEBHOOKS} for each owner",
                hint="delete one that nobody needs",
            )  # fmt: skip
        made = tx.webhooks.create(owner=caller.owner, everybody=asked.everybody, url=asked.url, kinds=asked.kinds)
    return _with_secret(context, made)


@router.get("", summary="List webhooks")
def list_webhooks(context: Ctx, caller: Caller) -> WebhookList:
    """One's own; everybody's for an administrator."""
    with context.database.begin() as tx:
        found = tx.webhooks.list(owner=caller.owner, everybody=caller.scope == "admin")
    return WebhookList(items=[WebhookOut.model_validate(one) for one in found])


@router.delete("/{webhook_id}", status_code=204, summary="Be told no more")
def delete_webhook(webhook_id: WebhookId, context: Ctx, caller: Caller) -> None:
    """What was not delivered yet is not sent any more."""
    with context.database.begin(caller.actor) as tx:
        tx.webhooks.delete(_own(tx, caller, webhook_id).id)


@router.post("/{webhook_id}/rotate", summary="Another secret")
def rotate_webhook(webhook_id: WebhookId, context: Ctx, caller: Caller) -> WebhookSecret:
    """For a day messages carry signatures of both. A webhook that was switched off is on again."""
    with context.database.begin(caller.actor) as tx:
        made = tx.webhooks.rotate(_own(tx, caller, webhook_id).id)
    return _with_secret(context, made)


@router.post("/{webhook_id}/test", status_code=202, summary="Have a test message sent")
def send_test_message(webhook_id: WebhookId, context: Ctx, caller: Caller) -> None:
    """A message of type `test`; `deliveries` says how it went."""
    with context.database.begin(caller.actor) as tx:
        tx.webhooks.send(_own(tx, caller, webhook_id).id, "test", {"said": "this is a test"})


@router.get("/{webhook_id}/deliveries", summary="What was told")
def list_deliveries(
    webhook_id: WebhookId, context: Ctx, caller: Caller, limit: PageLimit = 50, cursor: Cursor = None
) -> DeliveryList:
    """Messages of the last weeks, the newest first: attempts, the last answer, when the next attempt is due."""
    try:
        with context.database.begin() as tx:
            page = tx.webhooks.log(_own(tx, caller, webhook_id).id, cursor=cursor, limit=limit)
    except BadCursorError as error:
        raise bad_cursor(str(error)) from None
    return DeliveryList(items=[DeliveryOut.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


def _own(tx: Transaction, caller: Who, webhook_id: str) -> Webhook:
    found = tx.webhooks.get(webhook_id) if is_id(webhook_id, "whk") else None
    if found is None or (caller.scope != "admin" and found.owner != caller.owner):
        raise Problem(
            "webhook-not-found", f"you have no webhook '{webhook_id[:64]}'", where="path",
            hint="GET /v1/webhooks lists yours",
        )  # fmt: skip
    return found


def _with_secret(context: Context, webhook: Webhook) -> WebhookSecret:
    key = load_key(context.settings.secret_file)
    known = WebhookOut.model_validate(webhook).model_dump()
    return WebhookSecret(**known, secret=secret_of(key, webhook.id, webhook.generation))
