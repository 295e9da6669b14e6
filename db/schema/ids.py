"""Identifiers that sort by the time of their making: a prefix, 48 bits of milliseconds, 80 random bits."""

from __future__ import annotations

import re
import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
ID_PATTERN = "[0-9a-hjkmnp-tv-z]{26}"
"""What comes after a prefix."""
_PATTERN = re.compile(f"[a-z]{{3}}_{ID_PATTERN}")
_RANDOM_BITS = 80


class _Clock:
    """Within one millisecond numbers count up, so that rows made together keep their order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> int:
        with self._lock:
            fresh = time.time_ns() // 1_000_000 << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS - 1)
            if fresh >> _RANDOM_BITS > self._last >> _RANDOM_BITS:
                self._last = fresh
            else:
                self._last += 1
            return self._last


_clock = _Clock()


def new_id(prefix: str) -> str:
    """A fresh identifier such as run_01k9z3…; the prefix has three letters and says what it names."""
    value = _clock.next()
    digits = [_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` has the form of an identifier of that kind; says nothing about a row with that id."""
    return text.startswith(f"{prefix}_") and _PATTERN.fullmatch(text) is not None
