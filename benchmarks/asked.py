"""Which rows of a benchmark somebody asked for."""

from __future__ import annotations

from fnmatch import fnmatch


def is_asked_for(name: str, only: str) -> bool:
    """Whether a row's name has this in it, or is of this pattern; capitals are as good as others."""
    name, only = name.lower(), only.lower()
    return only in name or fnmatch(name, only)
