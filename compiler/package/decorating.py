"""What only explains or decorates may fail, and the result is none the worse: what is missing, and why, is noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.compiler.errors import reason_of
from penstock.compiler.package.record import LeftOut

Made = TypeVar("Made")
Instead = TypeVar("Instead")


@dataclass
class Decorating:
    """Makes explanations and pictures one by one; `left_out` says which could not be made."""

    left_out: list[LeftOut] = field(default_factory=list[LeftOut])

    def make(self, part: str, how: Callable[[], Made], instead: Instead) -> Made | Instead:
        try:
            return how()
        except Exception as error:  # noqa: BLE001 - whatever it is, a good design must not be lost to its explanation
            self.left_out.append(LeftOut(part=part, why=reason_of(error)))
            return instead
