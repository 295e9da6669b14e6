"""Numba for what is large; what is small runs the same functions in plain Python, which starts at once.

Compiled code is kept on disk under a name that depends on all of its text, so that it is never stale, and on nothing
else: another checkout or installation of the same text finds it too. One process of a machine compiles at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, MutableSequence, Sequence
from contextlib import contextmanager, suppress
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
_done: Counter[str] = Counter()
_asked: Counter[str] = Counter()
"""Up to how much work it need not be asked whether a function is on disk."""


def jit(function: Function) -> Function:
    """Marks a function to compile. As it stands it is plain Python."""
    _marked.add(function)
    return function


@dataclass(frozen=True)
class Compiled:
    """The marked functions of some modules, callees first, of which one is called from outside.

    Work is counted in whatever unit its caller knows; plain Python does `before_loading` of it in the time in which
    compiled code is loaded, and `before_compiling` in that in which it is compiled.
    """

    name: str
    modules: tuple[str, ...]
    entry: str
    before_loading: int
    before_compiling: int
    inlined: tuple[str, ...] = ()

    def left(self) -> int:
        """Work that plain Python may still do in this process before compiled code pays, all that it did counted.

        So no more than twice the time is lost that one would have lost who knew how much is still to come.
        """
        if self in _at_hand:
            return 0
        return max(0, (self.before_loading if self.is_on_disk() else self.before_compiling) - _done[self.name])

    def count(self, work: int) -> None:
        """So much was done in plain Python."""
        _done[self.name] += work

    def pays(self, work: int) -> bool:
        """Whether compiled code pays for this work, which is counted if it does not.

        The disk is not asked where it makes no difference, nor again before as much was done as loading is worth: what
        is asked for each of many small things would take longer than these.
        """
        done = _done[self.name] + work
        if self not in _at_hand and done < max(self.before_loading, _asked[self.name]):
            self.count(work)
            return False
        pays = work >= self.left()
        if not pays:
            self.count(work)
            _asked[self.name] = min(done + self.before_loading, self.before_compiling)
        return pays

    def function(self) -> Callable[..., Any]:
        """The entry: compiled when it is called first, or read from disk where it was compiled before."""
        return _at_hand.get(self) or self._first

    def is_on_disk(self) -> bool:
        """Whether it only needs to be loaded: the entry is compiled last."""
        return self in _at_hand or any(self._folder.rglob(f"*.{self.entry}-*.nbc"))

    def _first(self, *arguments: Any) -> Any:
        if self not in _at_hand:
            entry = self._to_compile()
            with self._alone():
                entry.compile(tuple([entry.typeof_pyval(one) for one in arguments]))
            _at_hand[self] = entry
        return _at_hand[self](*arguments)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Who waits in here finds on disk what the other one compiled."""
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

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

    @cached_property
    def _named(self) -> str:
        """A file of no date whose place goes for that of the code: numba asks after both."""
        file = self._folder / f"{self.name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)  # somebody may have emptied the cache since it was looked for
        file.touch()
        os.utime(file, (0, 0))
        return str(file)

    def _loaded(self) -> list[ModuleType]:
        return [import_module(name) for name in self.modules]

    def _to_compile(self) -> Any:
        import numba
        from numba.core import config

        before: str = getattr(config, _FOLDER)
        setattr(config, _FOLDER, str(self._folder))
        try:
            scope: dict[str, Any] = {}
            for module in self._loaded():
                for name, value in vars(module).items():
                    if isinstance(value, FunctionType) and value in _marked and value.__module__ == module.__name__:
                        code = value.__code__.replace(co_filename=self._named)
                        copy = FunctionType(code, scope, name, value.__defaults__)
                        copy.__module__, copy.__qualname__ = value.__module__, value.__qualname__
                        scope[name] = numba.njit(cache=True, **_OPTIONS, forceinline=name in self.inlined)(copy)
                    elif isinstance(value, int | ModuleType):
                        scope[name] = value
            return scope[self.entry]
        finally:
            setattr(config, _FOLDER, before)
