"""A cache of its own for tests that measure, in which only what is built once a machine is shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.profiling.cache import user_cache


def own_cache(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Sets PENSTOCK_HOME. Verilator's runtime comes from the user's cache, which saves half a minute a session."""
    patch.setenv("PENSTOCK_HOME", str(folder))
    place = folder / "cache" / "open-rtl"
    place.mkdir(parents=True)
    shared = user_cache() / "penstock" / "open-rtl" / "runtime"
    shared.mkdir(parents=True, exist_ok=True)
    (place / "runtime").symlink_to(shared)
    return place
