"""`penstock webhook`: who is told of the ends of runs, over REST only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

import typer
from pydantic import BaseModel

from penstock.services.cli.client import connect
from penstock.services.cli.exit_codes import OK
from penstock.services.cli.runs import JsonFlag, Url


def webhook(
    action: Annotated[
        Literal["create", "list", "delete", "rotate", "test", "deliveries"], typer.Argument(help="What to do.")
    ],
    subject: Annotated[str, typer.Argument(help="create: the URL. Else the id of a webhook, from `list`.")] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option(help="create: of what to tell: run.succeeded, run.failed, run.cancelled; again for several."),
    ] = None,
    everybody: Annotated[bool, typer.Option(help="create: of everybody's runs; for administrators.")] = False,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Have others told of the ends of runs, after the Standard Webhooks specification.

    `create` and `rotate` print the secret that messages are signed with, once.
    """
    if (action == "list") != (not subject.strip()):
        raise typer.BadParameter("`list` takes nothing more" if subject else f"`{action}` needs a URL or an id")
    with connect(url) as service:
        match action:
            case "create":
                found = service.create_webhook(subject, kind or (), everybody=everybody)
                _print([found], as_json, f"{found.id}\n{found.secret}")
            case "rotate":
                found = service.rotate_webhook(subject)
                _print([found], as_json, found.secret)
            case "delete":
                service.delete_webhook(subject)
            case "test":
                service.test_webhook(subject)
            case "list":
                rows = service.webhooks()
                lines = [
                    f"{row.id}  {'on ' if row.enabled else 'off'}  {row.url}  {' '.join(row.kinds)}" for row in rows
                ]
                _print(rows, as_json, "\n".join(lines))
            case "deliveries":
                told = service.deliveries(subject)
                words = [f"{one.id}  {one.kind}  {one.state}  {one.attempts} attempts  {one.problem}" for one in told]
                _print(told, as_json, "\n".join(words))
    return OK


def _print(rows: Sequence[BaseModel], as_json: bool, text: str) -> None:
    if as_json:
        print(json.dumps([row.model_dump(mode="json") for row in rows], indent=1))
    elif text:
        print(text)
