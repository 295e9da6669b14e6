"""The one error that compiler, exploration and profiling raise for a user's eyes."""

from __future__ import annotations

import contextlib
import difflib
import traceback
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path


class PenstockError(Exception):
    """Says what is wrong, where, which limit was hit, and what to do next.

    `code` is stable and machine-readable ("unsupported-op"); the rest is prose for people.
    """

    def __init__(self, *, code: str, what: str, where: str = "", limit: str = "", hint: str = "") -> None:
        self.code = code
        self.what = what
        self.where = where
        self.limit = limit
        self.hint = hint
        self.others: tuple[PenstockError, ...] = ()
        """What else is wrong, where a check looked on after the first mistake."""
        self.excerpt = ""
        """The line of a text that is meant, with a caret under the place."""
        super().__init__(self.one_line())

    def one_line(self) -> str:
        """The whole error on one line, as the command line prints it: names in foreign files may hold anything, and
        none of it reaches a terminal but plain letters."""
        parts = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.limit:
            parts.append(f"({self.limit})")
        if self.hint:
            parts.append(f"- {self.hint}")
        line = " ".join(" ".join(parts).split())
        return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)

    def to_dict(self) -> dict[str, str]:
        """The fields that are set, for problem documents and event records."""
        fields = {
            "code": self.code,
            "what": self.what,
            "where": self.where,
            "limit": self.limit,
            "hint": self.hint,
        }
        return {name: text for name, text in fields.items() if text}


@dataclass
class Mistakes:
    """Looks on after the first mistake: `with mistakes.noted(): ...` as often as there is something to check."""

    found: list[PenstockError] = field(default_factory=list[PenstockError])

    @contextlib.contextmanager
    def noted(self) -> Generator[None]:
        try:
            yield
        except PenstockError as error:
            self.found.append(error)

    def raise_first(self) -> None:
        """The first that was found, if any; it carries the others, each said once."""
        if self.found:
            first, lines = self.found[0], {error.one_line(): error for error in reversed(self.found)}
            first.others = tuple(error for error in reversed(lines.values()) if error is not first)
            raise first


def nearest(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """A hint for a name that is not known: which one was meant, or what else to do."""
    near = difflib.get_close_matches(name, list(known), 1, cutoff)
    return f"did you mean {near[0]!r}?" if near else otherwise


def reason_of(error: Exception) -> str:
    """Any error in one line. One that nobody foresaw is named by its kind and place, for whoever mends it."""
    if isinstance(error, PenstockError):
        return error.one_line()
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}{place}".split())
