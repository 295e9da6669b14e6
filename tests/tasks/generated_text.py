"""A program that nobody wrote as it comes to be: its lines, and its streams with all their tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Stream:
    """A stream that waits for its reader: what it is called, its type, and all its tokens."""

    name: str
    kind: str
    tokens: Array

    @property
    def tile(self) -> tuple[int, ...]:
        return self.tokens.shape[1:]

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass
class Generated:
    """A program's text as lines, the numbers of its inputs, and its answers."""

    lines: list[str] = field(default_factory=list[str])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    answers: dict[str, Array] = field(default_factory=dict[str, Array])
    declared: list[str] = field(default_factory=list[str])
    arguments: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        head = ["from penstock.tasks import *", "", "@program", f"def p({', '.join(self.arguments)}):"]
        return "\n".join([*head, *(f"    {line}" for line in (*self.declared, *self.lines))]) + "\n"
