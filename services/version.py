"""The version of the installed product, as the API and its pages tell it."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The version from the package's metadata; a source tree that is not installed says so."""
    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return "0+source"
