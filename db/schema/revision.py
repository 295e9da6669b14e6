"""Which schema this code was written for: the number of the newest migration that lies beside it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations" / "versions"


@cache
def newest_revision() -> str:
    """As the database's own record names it; revisions are numbered, so that later ones compare greater."""
    return max(path.name[:4] for path in _MIGRATIONS.glob("[0-9][0-9][0-9][0-9]_*.py"))
