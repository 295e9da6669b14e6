"""The files of a run that pages read: the newest of a name, and what it says."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from penstock.db import Transaction
from penstock.db.schema.records import Artifact, Run
from penstock.web.text import Document


def newest(tx: Transaction, run: Run, ending: str) -> Artifact | None:
    """Of several turns the last one counts; the newest comes first."""
    return next((file for file in tx.artifacts.list(run.id, limit=500).items if file.name.endswith(ending)), None)


@lru_cache(maxsize=8)
def read_report(path: Path, sha256: str) -> Document:
    """A report never changes: its hash is its name."""
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found
