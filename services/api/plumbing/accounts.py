"""Making, listing, changing and ending tokens, and the ways in that need no typing: for whoever runs the service.

Everything that is changed here is written to the audit log, under the name of the operating system's user.
"""

from __future__ import annotations

import getpass
import os
import secrets
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from penstock.db import Database, Transaction
from penstock.db.schema.records import Token, TokenScope
from penstock.services.api.plumbing.auth import usable_token
from penstock.services.api.plumbing.tokens import digest, make_token, public_part
from penstock.services.secret_key import load_key
from penstock.services.settings import Settings

LOCAL = "this machine"
FIRST_LINK = timedelta(hours=1)
MOST_DAYS = 36_500
LATER_LINK = timedelta(minutes=10)


@dataclass(frozen=True)
class NewToken:
    """The token itself is shown once and kept nowhere."""

    secret: str
    record: Token


def create(
    database: Database,
    settings: Settings,
    name: str,
    *,
    owner: str = "",
    scope: TokenScope = "submit",
    days: float | None = None,
) -> NewToken:
    """A new token for `owner`, by default for whom it is named."""
    if days is not None and days <= 0:
        raise ValueError(f"a token that is good for {days:g} days is good for nothing")
    if days is not None and not days <= MOST_DAYS:
        raise ValueError(f"a token is good for {MOST_DAYS} days at most, or without days until it is revoked")
    with database.begin() as tx:
        expires = tx.now() + timedelta(days=days) if days is not None else None
        made = _make(tx, settings, name, owner or name, scope, expires)
        _note(tx, "token.create", f"{made.record.id} {name} for {made.record.owner}, {scope}")
    return made


def rotate(database: Database, settings: Settings, token_id: str, *, overlap_hours: float = 0.0) -> NewToken | None:
    """Another token in the place of one, which stays good for a while or for no longer; None if it is not usable."""
    with database.begin() as tx:
        old, now = tx.tokens.get(token_id), tx.now()
        if old is None or old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
            return None
        expires = now + (old.expires_at - old.created_at) if old.expires_at is not None else None
        made = _make(tx, settings, old.name, old.owner, old.scope, expires)
        if overlap_hours > 0:
            tx.tokens.expire(old.id, now + timedelta(hours=overlap_hours))
        else:
            tx.tokens.revoke(old.id)
        _note(tx, "token.rotate", f"{old.id} by {made.record.id}")
    return made


def revoke(database: Database, token_id: str) -> bool:
    """Make a token useless, and the sessions that it began with it."""
    with database.begin() as tx:
        done = tx.tokens.revoke(token_id)
        if done:
            _note(tx, "token.revoke", token_id)
    return done


def all_tokens(database: Database) -> list[tuple[Token, str]]:
    """The newest first, each with what it is good for now."""
    found: list[tuple[Token, str]] = []
    cursor: str | None = None
    while True:
        with database.begin() as tx:
            page, now = tx.tokens.list(cursor=cursor, limit=500), tx.now()
        found += [(token, _state_of(token, now)) for token in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def _state_of(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "usable"


def ensure_local_token(database: Database, settings: Settings) -> Token:
    """The token of whoever runs the service on their own machine: in a file that only they can read."""
    key = load_key(settings.secret_file)
    with database.begin() as tx:
        known = usable_token(tx, settings.own_token(), key)
        if known is not None:
            return known
        made = _make(tx, settings, LOCAL, getpass.getuser(), "admin", None)
        _note(tx, "token.create", f"{made.record.id} {LOCAL}, admin")
    _write_private(settings.token_file, made.secret + "\n")
    return made.record


def make_ticket(tx: Transaction, key: bytes, token_id: str, good_for: timedelta) -> tuple[str, datetime]:
    """What lets a browser in once, and until when: it is no token, and says nothing of one."""
    ticket, until = secrets.token_urlsafe(24), tx.now() + good_for
    tx.sessions.sweep()
    tx.sessions.create(kind="ticket", digest=digest(ticket, key), token_id=token_id, expires_at=until)
    return ticket, until


def first_link(database: Database, settings: Settings, url: str) -> str:
    """The address by which whoever starts the service gets in with a browser; good once."""
    token = ensure_local_token(database, settings)
    with database.begin() as tx:
        ticket, _ = make_ticket(tx, load_key(settings.secret_file), token.id, FIRST_LINK)
    return f"{url}/enter/{ticket}"


def _make(
    tx: Transaction, settings: Settings, name: str, owner: str, scope: TokenScope, expires: datetime | None
) -> NewToken:
    secret = make_token()
    kept = digest(secret, load_key(settings.secret_file))
    record = tx.tokens.create(
        name=name, prefix=public_part(secret), digest=kept, owner=owner, scope=scope, expires_at=expires
    )
    return NewToken(secret, record)


def _note(tx: Transaction, action: str, target: str) -> None:
    tx.audit.add(actor=f"operator {getpass.getuser()}", action=action, target=target)


def _write_private(path: Path, content: str) -> None:
    """Appears under its name whole, and readable by its owner only from its first moment on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mkstemp's mode is 0600
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
    os.replace(name, path)
