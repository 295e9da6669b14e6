"""Expressions of a kernel: known numbers are worked out, indices stay affine, tiles of data become operations."""

from __future__ import annotations

import ast
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from penstock.compiler.mesh.program import MeshBound
from penstock.compiler.mesh.triton.emit import Emitter
from penstock.compiler.mesh.triton.values import (
    Data,
    Dtype,
    KernelIndex,
    KernelMask,
    Name,
    TritonValue,
    broadcast,
    picked,
    widened,
    widened_mask,
)
from penstock.compiler.tasks.affine import Affine
from penstock.compiler.tasks.source import ProgramText

DTYPES = ("float16", "bfloat16", "float32", "int8", "int16", "int32")
MOST_ELEMENTS = 1 << 20
MOST_READ = 400_000
"""Expressions of a kernel, those of helpers as often as they are called."""
_LARGEST = 1 << 63
_WIDER = ("int64", "uint8", "uint16", "uint32", "uint64")
"""Types that places may be cast to, and tiles may not."""
_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", lambda a, b: a / b),
    ast.FloorDiv: ("", lambda a, b: a // b),
    ast.Mod: ("", operator.mod),
    ast.MatMult: ("dot", lambda a, b: a * b),
}
_COMPARED: dict[type[ast.cmpop], tuple[str, Callable[[float, float], bool]]] = {
    ast.Lt: ("less", operator.lt),
    ast.LtE: ("less_equal", operator.le),
    ast.Gt: ("greater", operator.gt),
    ast.GtE: ("greater_equal", operator.ge),
    ast.Eq: ("equal", operator.eq),
    ast.NotEq: ("not_equal", operator.ne),
}
KernelArguments = dict[str, TritonValue]


