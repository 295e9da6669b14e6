"""HLS pragmas: found in the text, since a C++ front end throws them away, and given to the block that they stand in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.fence import spliced, without_comments
from penstock.compiler.hls_in.parsing import shown
from penstock.compiler.hls_in.syntax import Tree, parts_of

_PRAGMA = re.compile(
    r'^[ \t]*#[ \t]*pragma[ \t]+(?:HLS|AP)[ \t]+([^\n]*)|_Pragma\(\s*"HLS\s+([^"]*)"\s*\)', re.MULTILINE | re.IGNORECASE
)
_OPTION = re.compile(r"([A-Za-z_]\w*)(?:\s*=\s*([^\s]+))?")
KNOWN = frozenset(
    {
        "aggregate", "alias", "allocation", "array_map", "array_partition", "array_reshape", "bind_op", "bind_storage",
        "dataflow", "dependence", "disaggregate", "expression_balance", "function_instantiate", "inline", "interface",
        "latency", "loop_flatten", "loop_merge", "loop_tripcount", "occurrence", "performance", "pipeline", "protocol",
        "reset", "resource", "shared", "stable", "stream", "top", "unroll",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Pragma:
    kind: str
    options: dict[str, str]
    """Keys in lower case; a flag without a value has the empty string."""
    file: str
    line: int
    column: int

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def number(self, key: str, constants: dict[str, int]) -> int | None:
        """An option's integer, as a literal or by the name of a constant."""
        text = self.options.get(key)
        if text is None or text == "":
            return None
        text = text.strip("()")
        if text.isdigit():
            return int(text)
        if text in constants:
            return constants[text]
        raise PenstockError(
            code="bad-pragma", what=f"{key}={text} of #pragma HLS {self.kind} is no known constant",
            where=shown(self.where), hint="write the number",
        )  # fmt: skip


def pragmas_of(file: str, text: str) -> Iterator[Pragma]:
    code = without_comments(spliced(text))
    for match in _PRAGMA.finditer(code):
        start = match.start(1) if match[1] is not None else match.start(2)
        body = match[1] if match[1] is not None else match[2]
        line = code.count("\n", 0, match.start()) + 1
        column = match.start() - code.rfind("\n", 0, match.start())
        parts = _OPTION.findall(body)
        if parts and start >= 0:
            kind = parts[0][0].lower()
            yield Pragma(kind, {key.lower(): value for key, value in parts[1:]}, file, line, column)


class PlacedPragmas:
    """Pragmas by the block that they stand in."""

    def __init__(self, pragmas: list[Pragma], functions: list[Tree]) -> None:
        self._blocks: dict[tuple[str, int, int], list[Pragma]] = {}
        blocks = [block for function in functions for block in _blocks(function[6])]
        for pragma in pragmas:
            around = [b for b in blocks if b[1][0] == pragma.file and b[1][1] <= pragma.line <= b[2]]
            if around:
                block = max(around, key=lambda b: (b[1][1], b[1][2]))
                self._blocks.setdefault(_key(block), []).append(pragma)

    def of(self, block: Tree) -> list[Pragma]:
        return self._blocks.get(_key(block), []) if block[0] == "block" else []


def _key(block: Tree) -> tuple[str, int, int]:
    return block[1][0], block[1][1], block[1][2]


def _blocks(tree: Tree) -> Iterator[Tree]:
    """Blocks of statements, and of what stands in them."""
    if tree[0] == "block":
        yield tree
    for part in parts_of(tree):
        yield from _blocks(part)
