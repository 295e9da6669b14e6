"""Numba for large simulations; small ones run the same functions in plain Python, which starts at once.

Compiled code is kept on disk under a name that depends on all of the engine's text, so that it is never stale.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, MutableSequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = MutableSequence[int]
"""What the engine works on: a list in plain Python, where that is quicker, an array when compiled."""
Function = TypeVar("Function", bound=Callable[..., Any])

# callees first
_ENGINE = ("layout", "sequences", "accesses", "phases", "turns", "stalling", "flushing", "recurrence", "engine")
_FOLDER = "CACHE_DIR"  # numba's setting; it has no other way to say where
# The engine makes no objects and never divides by zero: what numba would do against both costs half of its speed.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_INLINED = ("run_of", "time_in", "step_in", "end_of", "has_room", "append", "step", "passed")
_marked: set[Callable[..., Any]] = set()


def jit(function: Function) -> Function:
    """Marks a function of the engine. As it stands it is plain Python."""
    _marked.add(function)
    return function


@cache
def compiled_advance() -> Callable[..., bool]:
    """The engine's `advance`, compiled: from disk where it was compiled before."""
    import numba
    from numba.core import config

    modules = _modules()
    before: str = getattr(config, _FOLDER)
    setattr(config, _FOLDER, str(_cache_folder()))
    try:
        scope: dict[str, Any] = {}
        for module in modules:
            for name, value in vars(module).items():
                if isinstance(value, FunctionType) and value in _marked and value.__module__ == module.__name__:
                    copy = FunctionType(value.__code__, scope, name, value.__defaults__)
                    copy.__module__, copy.__qualname__ = value.__module__, value.__qualname__
                    scope[name] = numba.njit(cache=True, **_OPTIONS, forceinline=name in _INLINED)(copy)
                elif isinstance(value, int):
                    scope[name] = value
        return scope["advance"]
    finally:
        setattr(config, _FOLDER, before)


def was_compiled() -> bool:
    """Whether this process has the compiled engine at hand."""
    return compiled_advance.cache_info().currsize > 0


@cache
def is_on_disk() -> bool:
    """Whether the compiled engine only needs to be loaded."""
    return any(_cache_folder().rglob("*.nbc"))


def _modules() -> list[ModuleType]:
    return [import_module(f"compiler.simulator.{name}") for name in _ENGINE]


@cache
def _cache_folder() -> Path:
    """The user's cache folder, or a temporary one that is this user's own where there is none to write to."""
    digest = hashlib.sha256(version("numba").encode())
    for file in (__file__, *(module.__file__ for module in _modules())):
        assert file is not None
        digest.update(Path(file).read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(home) / "penstock" / f"simulator-{digest.hexdigest()[:16]}"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        return folder
    return Path(tempfile.mkdtemp(prefix="penstock-simulator-"))
