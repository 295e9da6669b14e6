"""Numba for what is large; what is small runs the same functions in plain Python, which starts at once.

Compiled code is kept on disk under a name that depends on all of its text, so that it is never stale.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = MutableSequence[int]
"""What the functions work on: a list in plain Python, where that is quicker, an array when compiled."""
WordTable = Sequence[Words]
"""Rows of numbers: an array of two dimensions when compiled."""
Function = TypeVar("Function", bound=Callable[..., Any])

_FOLDER = "CACHE_DIR"  # numba's setting; it has no other way to say where
# The functions make no objects and never divide by zero: what numba would do against both costs half of the speed.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_marked: set[Callable[..., Any]] = set()
_at_hand: dict[Compiled, Callable[..., Any]] = {}


def jit(function: Function) -> Function:
    """Marks a function to compile. As it stands it is plain Python."""
    _marked.add(function)
    return function


@dataclass(frozen=True)
class Compiled:
    """The marked functions of some modules, callees first, of which one is called from outside."""

    name: str
    modules: tuple[str, ...]
    entry: str
    inlined: tuple[str, ...] = ()

    def function(self) -> Callable[..., Any]:
        """The entry, compiled: from disk where it was compiled before."""
        if self not in _at_hand:
            _at_hand[self] = self._compile()
        return _at_hand[self]

    def is_at_hand(self) -> bool:
        """Whether this process has it compiled."""
        return self in _at_hand

    def is_on_disk(self) -> bool:
        """Whether it only needs to be loaded."""
        return self.is_at_hand() or any(self._folder.rglob("*.nbc"))

    @cached_property
    def _folder(self) -> Path:
        """In the user's cache folder, or a temporary one that is this user's own where there is none to write to."""
        digest = hashlib.sha256(version("numba").encode())
        for file in (__file__, *(module.__file__ for module in self._loaded())):
            assert file is not None
            digest.update(Path(file).read_bytes())
        home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        folder = Path(home) / "penstock" / f"{self.name}-{digest.hexdigest()[:16]}"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        return Path(tempfile.mkdtemp(prefix=f"penstock-{self.name}-"))

    def _loaded(self) -> list[ModuleType]:
        return [import_module(name) for name in self.modules]

    def _compile(self) -> Callable[..., Any]:
        import numba
        from numba.core import config

        before: str = getattr(config, _FOLDER)
        setattr(config, _FOLDER, str(self._folder))
        try:
            scope: dict[str, Any] = {}
            for module in self._loaded():
                for name, value in vars(module).items():
                    if isinstance(value, FunctionType) and value in _marked and value.__module__ == module.__name__:
                        copy = FunctionType(value.__code__, scope, name, value.__defaults__)
                        copy.__module__, copy.__qualname__ = value.__module__, value.__qualname__
                        scope[name] = numba.njit(cache=True, **_OPTIONS, forceinline=name in self.inlined)(copy)
                    elif isinstance(value, int | ModuleType):
                        scope[name] = value
            return scope[self.entry]
        finally:
            setattr(config, _FOLDER, before)
