"""memcpy and memset of a kernel, as the loops over words that they become."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from penstock.compiler.hls_in.bindings import ArrayView, unsupported
from penstock.compiler.hls_in.directives import PragmaWalk
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.syntax import Tree

COPIES = ("memcpy", "memset")
"""Functions of the library that become loops."""


class WordCopies(PragmaWalk):
    @abstractmethod
    def loop_of(self, tree: Tree, label: str) -> None: ...

    def copied(self, place: list[Any], name: str, arguments: list[Tree]) -> KernelValue:
        """One call, as its loop."""
        (into, first), value = _from(arguments[0]), arguments[1]
        size = self.value(arguments[2]).value
        target = self.target(into)
        if size is None or not isinstance(target, ArrayView) or len(target.prefix) + 1 != len(target.array.dims):
            hint = "give a constant size and arrays of one dimension, or write a loop over the words"
            raise unsupported(place, f"this {name}", hint)
        counter, number = f"{name}_word", ["int", 32, True]
        start: Tree = ["literal", place, 0, number]
        words: Tree = ["literal", place, int(size) * 8 // max(8, target.array.bits), number]
        step: Tree = ["name", place, counter]

        def word(array: Tree, offset: Tree | None) -> Tree:
            return ["index", place, array, step if offset is None else ["binary", place, "+", offset, step, number]]

        if name == "memcpy":
            value = word(*_from(arguments[1]))
        body: Tree = ["expression", place, ["binary", place, "=", word(into, first), value, number]]
        head: Tree = ["group", place, [["declare", place, counter, number, start, False, False]]]
        condition: Tree = ["binary", place, "<", step, words, number]
        self.loop_of(["for", place, head, condition, ["unary", place, "++", step, number], body, place[1]], name)
        return self.graph.constant(0)


def _from(tree: Tree) -> tuple[Tree, Tree | None]:
    """An array, and from which word of it on."""
    while tree[0] == "cast":
        tree = tree[3]
    if tree[0] == "binary" and tree[2] == "+":
        array, first = _from(tree[3])
        both = tree[4] if first is None else ["binary", tree[1], "+", first, tree[4], ["int", 32, True]]
        return array, both
    if tree[0] == "unary" and tree[2] == "&" and tree[3][0] == "index":
        return tree[3][2], tree[3][3]
    return tree, None
