"""Commands as they stand in the pages, typed one after the other on one machine: no folder is in the way of another."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from penstock.services.cli.compile import DEFAULT_FOLDER

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("examples/**/*.py")]
WRITES = re.compile(r"penstock (\w+) [^`\n]*-o (out[\w/]*)")


def test_no_package_is_compiled_where_something_else_is_written() -> None:
    """`compile` fills a whole folder and refuses one with other files, as one that `make demo` has written into."""
    written = [(command, PurePosixPath(to)) for page in PAGES for command, to in WRITES.findall(page.read_text())]
    demos = [*re.findall(r"-o (out/\S+)", (ROOT / "Makefile").read_text()), "out/demo"]
    packages = {to for command, to in written if command == "compile"} | {PurePosixPath(DEFAULT_FOLDER)}
    others = {to for command, to in written if command != "compile"} | {PurePosixPath(to) for to in demos}
    assert len(packages) > 4
    assert len(others) > 2
    assert not [(a, b) for a in packages for b in packages | others if a in b.parents]
    assert not packages & others
