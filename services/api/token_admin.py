"""Tokens, for a service's operator: `python -m penstock.services.api.token_admin create NAME | list | revoke ID`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from penstock.db import Database
from penstock.services.api.plumbing.tokens import digest, load_key, make_token, public_part
from penstock.services.settings import SettingError, Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; a new token is printed once and can never be shown again."""
    given = _parser().parse_args(arguments)
    try:
        settings = Settings.from_environment()
        database = Database(settings.require_database_url(), application="penstock-tokens", pool_size=1)
    except SettingError as error:
        sys.stderr.write(f"penstock: {error}\n")
        return 2
    try:
        if given.command == "create":
            sys.stdout.write(create(database, settings, given.name, given.days) + "\n")
        elif given.command == "list":
            sys.stdout.write(listing(database))
        elif not revoke(database, given.id):
            sys.stderr.write(f"penstock: no usable token has the id {given.id}\n")
            return 1
    finally:
        database.close()
    return 0


def create(database: Database, settings: Settings, name: str, days: int | None = None) -> str:
    """Makes a token, stores its digest, and returns the token itself."""
    token = make_token()
    expires = datetime.now(UTC) + timedelta(days=days) if days else None
    with database.begin() as tx:
        tx.tokens.create(
            name=name,
            prefix=public_part(token),
            digest=digest(token, load_key(settings.secret_file)),
            owner=name,
            scope="submit",
            expires_at=expires,
        )
    return token


def revoke(database: Database, token_id: str) -> bool:
    with database.begin() as tx:
        return tx.tokens.revoke(token_id)


def listing(database: Database) -> str:
    """A line for each token, the newest first: id, name, public part, state."""
    lines: list[str] = []
    cursor: str | None = None
    while True:
        with database.begin() as tx:
            page = tx.tokens.list(cursor=cursor)
        for token in page.items:
            state = "revoked" if token.revoked_at else "usable"
            if token.expires_at and token.expires_at < datetime.now(UTC):
                state = "expired"
            lines.append(f"{token.id}  {state:8}  {token.prefix}…  {token.name}\n")
        cursor = page.next_cursor
        if cursor is None:
            return "".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m penstock.services.api.token_admin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("create", help="make a token and print it once")
    new.add_argument("name", help="whose it is, or what for")
    new.add_argument("--days", type=int, help="how long it is good; default: until revoked")
    commands.add_parser("list", help="show all tokens")
    end = commands.add_parser("revoke", help="make a token useless")
    end.add_argument("id", help="its id, from `list`")
    return parser


if __name__ == "__main__":
    sys.exit(main())
