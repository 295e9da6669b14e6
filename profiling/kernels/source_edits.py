"""Pragmas of a source changed and added, line by line; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_COMMENT = re.compile(r"//.*|/\*.*?\*/")


@dataclass(frozen=True)
class SourceEdits:
    """What becomes of some lines of a text, counted from 1, and what stands behind them."""

    changed: Mapping[int, str] = field(default_factory=dict[int, str])
    added: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])

    def apply(self, text: str) -> str:
        lines = re.split(r"(?<=\n)", text)
        made: list[str] = []
        for number, line in enumerate(lines, 1):
            bare = line.rstrip("\r\n")
            ending = line[len(bare) :] or "\n"
            made.append(self.changed.get(number, bare) + line[len(bare) :])
            made += [new + ending for new in self.added.get(number, ())]
        return "".join(made)

    def option(self, text: str, place: str, key: str, value: str) -> SourceEdits | None:
        """A pragma's `key=...` at another value; None where its line does not say it in so many words."""
        return self._once(text, place, rf"\b({key}\s*=\s*)[^\s]+", value)

    def word(self, text: str, place: str, old: str, new: str) -> SourceEdits | None:
        """A pragma with another word, as `cyclic` for `block`, also behind `type=`."""
        return self._once(text, place, rf"((?:\s|=)){old}\b", new)

    def _once(self, text: str, place: str, pattern: str, value: str) -> SourceEdits | None:
        """A line in which what stands behind the pattern's group is another, if the pattern is found once."""
        number = line_of(place)
        lines = text.split("\n")
        if not 0 < number <= len(lines):
            return None
        line = self.changed.get(number, lines[number - 1].rstrip("\r"))
        made, count = re.subn(pattern, rf"\g<1>{value}", line, flags=re.IGNORECASE)
        if count != 1 or line.rstrip().endswith("\\"):
            return None
        return replace(self, changed={**self.changed, number: made})

    def pragma(self, text: str, place: str, pragma: str, *, behind: str) -> SourceEdits | None:
        """A pragma on a line of its own behind the line of a declaration (`;`) or of a body's beginning (`{`)."""
        number = line_of(place)
        lines = text.split("\n")
        if not 0 < number <= len(lines):
            return None
        line = lines[number - 1].rstrip("\r")
        if not _COMMENT.sub("", line).rstrip().endswith(behind) or "/*" in _COMMENT.sub("", line):
            return None
        indent = line[: len(line) - len(line.lstrip())]
        added = (*self.added.get(number, ()), f"{indent}#pragma HLS {pragma}")
        return replace(self, added={**self.added, number: added})


def line_of(place: str) -> int:
    """The line of "file:line:column"."""
    return int(place.rsplit(":", 2)[1])


def file_of(place: str) -> str:
    return place.rsplit(":", 2)[0]
