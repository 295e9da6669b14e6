"""Expressions of a kernel to nodes of a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import replace
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.bindings import (
    INSTEAD,
    ArrayView,
    NameScope,
    NotKnown,
    Slot,
    StreamView,
    WordView,
    kind_of,
    unsupported,
)
from penstock.compiler.hls_in.bit_access import BitAccess
from penstock.compiler.hls_in.conversions import REAL, Conversions, is_float
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.integers import plain, result_width
from penstock.compiler.hls_in.leaving import Returns
from penstock.compiler.hls_in.memory import Memories
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.hls_in.stream_access import StreamAccess, is_counted
from penstock.compiler.hls_in.syntax import Tree, assigned_in, calls_in, takes_token

_SIGNS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "&": "and", "|": "or", "^": "xor", "<<": "shl",
    ">>": "shr",
}  # fmt: skip
MOST_REACHED = 1 << 31
_MODULAR = ("+=", "-=", "*=", "&=", "|=", "^=", "<<=")
"""Of which the lower bits of a result follow from the lower bits of what is combined."""


class ExpressionWalk(Conversions, Returns, BitAccess, StreamAccess, ABC):
    """The part of the walk that evaluates; statements and loops are in elaborate.py and nests.py."""

    memories: Memories
    scope: NameScope
    tables: dict[KernelArray, tuple[float | int, ...]]
    touched: set[KernelArray]
    """Arrays that were read or written already."""
    filled: dict[KernelArray, tuple[str, tuple[tuple[str, float | int | None], ...]]]
    """Where each table of constants is filled, and which constants from outside decide its words (`rom_tables.py`)."""
    spoiled: Set[str]
    """Places of arrays that an earlier walk saw stored to after they were filled."""
    works_out: bool = False
    """It is at the words of a table: what is no constant ends that."""
    reached: dict[str, int]
    """How many words each pointer without a size has, as far as it is known, by its place."""
    notes: list[str]
    """What the cycles rest on."""
    only_if: KernelValue | None
    """Under which condition somebody asks for the expression in hand: k < 8 ? a[k] : 0."""
    beyond: list[tuple[str, str]]
    """What the source computes and no value here says: (place, what). Cycles do not depend on it."""

    def value(self, tree: Tree) -> KernelValue:
        match tree[0]:
            case "literal":
                kind = kind_of(tree[3]) or ("int", 32, True)
                return self.graph.constant(tree[2], *kind)
            case "cast":
                kind = kind_of(tree[2])
                inner = self.value(tree[3])
                if kind is not None and (kind[0] != "int" or kind[1] > inner.bits):
                    inner = self.exactly(tree[3], inner)
                return self.convert(inner, *kind) if kind is not None else inner
            case "name" | "index":
                return self._known(self._read(tree))
            case "binary":
                return self._binary(tree)
            case "unary" if tree[2] == "*":
                return self._known(self._read(self._pointed(tree)))
            case "unary":
                return self._unary(tree)
            case "choice":
                condition = self.truth(self.value(tree[2]))
                if condition.constant:  # the other branch is not there: it meets no memory
                    return self.value(tree[3] if condition.value else tree[4])
                yes = self._chosen(condition, tree[3])
                no = self._chosen(self.graph.negate(condition), tree[4])
                return self.graph.choose(condition, yes, no, tree[1][1])
            case "method":
                return self._method(tree)
            case "call":
                return self.called(tree)
            case "bits":
                return self.bits_of(tree)
            case "operator" if tree[2] in ("[]", "()") and len(tree[3]) == 2:
                return self._known(self._read(_indexed(tree)))
            case "operator" if tree[2] in ("<<", ">>") and len(tree[3]) == 2:
                return self._stream_sign(tree)
            case "operator" if len(tree[3]) == 2:
                return self._binary(["binary", tree[1], tree[2], *tree[3], ["int", 32, True]])
            case "bad":
                raise unsupported(
                    tree[1], tree[2], INSTEAD.get(tree[2], "write it with loops, arrays, streams and numbers")
                )
            case _:
                raise unsupported(
                    tree[1], f"an expression of kind {tree[0]!r}", "write it with numbers, arrays and streams"
                )

    @abstractmethod
    def called(self, tree: Tree) -> KernelValue: ...

    def _binary(self, tree: Tree) -> KernelValue:
        _, place, sign, left_tree, right_tree, type_ = tree
        line = place[1]
        if sign == "=" or (sign.endswith("=") and sign not in ("==", "!=", "<=", ">=")):
            return self._assign(place, sign, left_tree, right_tree)
        if sign == ",":
            self.value(left_tree)
            return self.value(right_tree)
        if sign in ("<<", ">>") and self._names_stream(left_tree):  # in a template it is not yet an operator's call
            return self._stream_sign(["operator", place, sign, [left_tree, right_tree]])
        left = self.value(left_tree)
        if sign in ("&&", "||"):
            left = self.truth(left)
            right = self.truth(self._if_asked(left if sign == "&&" else self.graph.negate(left), right_tree))
            found = self.graph.both(left, right) if sign == "&&" else self.graph.either(left, right)
            return found if found is not None else self.graph.constant(1, "bool", 1)
        right = self.value(right_tree)
        if sign in ("<", ">", "<=", ">=", "==", "!=", "/", "%", ">>"):
            left, right = self.exactly(left_tree, left), self.exactly(right_tree, right)
        if sign in ("<", ">", "<=", ">=", "==", "!="):
            left, right = self._alike(left, right)
            if left.kind == "double" and is_float(left) and is_float(right):
                left, right = self.as_float(left), self.as_float(right)
            return self.graph.compare(sign, left, right, line)
        if sign not in _SIGNS:
            raise unsupported(place, f"the operator {sign}", "write it with + - * / % & | ^ << >> and comparisons")
        left, right = self._alike(left, right)
        kind, bits = left.kind, max(left.bits, right.bits)
        if kind in ("int", "bool"):
            declared = kind_of(type_)
            bits, signed = result_width(sign, left, right, declared[1:] if declared is not None else None)
            return self.graph.operate(_SIGNS[sign], left, right, "int", bits, line, signed)
        if kind == "fixed":
            bits = {"*": left.bits + right.bits, "+": bits + 1, "-": bits + 1}.get(sign, max(bits, 64))
        return self.graph.operate(_SIGNS[sign], left, right, kind, bits, line)

    def _alike(self, left: KernelValue, right: KernelValue) -> tuple[KernelValue, KernelValue]:
        """The usual conversions, for operands that the front end left as they are."""
        for one, other in ((left, right), (right, left)):
            if one.kind == "fixed" and other.constant and other.kind != "fixed":
                found = self.graph.constant(float(other.value or 0), "fixed", one.bits)
                return (left, found) if one is left else (found, right)
        order = ("bool", "int", "fixed", "half", "float", "double")
        wide = left if order.index(left.kind) >= order.index(right.kind) else right
        if left.kind != right.kind and wide.kind in REAL:
            return self.convert(left, wide.kind, wide.bits), self.convert(right, wide.kind, wide.bits)
        return left, right

    def _assign(self, place: list[Any], sign: str, left: Tree, right: Tree) -> KernelValue:
        value = self.value(right)
        if sign != "=":
            old = self.value(left)
            a, b = self._alike(old, value)
            bits, signed, kind = max(a.bits, b.bits), True, a.kind
            if kind in ("int", "bool"):
                kind = "int"
                if not (plain(a) and plain(b)):
                    bits, signed = result_width(sign[:-1], a, b, (max(bits, 64) + 1, True))
                into = self._kept_in(left)
                if sign in _MODULAR and into is not None and into[0] <= bits:
                    bits, signed = into  # what lies above is cut off
            value = self.graph.operate(_SIGNS[sign[:-1]], a, b, kind, bits, place[1], signed)
        return self.write(left, value)

    def _kept_in(self, tree: Tree) -> tuple[int, bool] | None:
        """Bits and sign of the variable or word that an expression names, if it is an integer of several bits."""
        if tree[0] == "bits":
            return None
        target = self.target(tree)
        kept = target if isinstance(target, Slot) else target[0].array if isinstance(target, tuple) else None
        return (kept.bits, kept.signed) if kept is not None and kept.kind == "int" else None

    def _if_asked(self, condition: KernelValue, tree: Tree) -> KernelValue:
        """An expression that is evaluated under a condition: it matters where it changes something."""
        if not condition.constant and (assigned_in(tree) or any(True for _ in calls_in(tree)) or takes_token(tree)):
            with self.under(condition):
                return self.value(tree)
        return self.value(tree)

    def _chosen(self, condition: KernelValue, tree: Tree) -> KernelValue:
        """A branch of ?:, whose value matters under a condition alone."""
        around = self.only_if
        if is_counted(condition):
            self.only_if = self.graph.both(around, condition)
        found = self._if_asked(condition, tree)
        self.only_if = around
        return found

    def _unary(self, tree: Tree) -> KernelValue:
        _, place, sign, inner, _ = tree
        if sign in ("++", "--", "p++", "p--"):
            old = self.value(inner)
            new = self.graph.operate(
                "add" if "+" in sign else "sub", old, self.graph.constant(1), "int", old.bits, place[1], old.signed
            )
            self.write(inner, new)
            return old if sign[0] == "p" else new
        node = self.value(inner)
        if sign == "!":
            return self.graph.negate(self.truth(node))
        if sign == "+":
            return node
        if sign == "-":
            zero = self.graph.constant(0, node.kind, node.bits)
            if node.constant:
                return self.graph.constant(-(node.value or 0), node.kind, node.bits)
            if node.kind in REAL:
                return self.graph.apply("negate", (node,), node.kind, node.bits, place[1])
            declared = kind_of(tree[4])
            bits, signed = result_width("-", zero, node, declared[1:] if declared is not None else None)
            return self.graph.operate("sub", zero, node, "int", node.bits if plain(node) else bits, place[1], signed)
        if sign == "~":
            ones = self.graph.constant(-1, "int", node.bits)
            found = self.graph.operate("xor", node, ones, "int", node.bits + (not plain(node)), place[1])
            declared = kind_of(tree[4])
            return self.convert(found, *declared) if declared is not None and not plain(node) else found
        raise unsupported(place, f"the operator {sign} (a pointer)", "index the array itself")

    def _pointed(self, tree: Tree) -> Tree:
        """*p and *(p + i) as the words that they are."""
        inner = tree[3]
        while inner[0] == "cast":
            inner = inner[3]
        index: Tree = ["literal", tree[1], 0, ["int", 32, True]]
        if inner[0] == "binary" and inner[2] == "+":
            inner, index = inner[3], inner[4]
        return ["index", tree[1], inner, index]

    def target(self, tree: Tree) -> Slot | tuple[ArrayView, tuple[KernelValue, ...]] | StreamView | ArrayView:
        """What an expression names: a variable, a word of an array, a stream, a part of an array."""
        if tree[0] == "cast":
            return self.target(tree[3])
        if tree[0] == "unary" and tree[2] == "*":
            return self.target(self._pointed(tree))
        if tree[0] == "unary" and tree[2] == "&":  # the place itself, or the array that begins there
            inner = tree[3]
            return self._moved(inner[2], inner[3]) if inner[0] == "index" else self.target(inner)
        if tree[0] == "binary" and tree[2] == "+":
            return self._moved(tree[3], tree[4])
        if tree[0] == "name":
            found = self.scope.find(tree[2])
            if found is None:
                raise unsupported(
                    tree[1],
                    f"the name {tree[2]!r}, which is no variable of the kernel,",
                    "declare it in the kernel or as a constant",
                )
            if isinstance(found, ArrayView) and found.array.number:
                return found, (self.graph.constant(0),)
            return (ArrayView(found.array), found.index) if isinstance(found, WordView) else found
        if tree[0] == "operator" and str(tree[2]) == "[]" and len(tree[3]) == 2:
            return self.target(_indexed(tree))
        if tree[0] == "index":
            base = self.target(tree[2])
            index = self.value(tree[3])
            if isinstance(base, Slot | tuple) and index.value == 0:  # of a pointer to one number
                return base
            if isinstance(base, StreamView):
                return StreamView(base.streams, (*base.prefix, index))
            if isinstance(base, ArrayView):
                if base.offset is not None:
                    index = self.graph.operate("add", base.offset, index, "int", 32)
                whole = (*base.prefix, index)
                if base.array.unsized and index.value != 0:
                    self._reaches(base.array, index)
                if len(whole) < len(base.array.dims):
                    return ArrayView(base.array, whole)
                return ArrayView(base.array), whole
        if tree[0] == "unary" and tree[2] in ("++", "--", "p++", "p--"):
            raise unsupported(tree[1], "a pointer that moves", "count with a number and index the array: a[i++]")
        raise unsupported(tree[1], "this target", "index an array by its name, or assign to a variable")

    def _moved(self, tree: Tree, by: Tree) -> ArrayView | StreamView | Slot | tuple[ArrayView, tuple[KernelValue, ...]]:
        """A pointer to a later word of an array."""
        base, words = self.target(tree), self.value(by)
        if words.value == 0:
            return base
        if isinstance(base, ArrayView) and len(base.prefix) + 1 == len(base.array.dims):
            before = base.offset
            return replace(
                base, offset=words if before is None else self.graph.operate("add", before, words, "int", 32)
            )
        raise unsupported(tree[1], "a pointer to a part of this", "index the array by its name")

    def _reaches(self, array: KernelArray, index: KernelValue) -> None:
        """A pointer without a size is as long as the source reaches, where loop counters say how far that is."""
        low, high = index.linear.range if index.linear is not None else (-1, -1)
        if low < 0 or high >= MOST_REACHED:
            raise PenstockError(
                code="unsupported-source", where=array.where, hint=array.unsized,
                what=f"the pointer {array.name!r} without a size is not supported",
            )  # fmt: skip
        self.reached[array.where] = max(self.reached.get(array.where, 1), high + 1)

    def write(self, tree: Tree, value: KernelValue) -> KernelValue:
        if tree[0] == "bits":
            return self.set_bits(tree, value)
        target = self.target(tree)
        if isinstance(target, Slot):
            value = self.convert(value, target.kind, target.bits, target.signed)
            target.write(value, self.path, self.graph)
        elif isinstance(target, tuple):
            array, index = target[0].array, target[1]
            self.touched.add(array)
            value = self.convert(value, array.kind, array.bits, array.signed)
            self.memories.write(array, index, value, self.path, tree[1][1])
        else:
            raise unsupported(tree[1], "assigning a whole array or stream", "copy it word by word in a loop")
        return value

    def _known(self, node: KernelValue) -> KernelValue:
        if self.works_out and not node.constant:
            raise NotKnown
        return node

    def _read(self, tree: Tree) -> KernelValue:
        target = self.target(tree)
        if isinstance(target, Slot):
            found = target.read(self.path)
            if found is None:  # never written: any value will do
                found = target.value = self.graph.constant(0, target.kind, target.bits)
            return found
        if isinstance(target, tuple):
            array, index = target[0].array, target[1]
            self.touched.add(array)
            if array in self.tables and all(node.constant for node in index):
                flat = 0
                for node, length in zip(index, array.dims, strict=True):
                    flat = flat * length + int(node.value or 0)
                if 0 <= flat < len(self.tables[array]):
                    return self.graph.constant(self.tables[array][flat], array.kind, array.bits)
            outside = any(
                node.linear is not None and not 0 <= node.linear.range[0] <= node.linear.range[1] < length
                for node, length in zip(index, array.dims, strict=True)
            )
            path = self.graph.both(self.path, self.only_if) if outside else self.path
            return self.memories.read(array, index, path, tree[1][1])
        raise unsupported(tree[1], "a whole array or stream as a value", "read it word by word")

    def _method(self, tree: Tree) -> KernelValue:
        _, place, owner, name, arguments = tree
        target = self.target(owner) if name in ("read", "write") else None
        if not isinstance(target, StreamView):
            raise unsupported(place, f".{name}()", "use blocking read() and write() of hls::stream")
        if name == "write":
            return self.put(place, target, self.value(arguments[0]))
        token = self.take(place, target)
        return self.write(arguments[0], token) if arguments else token

    def _names_stream(self, tree: Tree) -> bool:
        while tree[0] in ("index", "cast"):
            tree = tree[2] if tree[0] == "index" else tree[3]
        return tree[0] == "name" and isinstance(self.scope.find(tree[2]), StreamView)

    def _stream_sign(self, tree: Tree) -> KernelValue:
        _, place, sign, (stream, other) = tree
        target = self.target(stream) if self._names_stream(stream) else None
        if not isinstance(target, StreamView):
            return self._binary(["binary", place, sign, stream, other, ["int", 32, True]])
        if sign == "<<":
            return self.put(place, target, self.value(other))
        return self.write(other, self.take(place, target))


def _indexed(tree: Tree) -> Tree:
    """A call of operator[] as the index that it is."""
    operands: Tree = tree[3]
    return ["index", tree[1], *operands]
