"""Layers of a model as tasks of a program's language: each operation on tensors one task, streams between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from math import prod

import numpy as np
from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.operations import PREDICATES
from penstock.compiler.tasks.tables import encoded
from penstock.compiler.tasks.values import words

MOST_TASKS = 64
MOST_WEIGHTS = 32_768
"""Numbers of all tables of a block: a program is one text, with its weights in it."""
WRITTEN_OUT = "products, sums, element by element, softmax and norms can be written out"
_DTYPES = {"f32": "float32", "i8": "int8", "i16": "int16", "i32": "int32"}
_CALLS: Mapping[type[Operation], str] = {
    arith.AddfOp: "{0} + {1}", arith.SubfOp: "{0} - {1}", arith.MulfOp: "{0} * {1}", arith.DivfOp: "{0} / {1}",
    arith.MaximumfOp: "max({0}, {1})", arith.MinimumfOp: "min({0}, {1})", arith.MaxnumfOp: "max({0}, {1})",
    arith.MinnumfOp: "min({0}, {1})", arith.NegfOp: "-{0}", arith.SelectOp: "where({0}, {1}, {2})",
    arith.AddiOp: "{0} + {1}", arith.SubiOp: "{0} - {1}", arith.MuliOp: "{0} * {1}", arith.MaxSIOp: "max({0}, {1})",
    arith.MinSIOp: "min({0}, {1})", arith.ShRSIOp: "{0} >> {1}", arith.ShLIOp: "{0} << {1}",
    arith.SIToFPOp: "float32({0})", math.ExpOp: "exp({0})", math.TanhOp: "tanh({0})", math.SqrtOp: "sqrt({0})",
    math.RsqrtOp: "1.0 / sqrt({0})", math.AbsFOp: "abs({0})",
}  # fmt: skip
_FOLDS: Mapping[type[Operation], str] = {
    arith.AddfOp: "sum", arith.AddiOp: "sum", arith.MaximumfOp: "max", arith.MaxSIOp: "max",
    arith.MinimumfOp: "min", arith.MinSIOp: "min",
}  # fmt: skip
"""What combines values of a sum."""
_COMPARES = {number: sign for sign, number in PREDICATES.items()}
_ORDERED = ("false", "eq", "gt", "ge", "lt", "le", "ne", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")
_SIGNED = ("eq", "ne", "slt", "sle", "sgt", "sge")
Refuse = Callable[[str, str], PenstockError]


@dataclass(frozen=True)
class BlockEnds:
    """Tensors that go in and come out, by the names that the block gives them."""

    inputs: Mapping[str, SSAValue]
    outputs: Mapping[str, SSAValue]


@dataclass
class BlockWriter:
    """Writes some operations of a function. `params` are the weights that its arguments are."""

    operations: Sequence[linalg.GenericOp]
    ends: BlockEnds
    params: Mapping[SSAValue, Array]
    lanes: int
    refuse: Refuse
    streams: dict[SSAValue, list[str]] = field(default_factory=dict[SSAValue, list[str]])
    """For each tensor, a stream to each of its readers that has not been written yet."""
    names: Counter[str] = field(default_factory=Counter[str])
    weights: int = 0

    def text(self, name: str) -> str:
        """The function, below its decorator."""
        if len(self.operations) > MOST_TASKS:
            raise self.refuse(f"it has {len(self.operations)} operations", f"at most {MOST_TASKS}")
        ends = [f"{end}: {self.kind(value)}" for end, value in (*self.ends.inputs.items(), *self.ends.outputs.items())]
        self.names.update(("x", *self.ends.inputs, *self.ends.outputs))
        tasks: list[str] = []
        declared: list[str] = []
        readers = self._readers()
        for end, value in self.ends.inputs.items():
            tasks += self._spread(value, end, readers, declared)
        for op in self.operations:
            tasks += self._task(op, readers, declared)
        return "\n".join([f"def {name}({', '.join(ends)}):", *declared, *tasks, ""])

    def kind(self, value: SSAValue) -> str:
        number = self.number(value)
        shape = tensor_type(value).get_shape() or (1,)
        return f"{number}[{', '.join(map(str, shape))}]"

    def number(self, value: SSAValue) -> str:
        kind = str(tensor_type(value).element_type)
        found = _DTYPES.get(kind)
        if found is None:
            raise self.refuse(f"a tensor of {kind}", f"tensors of {', '.join(_DTYPES.values())}")
        return found

    def fresh(self, wanted: str) -> str:
        name = plain_name(wanted)
        self.names[name] += 1
        return name if self.names[name] == 1 else f"{name}_{self.names[name]}"

    # -- who reads what

    def _readers(self) -> Counter[SSAValue]:
        """How many tasks and ends read each tensor that is no weight."""
        found = Counter[SSAValue]()
        for op in self.operations:
            found.update({source(one) for one in op.inputs if source(one) not in self.params})
        found.update(source(one) for one in self.ends.outputs.values())
        return found

    def _outlets(self, value: SSAValue, readers: Counter[SSAValue], declared: list[str], label: str) -> list[str]:
        """A stream to each reader of a tensor; to an end of the block, that end."""
        ends = [end for end, one in self.ends.outputs.items() if source(one) is value]
        made = [self.fresh(f"{label}_out") for _ in range(readers[value] - len(ends))]
        declared += [f"    {one} = Stream[{self.number(value)}]" for one in made]
        self.streams[value] = list(made)
        return [*made, *ends]

    def _spread(self, value: SSAValue, end: str, readers: Counter[SSAValue], declared: list[str]) -> list[str]:
        """An input of the block; a task hands it on where several read it."""
        if readers[value] == 1 and value not in [source(one) for one in self.ends.outputs.values()]:
            self.streams[value] = [end]
            return []
        outlets = self._outlets(value, readers, declared, end)
        return [
            "    @task", f"    def {self.fresh(f'spread_{end}')}():",
            f"        for i in range({prod(tensor_type(value).get_shape())}):", f"            one = {end}.get()",
            *(f"            {outlet}.put(one)" for outlet in outlets),
        ]  # fmt: skip

    # -- one operation

    def _task(self, op: linalg.GenericOp, readers: Counter[SSAValue], declared: list[str]) -> list[str]:
        label = self.fresh(layer_of(op))
        if len(op.results) != 1:
            raise self.refuse(f"{layer_of(op)} has {len(op.results)} results", "one result an operation")
        outlets = self._outlets(op.results[0], readers, declared, label)
        return [f"    @task\n    def {label}():", *_Task(self, op).lines(outlets)]


_OWN = re.compile(r"[wxavdi]\d+|[wavdi]|total|answer|once|one|token")
"""Names of a task's values and counters."""


