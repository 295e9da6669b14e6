"""What lies in the padding of every tensor: a known number, some finite number, or anything.

Inputs and parameters are padded with zeros. What an elementwise operation makes of padding follows from its body; a
reduction over a padded dim is right only where each of its padded terms is the neutral element of its sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.analysis.graph import Graph, TensorOp
from compiler.dialects.affine import projected_dims
from compiler.interpreter.scalar import evaluate, numpy_dtype

FINITE, ANY = "finite", "any"
Content = NDArray[Any] | str
"""A number (as an array without dims), FINITE, or ANY: it may be infinite or not a number."""

_NEUTRAL = {"arith.addf": 0.0, "arith.addi": 0, "arith.maximumf": -np.inf, "arith.minimumf": np.inf}
_STAYS_FINITE = (
    "arith.addf", "arith.subf", "arith.mulf", "arith.negf", "arith.maximumf", "arith.minimumf", "arith.maxnumf",
    "arith.minnumf", "arith.select", "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp",
    "math.absf", "math.tanh", "math.erf", "math.floor", "math.ceil", "math.round", "math.roundeven", "math.trunc",
    "math.sin", "math.cos",
)  # fmt: skip
_TRAPS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")

Class = int
ClassOf = Callable[[TensorOp, int], Class]


@dataclass
class PaddingContents:
    """The contents, tensor by tensor, in the padding of one class of dims at a time.

    `overall` is what a tensor holds anywhere, its padding included.
    """

    graph: Graph
    class_of: ClassOf
    inside: dict[tuple[SSAValue, Class], Content] = field(default_factory=dict[tuple[SSAValue, Class], Content])
    overall: dict[SSAValue, Content] = field(default_factory=dict[SSAValue, Content])

    def wrong(self, classes: Collection[Class]) -> dict[Class, tuple[str, str]]:
        """The classes that cannot be padded, with the layer that is to blame and why."""
        found: dict[Class, tuple[str, str]] = {}
        for operation in self.graph.operations:
            for padded in self._padded(operation, classes):
                reason = self._visit(operation, padded)
                if reason:
                    found.setdefault(padded, (operation.layer, reason))
            self.overall[operation.result] = self._result(operation, [self._anywhere(v) for v in operation.op.inputs])
        return found

    def _padded(self, operation: TensorOp, classes: Collection[Class]) -> list[Class]:
        dims = range(len(operation.trips))
        return sorted({c for c in (self.class_of(operation, d) for d in dims) if c in classes})

    def _visit(self, operation: TensorOp, padded: Class) -> str:
        """Fill in the result's padding; where the operation sums over the class, see that its padding is neutral."""
        if any(op.name in _TRAPS for op in operation.op.body.block.ops):
            return "it divides whole numbers, which padding may make zero"
        here = [d for d in range(len(operation.trips)) if self.class_of(operation, d) == padded]
        contents = [
            self._read(value, padded) if any(d in here for d in projected_dims(m) if d is not None)
            else self._anywhere(value)
            for value, m in zip(operation.op.inputs, operation.operand_maps, strict=True)
        ]  # fmt: skip
        reduced = [d for d in here if d in operation.reductions]
        if reduced and len(here) > 1:
            return "two of its loops are the same dim"
        if not reduced:
            self.inside[operation.result, padded] = self._result(operation, contents)
            return ""
        combine, term = _combination(operation)
        content = _run(operation.op.body.block, contents)[term]
        neutral = _neutral(combine)
        if neutral is None:
            return f"its {combine.name} over the dim knows no padding"
        if isinstance(content, str) or not np.array_equal(content, neutral):
            names = {FINITE: "other numbers", ANY: "infinite or undefined numbers"}
            held = names[content] if isinstance(content, str) else f"{content!s}"
            return f"its {combine.name} over the dim needs {neutral} in the padding, which holds {held}"
        return ""

    def _result(self, operation: TensorOp, contents: Sequence[Content]) -> Content:
        block = operation.op.body.block
        values = _run(block, contents)
        if not operation.reductions:
            terminator = block.last_op
            assert terminator is not None
            return values[terminator.operands[0]]
        combine, term = _combination(operation)
        content, neutral = values[term], _neutral(combine)
        if not isinstance(content, str) and neutral is not None and np.array_equal(content, neutral):
            start = _constant(operation.init, operation.result.type)
            return start if start is not None else FINITE
        return ANY if isinstance(content, str) and content == ANY else FINITE

    def _read(self, value: SSAValue, padded: Class) -> Content:
        if (value, padded) in self.inside:
            return self.inside[value, padded]
        return np.zeros((), numpy_dtype(value.type))  # an input or a parameter

    def _anywhere(self, value: SSAValue) -> Content:
        return self.overall.get(value, FINITE)


def _combination(operation: TensorOp) -> tuple[Operation, SSAValue]:
    """The operation that sums, and the term that it adds to what was there."""
    block = operation.op.body.block
    terminator = block.last_op
    assert isinstance(terminator, linalg.YieldOp)
    combine = terminator.operands[0].owner
    assert isinstance(combine, Operation)
    running = block.args[-1]
    return combine, next(o for o in combine.operands if o is not running)


def _neutral(combine: Operation) -> NDArray[Any] | None:
    dtype = numpy_dtype(combine.results[0].type)
    if combine.name == "arith.maxsi":
        return np.array(np.iinfo(dtype).min, dtype)
    number = _NEUTRAL.get(combine.name)
    return None if number is None else np.array(number, dtype)


def _constant(value: Attribute | None, kind: Attribute) -> NDArray[Any] | None:
    number: Any = getattr(value, "value", None)
    return None if number is None else np.array(number.data, numpy_dtype(kind))


def _run(block: Block, contents: Sequence[Content]) -> Mapping[SSAValue, Content]:
    """What every value of a scalar body may be."""
    values: dict[SSAValue, Content] = dict.fromkeys(block.args, FINITE)
    values |= dict(zip(block.args, contents, strict=False))
    for op in block.ops:
        if op.results:
            values[op.results[0]] = _scalar(op, [values.get(o, _captured(o)) for o in op.operands])
    return values


def _captured(value: SSAValue) -> Content:
    """A constant that stands outside of the body."""
    return _scalar(value.owner, []) if isinstance(value.owner, arith.ConstantOp) else ANY


def _scalar(op: Operation, operands: Sequence[Content]) -> Content:
    numbers = [content for content in operands if not isinstance(content, str)]
    if len(numbers) == len(operands):
        return evaluate(op, numbers)
    floats = isinstance(op.results[0].type, AnyFloat)
    zero = any(not number.any() for number in numbers)
    if op.name in ("arith.mulf", "arith.muli") and zero and (ANY not in operands or not floats):
        return np.zeros((), numpy_dtype(op.results[0].type))
    if not floats:
        return FINITE
    bounded = all(o == FINITE if isinstance(o, str) else bool(np.isfinite(o)) for o in operands)
    if op.name == "arith.divf" and not isinstance(operands[1], str):
        return FINITE if bounded and operands[1].any() else ANY
    return FINITE if bounded and op.name in _STAYS_FINITE else ANY
