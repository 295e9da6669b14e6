"""Which sources of ours a measurement depends on beside the tool: a change of them is another version of it."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_SUFFIXES = (".py", ".sv", ".toml", ".h", ".cpp", ".j2")


@cache
def sources_digest(*packages: str) -> str:
    """A hash of all code, tables and templates of these packages of ours and what lies below them."""
    digest = hashlib.sha256()
    for package in packages:
        for name, text in sorted(_texts(files(f"penstock.{package}"))):
            digest.update(f"{package}/{name}\0".encode() + text + b"\0")
    return digest.hexdigest()


def _texts(folder: Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            found += _texts(entry, f"{name}/")
        elif entry.is_file() and entry.name.endswith(_SUFFIXES):
            found.append((name, entry.read_bytes()))
    return found
