"""The version that results depend on: a digest of the code that makes them.

A release number would not do: on a developer's machine the compiler changes without one, and a result of
the old compiler must not pass for one of the new.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = ("compiler", "dse", "profiling", "services/steps")
_SUFFIXES = (".py", ".toml", ".json", ".j2", ".h", ".cpp", ".tcl", ".cfg", ".html", ".css", ".js")


@cache
def code_version() -> str:
    """The same for the same sources, wherever they are installed."""
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted((_ROOT / folder).rglob("*")):
            if path.suffix in _SUFFIXES and "__pycache__" not in path.parts:
                digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
