"""A name of its own for each variable of a top function, where several share one: dependences are told by names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.compiler.hls_in.fence import lay_out, without_comments
from penstock.compiler.hls_in.parsing import Unit, parse
from penstock.compiler.hls_in.syntax import Tree, is_tree
from penstock.profiling.kernels.explore.loop_tree import BodyReader, head_groups
from penstock.profiling.kernels.explore.moves import fresh


@dataclass(eq=False)
class _Variable:
    name: str
    head: bool
    """Declared by a loop's head."""
    places: set[int] = field(default_factory=set[int])


def with_own_names(unit: Unit, tree: Tree, outer: set[str], lines: BodyReader, folder: Path) -> Unit:
    """The source with second variables of a name called something else, laid out in a folder; as it is where there
    are none, or where something that the tree does not show names one of them (a pragma, a macro)."""
    text = unit.sources.texts[unit.sources.main]
    reader = _NameReader(lines.offset, [{p[0]: _Variable(p[0], head=False) for p in tree[3]}])
    reader.visit(tree[6])
    begin, end = lines.span_of(tree[6])
    code = without_comments(text)
    names = set(re.findall(r"[A-Za-z_]\w*", text))
    edits: dict[int, tuple[str, str]] = {}
    for one in _second(reader.found, outer):
        seen = {begin + m.start() for m in re.finditer(rf"(?<![\w.]){re.escape(one.name)}\b", code[begin:end])}
        if seen != {at for other in reader.all_of(one.name) for at in other.places}:
            return unit
        new = fresh(f"{one.name}_2", frozenset(names))
        names.add(new)
        edits |= dict.fromkeys(one.places, (one.name, new))
    if not edits:
        return unit
    for at in sorted(edits, reverse=True):
        old, new = edits[at]
        text = text[:at] + new + text[at + len(old) :]
    return parse(lay_out(unit.sources, text, folder))


def _second(found: list[_Variable], outer: set[str]) -> Iterator[_Variable]:
    """Those of which another has the name already. Loops one after the other may share theirs."""
    known = set(outer)
    heads = {one.name for one in found if one.head}
    for one in found:
        if one.head and one.name in outer:
            yield one
        elif not one.head:
            if one.name in known or one.name in heads:
                yield one
            known.add(one.name)


class _NameReader:
    """Which variable each name of a body is."""

    def __init__(self, offset: Callable[[Tree], int], scopes: list[dict[str, _Variable]]) -> None:
        self.offset, self.scopes = offset, scopes
        self.found: list[_Variable] = []
        self._arguments = list(scopes[0].values())

    def all_of(self, name: str) -> list[_Variable]:
        return [one for one in (*self._arguments, *self.found) if one.name == name]

    def visit(self, tree: Tree) -> None:
        match tree[0]:
            case "block":
                self.scopes.append({})
                self._statements(tree[3])
                self.scopes.pop()
            case "for" if len(tree) == 7:
                self.scopes.append({})
                self._all(tree[2:3], head=True)
                self._all(tree[3:])
                self.scopes.pop()
            case "group":
                self._declared(tree, head=False)
            case "name" if len(tree) == 3:
                one = next((scope[tree[2]] for scope in reversed(self.scopes) if tree[2] in scope), None)
                if one is not None:
                    one.places.add(self.offset(tree))
            case _:
                self._all(tree)

    def _statements(self, statements: list[Tree]) -> None:
        at = 0
        while at < len(statements):
            groups = head_groups(statements, at)
            if groups:  # they end with their loop
                self.scopes.append({})
                self._all(statements[at : at + groups + 1])
                self.scopes.pop()
            else:
                self.visit(statements[at])
            at += groups + 1

    def _declared(self, tree: Tree, *, head: bool) -> None:
        for part in tree[2]:
            self._all(part[3:])
            one = _Variable(part[2], head, {self.offset(part)})
            self.scopes[-1][part[2]] = one
            self.found.append(one)

    def _all(self, trees: Tree, *, head: bool = False) -> None:
        for child in trees:
            if not is_tree(child):
                continue
            if child[0] == "group" and head:
                self._declared(child, head=True)
            elif isinstance(child[0], str):
                self.visit(child)
            else:
                self._all(child)
