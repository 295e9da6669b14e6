"""Python's garbage collector, asked less often: libraries and models make a million objects that stay.

By default each quarter more of them has all looked through again, a fifth of a short compilation's time. What counts
references is freed as before; only circles wait longer.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_OBJECTS = 20_000
"""That are made and stay until the youngest are looked through."""


def set_aside() -> None:
    """What is there by now stays until the end: it is not looked through again, and a fork's child shares it as it is.

    A collector writes into what it looks at, so a child that collects has a copy of all of its parent's objects.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def seldom_collected() -> Generator[None]:
    """Inside, garbage is looked for after so many more objects than usual."""
    before = gc.get_threshold()
    gc.set_threshold(max(_OBJECTS, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
