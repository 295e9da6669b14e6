"""Values as other types have them: casts, and the usual conversions of C++."""

from __future__ import annotations

import math
from abc import ABC

from penstock.compiler.hls_in.bindings import NameScope, Slot, kind_of
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph, nearest_float
from penstock.compiler.hls_in.integers import fits, width_of, wrapped
from penstock.compiler.hls_in.storage import NumberKind
from penstock.compiler.hls_in.syntax import Tree

REAL = ("half", "float", "double", "fixed")


class Conversions(ABC):
    """The part of the walk that knows types of numbers."""

    graph: ValueGraph
    scope: NameScope

    def truth(self, node: KernelValue) -> KernelValue:
        if node.kind == "bool":
            return node
        return self.graph.compare("!=", node, self.graph.constant(0, node.kind, node.bits))

    def convert(self, node: KernelValue, kind: NumberKind, bits: int, signed: bool = True) -> KernelValue:
        """A cast; constants at once, a float widened and narrowed again not at all."""
        if node.kind == kind and kind in REAL:
            return node
        if kind == "bool":
            return self.truth(node)
        if kind == "int":
            if node.kind in ("int", "bool"):
                if node.constant:
                    return self.graph.constant(wrapped(int(node.value or 0), bits, signed), "int", bits, signed)
                if (_varies(node) and not fits(width_of(node), (bits, signed))) or _counts_beyond(node, bits, signed):
                    return self.graph.apply("convert", (node,), "int", bits, node.line, signed)
                return node
            if node.constant:
                value = int(node.value or 0) if math.isfinite(node.value or 0) else 0
                return self.graph.constant(wrapped(value, bits, signed), "int", bits, signed)
            return self.graph.apply("toint", (node,), "int", bits, signed=signed)
        if node.constant:
            return self.graph.constant(float(node.value or 0), kind, bits)
        if node.kind in ("int", "bool"):
            return self.graph.apply("fromint", (node,), kind, bits)
        if node.kind == "float" and kind == "double":
            return self.graph.apply("widen", (node,), kind, bits)
        if node.kind == "double" and kind == "float":
            return self._narrowed(node)
        return self.graph.apply("convert", (node,), kind, bits)

    def _narrowed(self, node: KernelValue) -> KernelValue:
        """A double as a float. One operation on floats alone gives the same value as a float operation."""
        if node.op == "widen":
            return node.args[0]
        if node.op in ("add", "sub", "mul", "div") and all(map(is_float, node.args)):
            left, right = (self.as_float(arg) for arg in node.args)
            return self.graph.operate(node.op, left, right, "float", 32, node.line)
        if node.op == "sqrt" and is_float(node.args[0]):
            return self.graph.apply("sqrt", (self.as_float(node.args[0]),), "float", 32, node.line)
        return self.graph.apply("narrow", (node,), "float", 32, node.line)

    def as_float(self, node: KernelValue) -> KernelValue:
        return node.args[0] if node.op == "widen" else self.graph.constant(float(node.value or 0), "float", 32)

    def exactly(self, tree: Tree, node: KernelValue) -> KernelValue:
        """A number that counters lead below 0, where its type has no sign and somebody asks how large it is: addresses
        and sums need not know that it wraps."""
        if node.linear is None or node.constant or node.linear.range[0] >= 0:
            return node
        bits, signed = self._declared(tree)
        return node if signed else self.graph.apply("convert", (node,), "int", bits, node.line, signed=False)

    def _declared(self, tree: Tree) -> tuple[int, bool]:
        """Bits and sign of the type that an expression has in the source."""
        if tree[0] == "name":
            found = self.scope.find(tree[2])
            return (found.bits, found.signed) if isinstance(found, Slot) else (32, True)
        kind = kind_of(tree[2]) if tree[0] == "cast" else None
        if tree[0] in ("binary", "unary", "choice"):
            kind = kind_of(tree[-1])
        return kind[1:] if kind is not None and kind[0] == "int" else (32, True)


def _varies(node: KernelValue) -> bool:
    """An integer that data decide."""
    return node.kind == "int" and not node.constant and node.linear is None


def _counts_beyond(node: KernelValue, bits: int, signed: bool) -> bool:
    """Whether counters lead beyond a type that is narrower than int, which wraps them."""
    if node.linear is None or node.constant or bits >= 32:
        return False
    low, high = node.linear.range
    return low < (-(1 << (bits - 1)) if signed else 0) or high >= 1 << (bits - signed)


def is_float(node: KernelValue) -> bool:
    """A double that holds a float: one that was widened, or a constant that a float holds exactly."""
    return node.op == "widen" or (node.constant and nearest_float(float(node.value or 0)) == node.value)
