"""A straight piece of a kernel as operations on values: what one iteration of a pipeline does.

Equal expressions become one node (the tools find common subexpressions), constants are folded, and integers that are
linear in loop counters carry that form, from which banks, dependences and token patterns follow.
"""

from __future__ import annotations

import math
import operator
import struct
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.compiler.hls_in.storage import Counter, KernelArray, KernelStream, NumberKind

_Key = tuple[Any, ...]


@dataclass(frozen=True)
class LinearForm:
    """base + the sum of factor · counter (0, 1, 2, ...)."""

    base: int
    terms: tuple[tuple[Counter, int], ...] = ()

    def plus(self, other: LinearForm, times: int = 1) -> LinearForm:
        factors = dict(self.terms)
        for counter, factor in other.terms:
            factors[counter] = factors.get(counter, 0) + times * factor
        kept = tuple(sorted(((c, f) for c, f in factors.items() if f), key=lambda term: term[0].number))
        return LinearForm(self.base + times * other.base, kept)

    def times(self, factor: int) -> LinearForm:
        return LinearForm(self.base * factor, tuple((c, f * factor) for c, f in self.terms) if factor else ())

    @property
    def range(self) -> tuple[int, int]:
        low = high = self.base
        for counter, factor in self.terms:
            end = factor * (counter.trip - 1)
            low, high = low + min(0, end), high + max(0, end)
        return low, high


@dataclass(eq=False)
class KernelValue:
    """One value, or one access. `guard` is the condition under which an access happens; None is always."""

    op: str
    args: tuple[KernelValue, ...] = ()
    kind: NumberKind = "int"
    bits: int = 32
    signed: bool = True
    """Of an integer: whether it may be below 0."""
    value: float | int | None = None
    linear: LinearForm | None = None
    guard: KernelValue | None = None
    array: KernelArray | None = None
    streams: KernelStream | None = None
    comparison: str = ""
    line: int = 0
    number: int = 0
    word: tuple[int, ...] = ()
    """Of a "phi": which word of its array it is."""
    follow: KernelValue | None = None
    """Of a "phi": what it becomes in the next iteration."""
    given: bool = False
    """Of a constant: an argument of a function that stays a module; adding its zero is an operation then."""
    usual: bool = False
    """Of an addition: it is the usual one, with DSPs, whatever comes back through it."""
    after: list[KernelValue] = field(default_factory=list["KernelValue"])
    """Accesses of the same memory that must come before."""

    @property
    def constant(self) -> bool:
        return self.value is not None

    @property
    def index(self) -> tuple[KernelValue, ...]:
        """Of a load or store: where, a number for each dimension."""
        return self.args[1:] if self.op == "store" else self.args

    def __repr__(self) -> str:
        return f"{self.op}{self.number}"


_sign: Any = operator  # some of its functions have no full types
_FOLD: dict[str, Any] = {
    "add": _sign.add, "sub": _sign.sub, "mul": _sign.mul, "and": _sign.and_, "or": _sign.or_,
    "xor": _sign.xor, "shl": _sign.lshift, "shr": _sign.rshift, "div": None, "rem": math.fmod,
    "==": _sign.eq, "!=": _sign.ne, "<": _sign.lt, "<=": _sign.le, ">": _sign.gt, ">=": _sign.ge,
}  # fmt: skip


def fold(op: str, left: float, right: float) -> float:
    """C++'s result for constants: division and remainder of integers go towards zero, shifts stay within a word."""
    if op == "div":
        if not isinstance(left, int) or not isinstance(right, int):
            if right == 0:
                none = left == 0 or math.isnan(left)
                return math.nan if none else math.copysign(math.inf, left) * math.copysign(1, right)
            return left / right
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if op == "rem" and isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (1 if left >= 0 else -1)
    if op == "shl":
        right = min(right, 64)
    value = _FOLD[op](left, right)
    return int(value) if isinstance(left, int) and isinstance(right, int) else value