def plain_name(wanted: str) -> str:
    """A name for a layer or a port that means nothing else in a piece."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", wanted).lstrip("_")
    if not name or not name[0].isalpha():
        return f"layer_{name}"
    return f"{name}_" if name in words() or iskeyword(name) or _OWN.fullmatch(name) else name


def source(value: SSAValue) -> SSAValue:
    """The tensor whose elements in their order a value has: reshapes move nothing."""
    while isinstance(value.owner, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        value = value.owner.operands[0]
    return value


def layer_of(op: Operation) -> str:
    found = op.attributes.get("penstock.layer")
    return getattr(found, "data", "") or "step"


class _Task:
    """The loops of one operation: those of its result's dims, then those that it sums over."""

    def __init__(self, writer: BlockWriter, op: linalg.GenericOp) -> None:
        self.writer, self.op = writer, op
        maps = [one.data for one in op.indexing_maps]
        self.maps, result = maps[: len(op.inputs)], maps[-1]
        outer = _dims(result)
        if outer is None:
            raise self.no("writes its result in an order of its own")
        bounds = _bounds(op)
        self.loops = [*outer, *(dim for dim in range(len(bounds)) if dim not in outer)]
        self.outer, self.bounds = len(outer), bounds
        inner = self.loops[self.outer :]
        self.lanes = writer.lanes if inner and bounds[inner[-1]] % writer.lanes == 0 else 1
        self.summed = inner[-1] if inner else -1
        self.before: list[str] = []
        self.loads: list[str] = []
        self.at: dict[int, list[str]] = {}
        self.values: dict[SSAValue, str] = {}

    def no(self, what: str) -> PenstockError:
        return self.writer.refuse(f"{layer_of(self.op)} {what}", WRITTEN_OUT)

    def lines(self, outlets: Sequence[str]) -> list[str]:
        body = self.op.body.block
        arguments = body.args[: len(self.op.inputs)]
        streamed: dict[SSAValue, list[int]] = {}
        for number, operand in enumerate(self.op.inputs):
            if source(operand) in self.writer.params:
                self._weight(number, operand, arguments[number])
            else:
                streamed.setdefault(source(operand), []).append(number)
        for value, numbers in streamed.items():
            self._operand(value, numbers, arguments)
        return self._written(outlets, self._computed(body.args[-1]))

    def _weight(self, number: int, operand: SSAValue, argument: BlockArgument) -> None:
        values = self.writer.params[source(operand)]
        self.writer.weights += values.size
        if self.writer.weights > MOST_WEIGHTS:
            raise self.writer.refuse("it has too many weights", f"at most {MOST_WEIGHTS:,} numbers a block")
        shape = tensor_type(operand).get_shape()
        if not shape:
            self.values[argument] = repr(values.reshape(-1)[0].item())
            return
        self.before.append(f"w{number}: {self.writer.kind(operand)} = {encoded(values.reshape(shape))!r}")
        self._loaded(f"w{number}", number, argument)

    def _operand(self, value: SSAValue, numbers: Sequence[int], arguments: Sequence[BlockArgument]) -> None:
        """A tensor that comes by stream: where it is used in its order, each once; else after all of it has come."""
        stream = self.writer.streams[value].pop()
        first = numbers[0]
        dims = _dims(self.maps[first])
        alike = all(self.maps[one] == self.maps[first] for one in numbers)
        level = len(dims) if dims is not None else 0
        if alike and dims == self.loops[:level] and (self.lanes == 1 or level < len(self.loops)):
            self.at.setdefault(level, []).append(f"x{first} = {stream}.get()")
            self.values |= {arguments[one]: f"x{first}" for one in numbers}
            return
        operand = self.op.inputs[first]
        shape = tensor_type(operand).get_shape() or (1,)
        self.before.append(f"x{first}: {self.writer.kind(operand)} = 0")
        for dim, size in enumerate(shape):
            self.before.append(f"{'    ' * dim}for i{dim} in range({size}):")
        index = ", ".join(f"i{dim}" for dim in range(len(shape)))
        self.before.append(f"{'    ' * len(shape)}x{first}[{index}] = {stream}.get()")
        for one in numbers:
            if tensor_type(self.op.inputs[one]).get_shape() != tensor_type(operand).get_shape():
                raise self.no("takes one tensor in two shapes")
            self._loaded(f"x{first}", one, arguments[one])

    def _loaded(self, memory: str, number: int, argument: BlockArgument) -> None:
        """An element of a memory, or a slice of it, once a round however often it is used."""
        self.loads.append(f"a{number} = {memory}[{self._index(self.maps[number])}]")
        self.values[argument] = f"a{number}"

    def _index(self, map_: AffineMap) -> str:
        found: list[str] = []
        for expr in map_.results:
            if not isinstance(expr, AffineDimExpr):
                raise self.no("has windows, or places that are sums of counters")
            if expr.position == self.summed and self.lanes > 1:
                at = f"d{expr.position} * {self.lanes}"
                found.append(f"{at} : {at} + {self.lanes}")
            else:
                found.append(f"d{expr.position}")
        return ", ".join(found) or "0"

    def _computed(self, total: BlockArgument) -> tuple[list[str], str]:
        """The lines of the body, and what it yields."""
        lines: list[str] = []
        *steps, yielded = self.op.body.block.ops
        summed = bool(self.loops[self.outer :])
        last = yielded.operands[0]
        for step in steps:
            if summed and self.lanes > 1 and step.results[0] is last:
                return lines, self._folded(step, total)
            self._step(step, lines, total)
        return lines, self._value(last, total)

    def _folded(self, step: Operation, total: BlockArgument) -> str:
        """Lanes of a round as one, added to what there is."""
        word = _FOLDS.get(type(step))
        others = [one for one in step.operands if one is not total]
        if word is None or len(others) != 1 or len(step.operands) != 2:
            raise self.no("is no sum whose lanes can be combined: leave out lanes=")
        inner = f"{word}({self._value(others[0], total)})"
        return f"total + {inner}" if word == "sum" else f"{word}(total, {inner})"

    def _step(self, step: Operation, lines: list[str], total: BlockArgument) -> None:
        result = step.results[0] if len(step.results) == 1 else None
        assert result is not None
        if isinstance(step, arith.ConstantOp):
            self.values[result] = _number(step.value)
            return
        given = [self._value(one, total) for one in step.operands]
        match step:
            case arith.CmpfOp():
                sign = _compare(_ORDERED[step.predicate.value.data].lstrip("o"))
            case arith.CmpiOp() if step.predicate.value.data < len(_SIGNED):
                sign = _compare(_SIGNED[step.predicate.value.data].lstrip("s"))
            case arith.ExtSIOp() | arith.TruncIOp():
                sign = f"{_DTYPES.get(str(result.type), '')}({{0}})" if str(result.type) in _DTYPES else ""
            case _:
                sign = _CALLS.get(type(step), "")
        if not sign:
            raise self.no(f"has {step.name}, which the language has no word for")
        name = f"v{len(self.values)}"
        lines.append(f"{name} = {sign.format(*given)}")
        self.values[result] = name

    def _value(self, value: SSAValue, total: BlockArgument) -> str:
        if value is total:
            if not self.loops[self.outer :]:
                raise self.no("reads what its result held before")
            return "total"
        if value not in self.values:
            raise self.no("reads something from outside its body")
        return self.values[value]

    def _written(self, outlets: Sequence[str], computed: tuple[list[str], str]) -> list[str]:
        lines = ["        " + one for one in self.before]
        inner = self.loops[self.outer :]
        indent = outside = "        "
        if not self.outer:
            lines.append(f"{indent}for once in range(1):")
            indent += "    "
        for level in range(len(self.loops) + 1):
            lines += [indent + one for one in self.at.get(level, [])]
            if level == self.outer and inner:
                lines.append(f"{indent}total: {self.writer.number(self.op.results[0])} = {self._initial()}")
            if level == self.outer:
                outside = indent
            if level < len(self.loops):
                dim = self.loops[level]
                trip = self.bounds[dim] // (self.lanes if dim == self.summed else 1)
                lines.append(f"{indent}for d{dim} in range({trip}):")
                indent += "    "
        steps, answer = computed
        lines += [indent + one for one in (*self.loads, *steps)]
        if inner:
            lines.append(f"{indent}total = {answer}")
            answer = "total"
        else:
            outside = indent
            lines.append(f"{indent}answer = {answer}")
            answer = "answer"
        return [*lines, *(f"{outside}{one}.put({answer})" for one in outlets)]

    def _initial(self) -> str:
        start = self.op.outputs[0]
        value = start.owner.operands[0].owner if isinstance(start.owner, linalg.FillOp) else None
        if not isinstance(value, arith.ConstantOp):
            raise self.no("does not begin its sum with a number")
        return _number(value.value)


