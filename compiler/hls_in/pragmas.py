"""HLS pragmas: found in the text, since a C++ front end throws them away, and given to the block that they stand in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.fence import spliced, without_comments
from penstock.compiler.hls_in.parsing import shown
from penstock.compiler.hls_in.pragma_values import Constants, constant_of, options_of
from penstock.compiler.hls_in.syntax import Tree, parts_of

_PRAGMA = re.compile(
    r'^[ \t]*#[ \t]*pragma[ \t]+(?:HLS|AP)[ \t]+([^\n]*)|_Pragma\(\s*"HLS\s+([^"]*)"\s*\)', re.MULTILINE | re.IGNORECASE
)
_WRITER = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)\([ \t]*(\w+)[ \t]*\)[ \t]+(\w+)[ \t]*\([ \t]*(#?)[ \t]*(\w+)[ \t]*\)",
    re.MULTILINE,
)
"""A macro of one argument that hands it on as it is, or as a string."""
KNOWN = frozenset(
    {
        "aggregate", "alias", "allocation", "array_map", "array_partition", "array_reshape", "bind_op", "bind_storage",
        "data_pack", "dataflow", "dependence", "disaggregate", "expression_balance", "function_instantiate", "inline",
        "interface", "latency", "loop_flatten", "loop_merge", "loop_tripcount", "occurrence", "performance", "pipeline",
        "protocol", "reset", "resource", "shared", "stable", "stream", "top", "unroll",
    }
)  # fmt: skip
_STYLES = ("stp", "flp", "frp")


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

    @property
    def flushes(self) -> bool:
        """Of a pipeline: whether it is asked to go on with what has entered while its next iteration waits."""
        style = self.options.get("style", "stp").lower()
        if style not in _STYLES:
            raise PenstockError(
                code="bad-pragma", what=f"style={style} of #pragma HLS {self.kind} is no way for a pipeline to wait",
                where=shown(self.where), limit="known are " + ", ".join(_STYLES), hint="write one of these, or none",
            )  # fmt: skip
        return style != "stp" or "enable_flush" in self.options

    def number(self, key: str, constants: Constants) -> int | None:
        """An option's integer: a literal, a constant or macro by its name, or what is computed of such."""
        text = self.options.get(key)
        if text is None or text == "":
            return None
        found = constant_of(text, constants)
        if found is not None and found >= 0:
            return found
        raise PenstockError(
            code="bad-pragma", what=f"{key}={text} of #pragma HLS {self.kind} is no known constant",
            where=shown(self.where), hint="write the number",
        )  # fmt: skip


def pragmas_of(file: str, text: str) -> Iterator[Pragma]:
    code = without_comments(spliced(text))
    found = [(match.start(), match[1] or match[2] or "") for match in _PRAGMA.finditer(code)]
    found += _by_macros(code)
    for start, body in sorted(found):
        line = code.count("\n", 0, start) + 1
        column = start - code.rfind("\n", 0, start)
        parts = list(options_of(body))
        if parts:
            kind = parts[0][0].lower()
            yield Pragma(kind, {key.lower(): value for key, value in parts[1:]}, file, line, column)


def _by_macros(code: str) -> Iterator[tuple[int, str]]:
    """What is written as DO_PRAGMA(HLS ...), with a macro that makes _Pragma of its argument."""
    given = {m[1]: (m[3], bool(m[4])) for m in _WRITER.finditer(code) if m[2] == m[5]}
    writers = {name for name, (to, text) in given.items() if to == "_Pragma" and text}
    while more := {name for name, (to, text) in given.items() if to in writers and not text} - writers:
        writers |= more
    if not writers:
        return
    use = rf"^([^#\n]*?)\b(?:{'|'.join(sorted(map(re.escape, writers)))})\(\s*HLS\s+((?:[^()\n]|\([^()\n]*\))*)\)"
    for match in re.finditer(use, code, re.MULTILINE):
        yield match.end(1), match[2]


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
