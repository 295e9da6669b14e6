"""Golden files: what a program wrote when a person last read it. PENSTOCK_UPDATE_GOLDENS=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

UPDATE = "PENSTOCK_UPDATE_GOLDENS"


def check_golden(path: Path, text: str) -> None:
    """The text equals the file; a difference is shown by pytest's own comparison of the two."""
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    assert path.exists(), f"{path.name} does not exist yet: run the test with {UPDATE}=1 and read what it wrote"
    assert text == path.read_text(), f"{path.name} has changed: run the test with {UPDATE}=1 and read the difference"
