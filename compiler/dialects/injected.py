"""A task's body that somebody wrote by hand, in SystemVerilog or HLS C++, with what its author promises of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from xdsl.dialects.builtin import StringAttr

BodyLanguage = Literal["systemverilog", "cpp"]
Stalls = Literal["holds", "stops"]
IN_WORDS: Mapping[BodyLanguage, str] = {"systemverilog": "SystemVerilog", "cpp": "HLS C++"}


@dataclass(frozen=True)
class Injected:
    """The text and its contract. `symbol` is the module, or the function, that does the task's work."""

    name: str
    language: BodyLanguage
    text: str
    symbol: str
    reads: tuple[tuple[str, int], ...]
    """Tokens of a run by pin, in the order of a function's parameters."""
    writes: tuple[tuple[str, int], ...]
    ii: int
    depth: int
    stalls: Stalls
    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram18: int = 0
    channels: tuple[str, ...] = ()
    """Of one instance: the channel at each pin, those that are read first."""

    @property
    def pins(self) -> dict[str, str]:
        """The pin of each channel of the instance."""
        return dict(zip(self.channels, [name for name, _ in (*self.reads, *self.writes)], strict=True))

    def attribute(self) -> StringAttr:
        return StringAttr(json.dumps(asdict(self)))


def injected_of(attribute: StringAttr | None) -> Injected | None:
    """What an operation's attribute says."""
    if attribute is None:
        return None
    said: dict[str, Any] = json.loads(attribute.data)
    for side in ("reads", "writes"):
        said[side] = tuple((name, count) for name, count in said[side])
    said["channels"] = tuple(said["channels"])
    return Injected(**said)