class TritonExpressions(ABC):
    """Reads the expressions of one kernel, under the names that are known at a place."""

    def __init__(self, text: ProgramText, emitter: Emitter, names: dict[str, TritonValue]) -> None:
        self.text, self.emitter, self.names = text, emitter, names
        self.grid: list[int] = []
        """The counters of the launch grid's dims, in their order."""
        self.extents: tuple[int, ...] = ()
        self.dtypes: dict[str, str] = {}
        """The type of every tensor."""
        self.read = 0

    def value(self, node: ast.expr) -> TritonValue:
        self.read += 1
        if self.read > MOST_READ:
            what = "the kernel is too long, with all that it calls"
            raise self.text.error(node, what, "let loops repeat", f"{MOST_READ} expressions")
        match node:
            case ast.Constant(value=int() | float() | str() | bool() | None as value):
                return self._bounded(node, value) if isinstance(value, int) else value
            case ast.Name():
                if node.id not in self.names:
                    raise self.text.error(node, f"{node.id!r} is not known here", "give it a value first, or by --set")
                return self.names[node.id]
            case ast.Attribute():
                return self._attribute(node)
            case ast.Tuple() | ast.List():
                return tuple(self.value(one) for one in node.elts)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                return self._signed(node)
            case ast.Compare(ops=[op], comparators=[right]):
                return self._compare(node, type(op), self.value(node.left), self.value(right))
            case ast.BoolOp():
                return self._all(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self.call(node)
            case ast.IfExp():
                return self.value(node.body if self.known_truth(node.test) else node.orelse)
            case _:
                raise self.text.error(
                    node, "this form of expression is not read", "use arithmetic, calls of tl, indices"
                )

    def known_truth(self, node: ast.expr) -> bool:
        value = self.value(node)
        if isinstance(value, KernelMask):
            raise self.text.error(node, "whether this holds differs from instance to instance", "mask loads and stores")
        if isinstance(value, Data | KernelIndex):
            raise self.text.error(node, "this is known in a run only", "use tl.where, or a constexpr")
        return bool(value)

    def whole(self, node: ast.AST, value: TritonValue, what: str) -> int:
        """A number that is known."""
        if isinstance(value, KernelIndex) and not value.base.terms and not value.shape and not value.pointer:
            return value.base.const
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.text.error(node, f"{what} must be a known whole number", "give it by --set, or as a constexpr")
        return value

    def index(self, node: ast.AST, value: TritonValue) -> KernelIndex:
        """A number that is affine in counters."""
        if isinstance(value, KernelIndex):
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            what = "this depends on data" if isinstance(value, Data) else "this is no whole number"
            raise self.text.error(
                node, f"{what}, so the place is not affine", "compute places from program_id, arange and loops alone"
            )
        return KernelIndex(Affine(value))

    def number(self, node: ast.AST, value: TritonValue) -> KernelIndex:
        """A number that is affine in counters, and no tensor: an argument without a value is taken for one."""
        found = self.index(node, value)
        if found.pointer:
            raise self.text.error(
                node,
                f"{found.pointer!r} is a tensor here, for it has no value",
                f"if it is a number: --set {found.pointer}=...",
            )
        return found

    def data(self, node: ast.AST, value: TritonValue, like: str = "float32") -> Data:
        """A tile of data; numbers and indices become one."""
        match value:
            case Data():
                return value
            case bool() | int() | float():
                return self.emitter.compute("full", (), (), like, float(value))
            case KernelIndex(pointer=""):
                bound = (MeshBound(value.base, value.strides),)
                return self.emitter.compute("index", (), value.shape, "int32", bound)
            case KernelMask():
                return self.emitter.compute("mask", (), value.shape, "bool", value.bounds)
            case _:
                raise self.text.error(node, "this is no tile", "load it first with tl.load")

    def _attribute(self, node: ast.Attribute) -> TritonValue:
        base = self.value(node.value)
        match base:
            case Name(path="tl") if node.attr in DTYPES or node.attr in _WIDER:
                return Dtype(node.attr)
            case Name():
                return Name(f"{base.path}.{node.attr}")
            case Data() if node.attr in ("to", "T", "shape", "dtype"):
                if node.attr == "T":
                    return self.emitter.compute("trans", (base,), base.shape[::-1], base.dtype)
                return {"shape": base.shape, "dtype": Dtype(base.dtype)}.get(node.attr, Name("to"))
            case KernelIndex() if base.pointer and node.attr in ("dtype", "type"):
                return Name("pointer")
            case Dtype() | KernelMask() | KernelIndex():
                return Name(node.attr)
            case _:
                raise self.text.error(node, f"nothing is known of .{node.attr} here", "")

    # arithmetic

    def _binary(self, node: ast.BinOp) -> TritonValue:
        left, right, op = self.value(node.left), self.value(node.right), type(node.op)
        if op is ast.BitAnd and isinstance(left, KernelMask | bool) and isinstance(right, KernelMask | bool):
            return self._both(node, left, right)
        if op in (ast.BitAnd, ast.BitOr) and isinstance(left, int) and isinstance(right, int):
            return left & right if op is ast.BitAnd else left | right
        if op not in _ARITHMETIC:
            raise self.text.error(node, "this operator is not read", "use + - * / // % and &")
        kind, compute = _ARITHMETIC[op]
        if kind == "dot":
            return self.dot(node, {"input": left, "other": right})
        if isinstance(left, int | float) and isinstance(right, int | float):
            try:
                return self._bounded(node, compute(left, right))
            except ZeroDivisionError:
                raise self.text.error(node, "a division by zero", "") from None
            except OverflowError:
                raise self.text.error(node, "this is too large for a number", "") from None
        if isinstance(left, Data | KernelMask) or isinstance(right, Data | KernelMask) or self._is_float(left, right):
            if isinstance(left, KernelIndex) and left.pointer:
                raise self.text.error(
                    node, "an address that depends on data is not affine", "load whole tiles and select with tl.where"
                )
            return self.pairwise(node, kind, left, right)
        return self._indices(node, op, self.index(node.left, left), self.index(node.right, right))

    def _bounded(self, node: ast.AST, value: int | float) -> int | float:
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            raise self.text.error(node, "this is too large for a number", "", "64 bits")
        return value

    @staticmethod
    def _is_float(left: TritonValue, right: TritonValue) -> bool:
        return isinstance(left, float) or isinstance(right, float)

    def pairwise(self, node: ast.AST, kind: str, left: TritonValue, right: TritonValue, dtype: str = "") -> Data:
        if not kind:
            raise self.text.error(node, "// and % of data are not read", "use / on floats")
        like = next((v.dtype for v in (left, right) if isinstance(v, Data)), "float32")
        a, b = self.data(node, left, like), self.data(node, right, like)
        shape = broadcast(a.shape, b.shape)
        if shape is None:
            raise self.text.error(
                node, f"tiles of {a.shape} and {b.shape} do not go together", "add [:, None] where due"
            )
        return self.emitter.compute(kind, (a, b), shape, dtype or wider(a.dtype, b.dtype))

    def _indices(self, node: ast.BinOp, op: type[ast.operator], left: KernelIndex, right: KernelIndex) -> TritonValue:
        shape = broadcast(left.shape, right.shape)
        if shape is None or math.prod(shape) > MOST_ELEMENTS:
            raise self.text.error(node, f"places of {left.shape} and {right.shape} do not go together", "", "")
        a, b = widened(left, shape), widened(right, shape)
        pointer = a.pointer or b.pointer
        if op in (ast.Add, ast.Sub):
            if a.pointer and b.pointer:
                raise self.text.error(node, "two addresses are added", "add numbers to one address")
            sign = 1 if op is ast.Add else -1
            strides = tuple(x + sign * y for x, y in zip(a.strides, b.strides, strict=True))
            return plain_index(KernelIndex(a.base.plus(b.base, sign), strides, shape, pointer))
        if pointer:
            raise self.text.error(
                node, "an address is multiplied or divided", "work on the places, then add the tensor"
            )
        if op is ast.Mult:
            for one, other in ((a, b), (b, a)):
                if not one.base.terms and not any(one.strides):
                    factor = one.base.const
                    return plain_index(
                        KernelIndex(other.base.times(factor), tuple(s * factor for s in other.strides), shape)
                    )
            raise self.text.error(node, "a product of two places is not affine", "let one side be a known number")
        if any(b.strides) or b.base.terms or b.base.const <= 0:
            raise self.text.error(node, "a place is divided by what is no known number above 0", "use a constexpr")
        return self._divided(node, op, a, b.base.const)

    def _divided(self, node: ast.BinOp, op: type[ast.operator], place: KernelIndex, by: int) -> TritonValue:
        if op not in (ast.FloorDiv, ast.Mod):
            raise self.text.error(node, "a place is divided by /", "use //")
        if not any(place.strides):
            found = self.emitter.divided(place.base, by)
            if found is not None:
                return plain_index(replace(place, base=found[0 if op is ast.FloorDiv else 1]))
        reach = sum(max(0, s * (n - 1)) for s, n in zip(place.strides, place.shape, strict=True))
        low, high = self.emitter.extremes(place.base)
        if op is ast.Mod and low >= 0 and high + reach < by:
            return place  # as Triton's tutorials keep addresses inside: here it never wraps
        raise self.text.error(
            node, f"this {'%' if op is ast.Mod else '//'} {by} is not affine: places reach {high + reach:,}",
            "let blocks divide the sizes, or leave out the % and mask the load instead",
        )  # fmt: skip

    def _signed(self, node: ast.UnaryOp) -> TritonValue:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not self.known_truth(node.operand)
        if isinstance(node.op, ast.Invert):
            raise self.text.error(node, "~ is not read", "compare the other way round, or swap the parts of tl.where")
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(value, int | float):
            return -value
        if isinstance(value, KernelIndex):
            return replace(value, base=value.base.times(-1), strides=tuple(-s for s in value.strides))
        data = self.data(node, value)
        return self.emitter.compute("neg", (data,), data.shape, data.dtype)

    # comparisons and masks

    def _compare(self, node: ast.Compare, op: type[ast.cmpop], left: TritonValue, right: TritonValue) -> TritonValue:
        if op in (ast.Is, ast.IsNot):
            return (left is right) == (op is ast.Is)
        if op not in _COMPARED:
            raise self.text.error(node, "this comparison is not read", "use < <= > >=")
        kind, compute = _COMPARED[op]
        if isinstance(left, Dtype | str | Name) or isinstance(right, Dtype | str | Name):
            if op not in (ast.Eq, ast.NotEq):
                raise self.text.error(node, "words and types are compared by their order", "use == or !=")
            return (left == right) == (op is ast.Eq)
        if isinstance(left, int | float) and isinstance(right, int | float):
            return compute(left, right)
        if isinstance(left, Data) or isinstance(right, Data) or self._is_float(left, right):
            return self.pairwise(node, kind, left, right, "bool")
        a, b = self.number(node, left), self.number(node, right)
        shape = broadcast(a.shape, b.shape)
        if shape is None or op in (ast.Eq, ast.NotEq):
            raise self.text.error(node, "places are compared with == or in shapes that differ", "use < <= > >=")
        if op in (ast.Gt, ast.GtE):
            a, b = b, a
        a, b = widened(a, shape), widened(b, shape)
        less = Affine(0 if op in (ast.Lt, ast.Gt) else -1)
        strides = tuple(x - y for x, y in zip(a.strides, b.strides, strict=True))
        bound = MeshBound(a.base.plus(b.base, -1).plus(less), strides)
        if not shape and not self.emitter.resolved(bound.base).terms:
            return bound.base.const < 0
        return KernelMask((bound,), shape)

    def _all(self, node: ast.BoolOp) -> TritonValue:
        values = [self.value(one) for one in node.values]
        if isinstance(node.op, ast.Or) and not all(isinstance(v, bool) for v in values):
            raise self.text.error(node, "a mask of either of two is no box", "load twice, or use tl.where")
        found = values[0]
        for value in values[1:]:
            if isinstance(found, bool) and isinstance(value, bool):
                found = found and value if isinstance(node.op, ast.And) else found or value
            else:
                found = self._both(node, found, value)
        return found

    def _both(self, node: ast.AST, left: TritonValue, right: TritonValue) -> TritonValue:
        if isinstance(left, bool):
            left, right = right, left
        if right is True or right is None:
            return left
        if not isinstance(left, KernelMask) or not isinstance(right, KernelMask):
            raise self.text.error(node, "a mask that depends on data", "mask by places, and select with tl.where")
        shape = broadcast(left.shape, right.shape)
        if shape is None:
            raise self.text.error(node, f"masks of {left.shape} and {right.shape} do not go together", "")
        return KernelMask(widened_mask(left, shape).bounds + widened_mask(right, shape).bounds, shape)

    def _subscript(self, node: ast.Subscript) -> TritonValue:
        base = self.value(node.value)
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(base, tuple):
            at = self.whole(node, self.value(keys[0]) if len(keys) == 1 else None, "an index")
            if not -len(base) <= at < len(base):
                raise self.text.error(node, f"there is no {at} of {len(base)}", "count from 0")
            return base[at]
        takes = tuple(isinstance(key, ast.Slice) for key in keys)
        if not all(_takes_whole(key) for key in keys):
            raise self.text.error(node, "only [:, None] and the like are read", "let the address say what is loaded")
        shape = base.shape if isinstance(base, KernelIndex | KernelMask | Data) else ()
        if sum(takes) != len(shape):
            raise self.text.error(node, f"{sum(takes)} dims are taken of a tile of {len(shape)}", "")
        match base:
            case KernelIndex():
                strides, new = picked(base.strides, shape, takes)
                return replace(base, strides=strides, shape=new)
            case KernelMask():
                return KernelMask(
                    tuple(MeshBound(b.base, picked(b.strides, shape, takes)[0]) for b in base.bounds),
                    picked(shape, shape, takes)[1],
                )
            case Data():
                return self.emitter.compute("reshape", (base,), picked(shape, shape, takes)[1], base.dtype)
            case _:
                raise self.text.error(node, "this has no dims", "")

    @abstractmethod
    def call(self, node: ast.Call) -> TritonValue:
        """A function of the language, or a helper of the file."""

    @abstractmethod
    def dot(self, node: ast.AST, given: KernelArguments) -> Data:
        """A product of two tiles."""


def _takes_whole(key: ast.expr) -> bool:
    """`:` or `None`: a dim as it is, or one more."""
    match key:
        case ast.Slice(lower=None, upper=None, step=None) | ast.Constant(value=None):
            return True
        case _:
            return False


def plain_index(index: KernelIndex) -> TritonValue:
    """A plain number where nothing else is left."""
    return index.base.const if not index.base.terms and not index.shape and not index.pointer else index


def wider(a: str, b: str) -> str:
    order = ("bool", "int8", "int16", "int32", "float16", "bfloat16", "float32")
    return max(a, b, key=order.index)
