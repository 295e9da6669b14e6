"""`penstock token`: tokens of a service, for whoever runs it; on the service's own machine or beside its database."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from penstock.compiler.errors import PenstockError
from penstock.services.cli.exit_codes import FAILED, OK
from penstock.services.settings import Settings

if TYPE_CHECKING:
    from penstock.db import Database
    from penstock.db.schema.records import Token
    from penstock.services.api.plumbing.accounts import NewToken


def token(
    action: Annotated[Literal["create", "list", "revoke", "rotate"], typer.Argument(help="What to do.")],
    subject: Annotated[
        str, typer.Argument(help="create: what the token is for. revoke, rotate: its id, from `list`.")
    ] = "",
    owner: Annotated[str, typer.Option(help="create: whose runs it starts and may change; else as its name.")] = "",
    scope: Annotated[
        Literal["read", "submit", "admin"], typer.Option(help="create: look; work on one's own runs; everything.")
    ] = "submit",
    days: Annotated[
        float | None, typer.Option(help="create: how long it is good; else until it is revoked.", min=0.001, max=36500)
    ] = None,
    overlap_hours: Annotated[
        float, typer.Option(help="rotate: how long the old one stays good.", min=0.0, max=8760)
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Make, list, end and replace tokens. A new one is printed once, and kept nowhere.

    Finds the database of the service that runs on this machine's PENSTOCK_HOME, or the one of PENSTOCK_DATABASE_URL.
    """
    from penstock.services.api.plumbing import accounts

    if (action == "list") != (not subject.strip()):
        raise typer.BadParameter("`list` takes no name" if subject else f"`{action}` needs a name or an id")
    settings = Settings.from_environment()
    with found_database(settings) as database:
        if action == "create":
            made = accounts.create(database, settings, subject.strip(), owner=owner.strip(), scope=scope, days=days)
            return _print_new(made, as_json)
        if action == "rotate":
            replaced = accounts.rotate(database, settings, subject, overlap_hours=overlap_hours)
            return _unknown(subject) if replaced is None else _print_new(replaced, as_json)
        if action == "revoke":
            return OK if accounts.revoke(database, subject) else _unknown(subject)
        rows = [_row(one, state) for one, state in accounts.all_tokens(database)]
    print(json.dumps(rows, indent=1) if as_json else _table(rows))
    return OK


def login(
    url: Annotated[str | None, typer.Option(help="The service; else PENSTOCK_URL.")] = None,
) -> int:
    """Print a link that signs a browser in, once and within ten minutes: nothing to type."""
    from penstock.services.cli.client import connect

    with connect(url) as service:
        print(service.login_link())
    return OK


@contextmanager
def found_database(settings: Settings) -> Iterator[Database]:
    """The service's database: the one that is named, or the embedded one of a service that runs here."""
    from penstock.db import Database
    from penstock.services.supervisor.home import Home
    from penstock.services.supervisor.postgres import EmbeddedPostgres

    url = settings.database_url
    if not url:
        home = Home(settings.home)
        if home.running() is None:
            raise PenstockError(
                code="no-service", what="no service runs on this folder", where=str(settings.home),
                hint="start it with `penstock up`, or set PENSTOCK_HOME or PENSTOCK_DATABASE_URL",
            )  # fmt: skip
        url = EmbeddedPostgres(home.postgres, home.sockets).url
    database = Database(url, application="penstock-tokens", pool_size=1)
    try:
        if not database.is_up():
            raise PenstockError(
                code="database-away", what="the service's database does not answer",
                hint="is it just starting? Else see `penstock doctor`; only the user who runs the service can reach it",
            )  # fmt: skip
        yield database
    finally:
        database.close()


def _print_new(made: NewToken, as_json: bool) -> int:
    print(json.dumps(_row(made.record, "usable") | {"token": made.secret}, indent=1) if as_json else made.secret)
    return OK


def _row(token: Token, state: str) -> dict[str, Any]:
    times = {
        name: at.isoformat(timespec="seconds") if at else None
        for name, at in (("expires_at", token.expires_at), ("last_used_at", token.last_used_at))
    }
    return {
        "id": token.id, "name": token.name, "owner": token.owner, "scope": token.scope, "state": state,
        "begins_with": token.prefix, "created_at": token.created_at.isoformat(timespec="seconds"), **times,
    }  # fmt: skip


def _table(rows: list[dict[str, Any]]) -> str:
    columns = ("id", "state", "scope", "owner", "name", "begins_with", "expires_at", "last_used_at")
    lines = [[str(row[column] or "–") for column in columns] for row in rows]
    lines.insert(0, [column.replace("_", " ").upper() for column in columns])
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    padded = ([word.ljust(width) for word, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _unknown(token_id: str) -> int:
    print(f"penstock: no usable token has the id {token_id}: `penstock token list` shows them", file=sys.stderr)
    return FAILED
