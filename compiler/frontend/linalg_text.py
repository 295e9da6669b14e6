"""linalg on tensors as text from an author who is not trusted: xDSL parses it, and only what is on a list is let in."""

from __future__ import annotations

import re

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    Builtin,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import Func, FuncOp
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.math import Math
from xdsl.dialects.tensor import Tensor
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.generalise import GENERALISED, generalise
from penstock.compiler.frontend.name_layers import LAYER
from penstock.compiler.frontend.text_file import TextFile
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.names import Names
from penstock.compiler.program import Port, Program, Samples, Signature
from penstock.compiler.reference import LinalgReference
from penstock.compiler.scalars.number_types import number_type, sent_types
from penstock.compiler.scalars.operations import evaluate, is_scalar_op

MOST_ELEMENTS = 1 << 28
REFERENCE = "linalg interpreter"
_DIALECTS = (Builtin, Func, Linalg, Tensor, Arith, Math)
_MOVES = (tensor.EmptyOp, tensor.CollapseShapeOp, tensor.ExpandShapeOp, tensor.ExtractSliceOp, tensor.ConcatOp)
_ALLOWED = (linalg.GenericOp, linalg.YieldOp, linalg.IndexOp, linalg.FillOp, func.ReturnOp, *GENERALISED, *_MOVES)
_LIMIT = (
    "linalg text holds one function of linalg.generic and simple named operations, arith, math, and tensor.empty, "
    "collapse_shape, expand_shape, extract_slice and concat, on tensors of static shape"
)
_HINT = "lower the model to linalg on tensors first, or give the part of it that computes with tensors"


def import_linalg(reference: LinalgReference) -> Program:
    """The text's function as a program, with random inputs and the answers of the linalg interpreter."""
    return _Text(reference).program()