def _compare(name: str) -> str:
    sign = _COMPARES.get(name.removeprefix("u"), "")
    return f"{{0}} {sign} {{1}}" if sign else ""


def _number(value: Attribute) -> str:
    if isinstance(value, FloatAttr):
        number = float(value.value.data)
        largest = float(np.finfo(np.float32).max)
        return repr(min(max(number, -largest), largest))
    assert isinstance(value, IntegerAttr)
    return str(value.value.data)


def _dims(map_: AffineMap) -> list[int] | None:
    """The dims that a map names, each once; None of another map."""
    found = [one.position for one in map_.results if isinstance(one, AffineDimExpr)]
    return found if len(found) == len(map_.results) == len(set(found)) else None


def _bounds(op: linalg.GenericOp) -> list[int]:
    """The trips of all dims, by the tensors that they index."""
    found: dict[int, int] = {}
    for map_, operand in zip([one.data for one in op.indexing_maps], op.operands, strict=True):
        for expr, size in zip(map_.results, tensor_type(operand).get_shape(), strict=True):
            if isinstance(expr, AffineDimExpr):
                found[expr.position] = size
    return [found.get(dim, 1) for dim in range(len(op.iterator_types))]


def wanted(op: linalg.GenericOp, layers: Sequence[str]) -> bool:
    """Whether a layer is one of these, or stands below one."""
    name = layer_of(op)
    return not layers or any(name == one or name.startswith(f"{one}.") for one in layers)


def generics(operations: Sequence[Operation], layers: Sequence[str]) -> Iterator[linalg.GenericOp]:
    for op in operations:
        if isinstance(op, linalg.GenericOp) and wanted(op, layers):
            yield op
