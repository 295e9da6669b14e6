"""Rows of a benchmark that takes long, in a file of one JSON object a line: a run that was stopped goes on there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def kept_rows(keep: Path | None) -> list[dict[str, Any]]:
    """In the order in which they were made; none without a file."""
    if keep is None or not keep.exists():
        return []
    return [json.loads(line) for line in keep.read_text(encoding="utf-8").splitlines() if line]


def keep_row(keep: Path | None, row: Mapping[str, Any]) -> None:
    """At the end of the file, if there is to be one."""
    if keep is not None:
        with keep.open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(row)) + "\n")