class _Text:
    def __init__(self, reference: LinalgReference) -> None:
        self.name = reference.name
        self.file = TextFile.read(reference.path, "linalg-text", _LIMIT, _HINT)

    def program(self) -> Program:
        module = self._parse()
        main = self._main(module)
        self._check(main)
        for op in list(main.body.block.ops):
            if isinstance(op, GENERALISED):
                generalise(op)
        names = self._name_arguments(main)
        params = self._lift_constants(main, names)
        self._name_layers(main)
        main.properties["sym_name"] = StringAttr("main")
        whole = ModuleOp([main.clone()])
        whole.verify()
        inputs, outputs = main.function_type.inputs.data[: len(names)], main.function_type.outputs.data
        signature = Signature(
            tuple(_port(name, kind) for name, kind in zip(names, inputs, strict=True)),
            tuple(_port("output" if len(outputs) == 1 else f"output{i}", kind) for i, kind in enumerate(outputs)),
        )
        program = Program(self.name, whole, params, signature)
        samples = tuple(_sample(kind, np.random.default_rng(i)) for i, kind in enumerate(inputs))
        answers = tuple(run(program, samples))
        return program.with_module(whole, samples=Samples(samples, answers, REFERENCE))

    def _parse(self) -> ModuleOp:
        context = Context()
        for dialect in _DIALECTS:
            context.load_dialect(dialect)
        return self.file.parse(context)

    def _main(self, module: ModuleOp) -> FuncOp:
        for op in module.body.block.ops:
            if not isinstance(op, FuncOp):
                raise self._unsupported(op, "at the top level")
        functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
        mains = [f for f in functions if f.sym_name.data == "main"] or functions
        if len(mains) != 1:
            names = ", ".join(f"@{f.sym_name.data}" for f in functions) or "none"
            raise self._refused("linalg-text", f"there is no single function to compile (functions: {names})",
                                hint="call the function @main")  # fmt: skip
        main = mains[0]
        if main.is_declaration or len(main.body.blocks) != 1:
            what = "has no body" if main.is_declaration else "has several blocks"
            raise self._refused("linalg-text", f"the function @{main.sym_name.data} {what}")
        if not main.function_type.inputs.data or not main.function_type.outputs.data:
            raise self._refused("linalg-text", f"the function @{main.sym_name.data} takes or returns nothing")
        return main

    def _check(self, main: FuncOp) -> None:
        for kind in (*main.function_type.inputs.data, *main.function_type.outputs.data):
            self._check_type(main, kind)
            if not isa(kind, TensorType) or not number_type(kind).is_sent:
                raise self._refused(
                    "unsupported-dtype", f"the function @{main.sym_name.data} takes or returns {kind}",
                    self._place(main), f"arguments and results are tensors of {sent_types()}",
                )  # fmt: skip
        for op in main.body.block.ops:
            self._check_op(op)
        if not isinstance(main.body.block.last_op, func.ReturnOp):
            raise self._refused("linalg-text", "the function does not return")

    def _check_op(self, op: Operation) -> None:
        if not isinstance(op, _ALLOWED) and not is_scalar_op(op):
            raise self._unsupported(op, "here")
        for value in (*op.results, *op.operands):
            self._check_type(op, value.type)
        if isinstance(op, arith.ConstantOp) and isa(op.result.type, TensorType):  # noqa: SIM102 (types narrow one by one)
            if not isinstance(op.value, DenseIntOrFPElementsAttr):
                raise self._unsupported(op, f"with a value of {op.value.name}")
        if isinstance(op, linalg.GenericOp):
            last = op.body.block.last_op
            if not isinstance(last, linalg.YieldOp) or len(last.operands) != len(op.outputs):
                raise self._refused("linalg-text", f"the body of {op.name} does not yield one value for each result",
                                    self._place(op))  # fmt: skip
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    if inner.regions and not isinstance(op, FuncOp):
                        raise self._unsupported(inner, "inside another operation")
                    self._check_op(inner)

    def _check_type(self, op: Operation, kind: Attribute) -> None:
        if not isa(kind, TensorType):
            return
        shape, size = kind.get_shape(), 1
        for extent in shape:
            if extent < 0:
                raise self._refused("dynamic-shape", f"{op.name} has the type {kind}", self._place(op),
                                    "all shapes are known at compile time")  # fmt: skip
            if extent == 0:
                raise self._refused("empty-tensor", f"{op.name} has the type {kind}", self._place(op),
                                    "every dimension has at least one element")  # fmt: skip
            size *= extent
        if size > MOST_ELEMENTS or not isinstance(kind.encoding, NoneAttr):
            what = (
                f"at most {MOST_ELEMENTS} elements" if size > MOST_ELEMENTS else "tensors are plain, without encoding"
            )
            raise self._refused("linalg-text", f"{op.name} has the type {kind}", self._place(op), what)

    def _name_arguments(self, main: FuncOp) -> list[str]:
        names = Names()
        arguments = enumerate(main.body.block.args)
        return [names.take(argument.name_hint or f"input{position}") for position, argument in arguments]

    def _lift_constants(self, main: FuncOp, inputs: list[str]) -> dict[str, Array]:
        """Dense constants become parameters, which the operations then read as arguments."""
        block, params, names = main.body.block, dict[str, Array](), Names(inputs)
        for op in list(block.ops):
            if not isinstance(op, arith.ConstantOp) or not isa(op.result.type, TensorType):
                continue
            value = op.value
            if not isinstance(value, DenseIntOrFPElementsAttr) or (value.is_splat() or not value.get_shape()):
                continue
            name = names.take(op.result.name_hint or "constant")
            if not number_type(op.result.type).is_sent:
                raise self._refused(
                    "unsupported-dtype", f"the constant {name!r} is {op.result.type}", self._place(op),
                    f"parameters are tensors of {sent_types()}",
                )  # fmt: skip
            params[name] = np.ascontiguousarray(evaluate(op, []))
            argument = block.insert_arg(op.result.type, len(block.args))
            op.result.replace_all_uses_with(argument)
            op.detach()
            op.erase()
        kinds = [(name, "input") for name in inputs] + [(name, "param") for name in params]
        types = [argument.type for argument in block.args]
        main.properties["function_type"] = FunctionType.from_lists(types, list(main.function_type.outputs.data))
        main.properties["arg_attrs"] = ArrayAttr(
            DictionaryAttr({"penstock.name": StringAttr(name), "penstock.kind": StringAttr(kind)})
            for name, kind in kinds
        )
        return params

    def _name_layers(self, main: FuncOp) -> None:
        """A layer is called as its attribute or its value says, or after its operation."""
        names = Names()
        for op in main.body.block.ops:
            if isinstance(op, linalg.GenericOp | tensor.CollapseShapeOp | tensor.ExpandShapeOp | tensor.ExtractSliceOp
                          | tensor.ConcatOp):  # fmt: skip
                given = op.attributes.get(LAYER)
                wanted = (
                    given.data if isinstance(given, StringAttr) else op.results[0].name_hint if op.results else None
                )
                op.attributes[LAYER] = StringAttr(names.take(wanted or op.name.partition(".")[2]))

    def _unsupported(self, op: Operation, where: str) -> PenstockError:
        return self._refused("unsupported-op", f"the operation {op.name} is not supported {where}", self._place(op))

    def _place(self, op: Operation) -> int | None:
        """Where an operation stands in the text: xDSL does not say, so its name is looked for as often as it comes."""
        top: Operation = op
        while (parent := top.parent_op()) is not None:
            top = parent
        earlier = 0
        for other in top.walk():
            if other is op:
                break
            earlier += other.name == op.name
        found = [
            m.start()
            for m in re.finditer(rf"(?<![\w.]){re.escape(op.name)}(?![\w.])", _without_comments(self.file.text))
        ]
        return found[earlier] if earlier < len(found) else None

    def _refused(
        self, code: str, what: str, at: int | None = None, limit: str = _LIMIT, hint: str = _HINT
    ) -> PenstockError:
        return self.file.refused(what, at, code=code, limit=limit, hint=hint)


def _without_comments(text: str) -> str:
    """The text with comments blanked, so that places stay where they are."""
    return re.sub(r"//[^\n]*", lambda m: " " * len(m.group()), text)


def _port(name: str, kind: Attribute) -> Port:
    assert isa(kind, TensorType)
    return Port(name, kind.get_shape(), number_type(kind).dtype.name)


def _sample(kind: Attribute, generator: np.random.Generator) -> Array:
    assert isa(kind, TensorType)
    number, shape = number_type(kind), kind.get_shape()
    if number.is_float:
        return generator.standard_normal(shape).astype(number.dtype)
    low, high = number.extremes
    return generator.integers(max(low, -128), min(high, 127), shape, endpoint=True).astype(number.dtype)
