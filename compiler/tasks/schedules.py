"""What a schedule says: which instances share an element, which body a task has. As text in a design's record, as calls
in a program."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError

CODE = "bad-mapping"
_CALL = re.compile(r"(bundle|chain|use)\(([^()]*)\)")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Bundle:
    """So many neighbours of a task's grid on each element (all of them with 0), which runs one after the other.

    With `inside`, it does so in every round of that many of the outermost loops, instead of once a run.
    """

    task: str
    count: int = 0
    inside: int = 0

    def __str__(self) -> str:
        parts = [self.task, *([str(self.count)] if self.count else [])]
        return f"bundle({', '.join([*parts, *([f'inside={self.inside}'] if self.inside else [])])})"


@dataclass(frozen=True)
class Chain:
    """Each instance of one task and that of the other which it sends to, on one element; their streams stay inside."""

    first: str
    second: str

    def __str__(self) -> str:
        return f"chain({self.first}, {self.second})"


@dataclass(frozen=True)
class Use:
    """All instances of a task have the body of that name, which was written by hand."""

    task: str
    body: str

    def __str__(self) -> str:
        return f"use({self.task}, {self.body})"


@dataclass(frozen=True)
class MappingLimits:
    """What there is of elements, of ports and of memory an element; 0 is no limit."""

    elements: int = 0
    ports: int = 0
    memory_bits: int = 0

    def __str__(self) -> str:
        given = {"elements": self.elements, "ports": self.ports, "memory_bits": self.memory_bits}
        return ", ".join(f"{name}={number}" for name, number in given.items() if number)


@dataclass(frozen=True)
class GridOfPlaces:
    """Where elements may stand. Of a link between neighbours `links` streams each way, any number with 0."""

    rows: int
    columns: int
    links: int = 0
    neighbours: bool = False
    """Whether streams may lead to neighbours alone."""

    def __str__(self) -> str:
        more = [*([f"links={self.links}"] if self.links else []), *(["neighbours=True"] if self.neighbours else [])]
        return f"place_on({', '.join([f'rows={self.rows}', f'columns={self.columns}', *more])})"


MappingStep = Bundle | Chain | Use
Schedule = tuple[MappingStep, ...]


def parse(texts: tuple[str, ...]) -> Schedule:
    """A record's mapping."""
    return tuple(_parsed(text) for text in texts)


def _parsed(text: str) -> MappingStep:
    match = _CALL.fullmatch(text.replace(" ", ""))
    parts = match[2].split(",") if match else []
    if match and match[1] != "bundle" and len(parts) == 2 and all(_NAME.fullmatch(part) for part in parts):
        return (Chain if match[1] == "chain" else Use)(parts[0], parts[1])
    if match and match[1] == "bundle" and _NAME.fullmatch(parts[0]):
        inside = [int(p[7:]) for p in parts[1:] if re.fullmatch(r"inside=\d{1,2}", p)]
        count = [int(p) for p in parts[1:] if re.fullmatch(r"\d{1,6}", p)]
        if len(inside) + len(count) == len(parts) - 1 and len(inside) < 2 and len(count) < 2:
            return Bundle(parts[0], *(count or [0]), *(inside or [0]))
    raise PenstockError(
        code=CODE, what=f"{text[:60]!r} is no step of a mapping", where="mapping",
        limit="bundle(TASK), bundle(TASK, COUNT, inside=LOOPS), chain(TASK, TASK) or use(TASK, BODY)",
        hint="correct the record",
    )  # fmt: skip


def refused(step: MappingStep, what: str, limit: str = "", hint: str = "") -> PenstockError:
    """A step that cannot be taken."""
    return PenstockError(
        code=CODE, what=f"{step}: {what}", where="mapping", limit=limit,
        hint=hint or "leave this step out, or give each instance an element of its own",
    )  # fmt: skip