class ValueGraph:
    """Builds nodes in the order of the program."""

    def __init__(self) -> None:
        self.nodes: list[KernelValue] = []
        self._known: dict[_Key, KernelValue] = {}
        self.balanced = False  # its sums are as the tool shares them out

    def constant(
        self, value: float | int, kind: NumberKind = "int", bits: int = 32, signed: bool = True
    ) -> KernelValue:
        linear = LinearForm(int(value)) if kind == "int" else None
        value = nearest_float(value) if kind == "float" else value
        made = KernelValue("const", (), kind, bits, signed, value, linear)
        return self._one(("const", value, kind, bits, signed), made)

    def counter(self, counter: Counter) -> KernelValue:
        linear = LinearForm(0, ((counter, 1),)) if counter.trip > 1 else LinearForm(0)
        if counter.trip == 1:
            return self.constant(0)
        return self._one(
            ("counter", counter),
            KernelValue("counter", (), "int", max(1, counter.trip.bit_length()), linear=linear),
        )

    def fresh(self, op: str, kind: NumberKind, bits: int, signed: bool = True, **more: Any) -> KernelValue:
        """A node that is no other's twin: a phi, an access, an input."""
        node = KernelValue(op, kind=kind, bits=bits, signed=signed, **more)
        return self._add(node)

    def operate(
        self, op: str, left: KernelValue, right: KernelValue, kind: NumberKind, bits: int, line: int = 0,
        signed: bool = True,
    ) -> KernelValue:  # fmt: skip
        """An arithmetic operation; "add", "sub", "mul", "div", "rem", "and", "or", "xor", "shl", "shr"."""
        if left.constant and right.constant:
            try:
                assert left.value is not None
                assert right.value is not None
                folded = fold(op, left.value, right.value)
                return self.constant(folded if signed else int(folded) % (1 << bits), kind, bits, signed)
            except (ArithmeticError, ValueError, TypeError):
                pass
        linear = _linear(op, left, right) if kind == "int" else None
        if linear is not None and not linear.terms:
            return self.constant(linear.base, "int", bits)
        if kind == "int":
            same = _neutral(op, left, right)
            if same is not None and same.bits <= bits and (same.signed is signed or same.constant):
                return same
        elif op == "mul" and 1.0 in (left.value, right.value):
            return right if left.value == 1.0 else left
        elif op in ("add", "sub") and right.value == 0.0 and not right.given:
            return left
        elif op == "add" and left.value == 0.0 and not left.given:
            return right
        key: _Key = (
            (op, left, right, kind, bits, signed)
            if op in ("sub", "div", "rem", "shl", "shr")
            else (op, *_sorted(left, right), kind, bits, signed)
        )
        if linear is not None:
            key = ("linear", linear, bits)
            low, high = linear.range
            bits = max(low.bit_length() + (low < 0), high.bit_length() + (low < 0), 1)
            signed = True
        return self._one(key, KernelValue(op, (left, right), kind, bits, signed, linear=linear, line=line))

    def compare(self, sign: str, left: KernelValue, right: KernelValue, line: int = 0) -> KernelValue:
        if left.constant and right.constant:
            return self.constant(int(fold(sign, left.value or 0, right.value or 0)), "bool", 1)
        if left.linear is not None and right.linear is not None:
            difference = left.linear.plus(right.linear, -1)
            low, high = difference.range
            for signs, certain in (
                (("==",), False if low > 0 or high < 0 else None), (("!=",), True if low > 0 or high < 0 else None),
                (("<",), True if high < 0 else False if low >= 0 else None),
                (("<=",), True if high <= 0 else False if low > 0 else None),
                ((">",), True if low > 0 else False if high <= 0 else None),
                ((">=",), True if low >= 0 else False if high < 0 else None),
            ):  # fmt: skip
                if sign in signs and certain is not None:
                    return self.constant(int(certain), "bool", 1)
            node = KernelValue("compare", (left, right), "bool", 1, linear=None, comparison=sign, line=line)
            return self._one(("compare", sign, difference), node)
        node = KernelValue(
            "fcompare" if left.kind in ("half", "float", "double") else "compare",
            (left, right),
            "bool",
            1,
            comparison=sign,
            line=line,
        )
        return self._one(("compare", sign, left, right), node)

    def both(self, left: KernelValue | None, right: KernelValue | None) -> KernelValue | None:
        """Two conditions together; None is true."""
        if left is None or left is right:
            return right
        if right is None:
            return left
        for one, other in ((left, right), (right, left)):
            if one.constant:
                return other if one.value else one
        return self._one(
            ("logic", "and", *_sorted(left, right)), KernelValue("logic", (left, right), "bool", 1, comparison="and")
        )

    def either(self, left: KernelValue, right: KernelValue) -> KernelValue:
        for one, other in ((left, right), (right, left)):
            if one.constant:
                return one if one.value else other
            if one.op == "not" and one.args[0] is other:
                return self.constant(1, "bool", 1)
        return self._one(
            ("logic", "or", *_sorted(left, right)), KernelValue("logic", (left, right), "bool", 1, comparison="or")
        )

    def negate(self, node: KernelValue) -> KernelValue:
        if node.constant:
            return self.constant(int(not node.value), "bool", 1)
        if node.op == "not":
            return node.args[0]
        return self._one(("not", node), KernelValue("not", (node,), "bool", 1))

    def choose(self, condition: KernelValue, yes: KernelValue, no: KernelValue, line: int = 0) -> KernelValue:
        if condition.constant:
            return yes if condition.value else no
        if yes is no:
            return yes
        kind, bits = yes.kind if yes.kind != "bool" else no.kind, max(_bits(yes), _bits(no))
        one, other = _has_sign(yes), _has_sign(no)
        signed = one if one is other or no.constant else other if yes.constant else True
        bits += kind == "int" and signed and not (one and other) and not (yes.constant or no.constant)
        return self._one(
            ("select", condition, yes, no), KernelValue("select", (condition, yes, no), kind, bits, signed, line=line)
        )

    def apply(
        self, op: str, args: tuple[KernelValue, ...], kind: NumberKind, bits: int, line: int = 0, signed: bool = True
    ) -> KernelValue:
        """A function or a cast of values."""
        return self._one((op, args, kind, bits, signed), KernelValue(op, args, kind, bits, signed, line=line))

    def access(self, op: str, args: tuple[KernelValue, ...], kind: NumberKind, bits: int, **more: Any) -> KernelValue:
        return self._add(KernelValue(op, args, kind, bits, **more))

    def copied(self, node: KernelValue) -> KernelValue:
        """A value of another graph computed here again, from what no graph computes."""
        if not node.args:
            return node
        args = tuple(self.copied(arg) for arg in node.args)
        key: _Key = ("copied", node.op, args, node.comparison, node.kind, node.bits, node.signed)
        return self._one(key, replace(node, args=args))

    def _one(self, key: _Key, node: KernelValue) -> KernelValue:
        found = self._known.get(key)
        if found is None:
            self._known[key] = found = self._add(node)
        return found

    def _add(self, node: KernelValue) -> KernelValue:
        node.number = len(self.nodes)
        self.nodes.append(node)
        return node


