"""What an expression of a struct names, while syntax is read."""

from __future__ import annotations

from typing import Any

from penstock.compiler.hls_in.syntax import is_tree

SyntaxList = list[Any]
Path = tuple[str | int, ...]
"""Of a number in a struct: names of fields, and lanes of vectors."""


class Ref:
    """What a struct expression names: a variable with fields chosen, and the indices on the way."""

    def __init__(self, name: str, indices: tuple[SyntaxList, ...] = ()) -> None:
        self.name, self.indices = name, indices

    def tree(self, place: list[Any], path: Path) -> SyntaxList:
        found: SyntaxList = ["name", place, self.name + "".join(f".{p}" for p in path if isinstance(p, str))]
        lanes = [["literal", place, p, ["int", 32, True]] for p in path if isinstance(p, int)]
        for index in (*self.indices, *lanes):
            found = ["index", place, found, index]
        return found


def replaced(tree: SyntaxList, values: dict[str, SyntaxList]) -> SyntaxList:
    """An expression with the names of a function's arguments replaced by what is given for them."""
    if len(tree) == 3 and tree[0] == "name":
        return values.get(tree[2], tree)
    return [replaced(part, values) if is_tree(part) else part for part in tree]


def field_of(place: list[Any], given: Ref, suffix: str) -> SyntaxList:
    """What is written behind a struct's name chooses it: ".x"."""
    return Ref(given.name + suffix, given.indices).tree(place, ())


def chain(trees: list[SyntaxList]) -> SyntaxList:
    """Expressions one after the other."""
    whole = trees[0]
    for tree in trees[1:]:
        whole = ["binary", tree[1], ",", whole, tree, ["int", 32, True]]
    return whole
