"""A function's body as loops and statements, each with its text: what can be written back in another order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.fence import without_comments
from penstock.compiler.hls_in.loops import head_of
from penstock.compiler.hls_in.syntax import Tree, assigned_in, loops_in, statements_of, unlabelled
from penstock.profiling.kernels.explore.accesses import NOTHING, Accesses, AccessReader
from penstock.profiling.kernels.explore.legality import Span

_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[^\n]*\n?", re.MULTILINE)
INDENT = "  "


@dataclass(frozen=True)
class SourceStatement:
    text: str
    accesses: Accesses
    line: int
    loops: bool = False
    """Whether it has loops that stay as they are: around them no pipeline is asked for."""
    within: tuple[Span, ...] = ()
    """Loops that it is made of, all turns of which a pipeline around it does at once."""


@dataclass(frozen=True)
class SourceLoop:
    """`head` is what stands between the parentheses; `pragmas` stand first in its body."""

    span: Span
    head: str
    body: tuple[SourceNode, ...]
    line: int
    label: str = ""
    pragmas: tuple[str, ...] = ()

    @property
    def accesses(self) -> Accesses:
        found = NOTHING
        for node in self.body:
            found = found.plus(node.accesses)
        return found


SourceNode = SourceStatement | SourceLoop


@dataclass
class BodyReader:
    """Reads the statements of a block; pragmas of loops are left out, since others will be chosen."""

    text: str
    accesses: AccessReader
    constant: Callable[[Tree], int | None]
    file: str
    loose: frozenset[str] = frozenset()
    """Variables declared outside of the loops that count with them, and used nowhere else."""
    _code: str = field(init=False)
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        bare = without_comments(self.text)
        self._code = _PRAGMA.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), bare)
        self._starts = [0]
        for match in re.finditer("\n", self.text):
            self._starts.append(match.end())

    def nodes(self, block: Tree, around: frozenset[str] = frozenset()) -> tuple[SourceNode, ...]:
        statements = statements_of(block)
        made: list[SourceNode] = []
        at = 0
        while at < len(statements):
            groups = head_groups(statements, at)
            if not self._needless(statements[at]) or groups:
                made.append(self._node(statements[at + groups], around, "that counts with several" if groups else ""))
            at += groups + 1
        return tuple(made)

    def _needless(self, tree: Tree) -> bool:
        """A declaration of counters alone: each loop declares its own."""
        return tree[0] == "group" and bool(tree[2]) and all(part[2] in self.loose for part in tree[2])

    def span_of(self, block: Tree) -> tuple[int, int]:
        """Where a block's braces stand."""
        start = self.offset(block)
        self._expect(start, "{", block)
        return start, self._behind(start) - 1

    def offset(self, tree: Tree) -> int:
        """The parser counts bytes of a line, and there are letters of several."""
        _, line, column = tree[1]
        start = self._starts[line - 1]
        before = self.text[start : start + column - 1]
        if not before.isascii():
            before = before.encode()[: column - 1].decode(errors="ignore")
        return start + len(before)

    def _node(self, tree: Tree, around: frozenset[str], odd: str = "") -> SourceNode:
        """A loop or another statement; what is `odd` about a loop keeps it as it is."""
        bare, label = unlabelled(tree)
        line = tree[1][1]
        head = None
        if bare[0] == "for":
            try:
                head = head_of(bare, self.constant)
            except PenstockError as error:
                odd = odd or error.what
        if bare[0] != "for":
            start = self.offset(tree)
            text = self.text[start : self._end(start)].strip()
            return SourceStatement(text, self.accesses.statement(tree), line, any(loops_in(tree)))
        start = self.offset(bare)
        whole = self.text[start : self._end(start)]
        if head is None or odd:
            return SourceStatement(whole, Accesses((), opaque=f"line {line}: a loop {odd}"), line, loops=True)
        self._expect(start, "for", bare)
        opened = self._code.index("(", start)
        closed = self._behind(opened)
        own = head.declared or head.variable in self.loose
        changed = head.variable in assigned_in(bare[5], heads=False)
        if not own or changed or head.variable in around or _jumps(bare[5]):
            why = "that is left in its middle" if own else "over a variable from outside"
            why = "that changes its own variable" if changed else why
            return SourceStatement(whole, Accesses((), opaque=f"line {line}: a loop {why}"), line, loops=True)
        span = Span(head.variable, head.first, head.step, head.trip)
        inner = self.nodes(bare[5], around | {head.variable})
        words = " ".join(self._code[opened + 1 : closed - 1].split())
        return SourceLoop(span, words if head.declared else f"int {words}", inner, line, label)

    def _expect(self, start: int, sign: str, tree: Tree) -> None:
        if not self._code.startswith(sign, start):
            raise PenstockError(
                code="no-loops", what="a statement that a macro writes", where=f"{self.file}:{tree[1][1]}:{tree[1][2]}",
                limit="loops stand in the text of the top function itself", hint="write the macro's loops out",
            )  # fmt: skip

    def _behind(self, opened: int) -> int:
        """The place behind the bracket that closes the one at `opened`."""
        depth = 0
        for at in range(opened, len(self._code)):
            if self._code[at] in "({[":
                depth += 1
            elif self._code[at] in ")}]":
                depth -= 1
                if depth == 0:
                    return at + 1
        return len(self._code)

    def _end(self, start: int) -> int:
        """The place behind the statement that begins here."""
        code = self._code
        while code[start].isspace():
            start += 1
        word = re.compile(r"[A-Za-z_]\w*|.", re.DOTALL).match(code, start)
        assert word is not None
        if word[0] == "{":
            return self._behind(start)
        label = re.compile(r"[A-Za-z_]\w*\s*:(?!:)").match(code, start)
        if label is not None:
            return self._end(label.end())
        if word[0] in ("for", "if", "while", "switch"):
            end = self._end(self._behind(code.index("(", start)))
            other = re.compile(r"\s*else\b").match(code, end) if word[0] == "if" else None
            return self._end(other.end()) if other is not None else end
        at = start
        while at < len(code) and code[at] != ";":
            at = self._behind(at) if code[at] in "({[" else at + 1
        return at + 1


def head_groups(statements: list[Tree], at: int) -> int:
    """How many declarations from here on a loop's head makes beside its counter: the tree has them before the loop."""
    end = at
    while end < len(statements) and statements[end][0] == "group":
        end += 1
    if end in (at, len(statements)):
        return 0
    loop = unlabelled(statements[end])[0]
    return end - at if loop[0] == "for" and statements[at][1][1:] > loop[1][1:] else 0


def _jumps(tree: Tree) -> bool:
    """Whether a loop's body has a statement that goes elsewhere."""
    if tree[0] == "bad" or tree[0] == "return":
        return True
    return any(_jumps(part) for part in tree if isinstance(part, list) and part and isinstance(part[0], str)) or any(
        _jumps(one) for part in tree if isinstance(part, list) and part and isinstance(part[0], list) for one in part
    )  # fmt: skip


def written(nodes: tuple[SourceNode, ...], depth: int) -> Iterator[str]:
    """The lines of some nodes."""
    for node in nodes:
        before = INDENT * depth
        if isinstance(node, SourceStatement):
            yield before + node.text
            continue
        label = f"{node.label}: " if node.label else ""
        yield f"{before}{label}for ({node.head}) {{"
        yield from (f"#pragma HLS {pragma}" for pragma in node.pragmas)
        yield from written(node.body, depth + 1)
        yield before + "}"