def nearest_float(value: float) -> float:
    """What a float of 32 bits holds of a number."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def leaves_of(node: KernelValue) -> set[KernelValue | Counter]:
    """What decides a value: counters, and values that nothing here decides, loads among them."""
    found: set[KernelValue | Counter] = set()
    seen, waiting = {node}, [node]
    while waiting:
        one = waiting.pop()
        if one.linear is not None:
            found.update(c for c, _ in one.linear.terms)
        elif one.op == "load" or (not one.args and not one.constant):
            found.add(one)
        else:
            waiting += [arg for arg in one.args if arg not in seen]
            seen.update(one.args)
    return found


def _has_sign(node: KernelValue) -> bool:
    """Whether an integer may be below 0; of what counters lead to bits are counted as that asks for."""
    counts = node.linear is not None and bool(node.linear.terms)
    return node.signed and not (counts and node.linear is not None and node.linear.range[0] >= 0)


def _bits(node: KernelValue) -> int:
    """Bits of a value; of a constant of a type for numbers of any width, those that it needs."""
    if node.kind == "int" and node.constant and node.bits > 64:
        return int(node.value or 0).bit_length() + 1
    return node.bits


def _sorted(left: KernelValue, right: KernelValue) -> tuple[KernelValue, KernelValue]:
    return (left, right) if id(left) <= id(right) else (right, left)


def _linear(op: str, left: KernelValue, right: KernelValue) -> LinearForm | None:
    a, b = left.linear, right.linear
    if a is None or b is None:
        return None
    if op == "add":
        return a.plus(b)
    if op == "sub":
        return a.plus(b, -1)
    if op == "mul" and not a.terms:
        return b.times(a.base)
    if op == "mul" and not b.terms:
        return a.times(b.base)
    if op == "shl" and not b.terms and 0 <= b.base < 32:
        return a.times(1 << b.base)
    if op in ("div", "rem", "shr") and not b.terms and b.base > 0:
        return _divided(op, a, 1 << b.base if op == "shr" else b.base)
    return None


def _divided(op: str, a: LinearForm, divisor: int) -> LinearForm | None:
    """A quotient or remainder that is linear again, because the small part never carries."""
    low, high = a.range
    if low < 0:
        return None
    large = LinearForm(a.base - a.base % divisor, tuple((c, f) for c, f in a.terms if f % divisor == 0))
    small = a.plus(large, -1)
    if small.range[0] < 0 or small.range[1] >= divisor or high < 0:
        return None
    if op == "rem":
        return small
    return LinearForm(large.base // divisor, tuple((c, f // divisor) for c, f in large.terms))


def _neutral(op: str, left: KernelValue, right: KernelValue) -> KernelValue | None:
    if right.value == 0 and op in ("add", "sub", "or", "xor", "shl", "shr"):
        return left
    if left.value == 0 and op in ("add", "or", "xor"):
        return right
    if right.value == 1 and op in ("mul", "div"):
        return left
    if left.value == 1 and op == "mul":
        return right
    return None
