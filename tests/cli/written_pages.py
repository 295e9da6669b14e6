"""A page that is written from a benchmark's kept run: what the repository has is what the command writes."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from benchmarks.written_page import ROOT, WrittenPage


def kept_run(page: WrittenPage, named: str, command: str) -> dict[str, Any]:
    """The run that it shows, where all files of that name, and no others, are as the command writes them."""
    run = page.read()
    written = page.files(run)
    for path, text in written.items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: python -m {command}"
        if path.suffix == ".svg":
            ElementTree.fromstring(text)
    assert {path.name for path in (ROOT / "docs").glob(f"{named}*")} == {path.name for path in written}
    return run
