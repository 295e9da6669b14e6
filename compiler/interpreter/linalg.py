"""Runs linalg on tensors in numpy, in the order in which its loops are written.

Every value carries a leading axis of independent runs, so that a whole evaluation set goes through in one pass.
Parallel loops are vectorised; reduction loops run one iteration after the other, first to last, so that float sums
have exactly the order that the IR states (points.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.utils.hints import isa

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.tasks import ProgramOp
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.contract import contract
from penstock.compiler.interpreter.points import GenericLoops, run_body
from penstock.compiler.interpreter.rows import join_rows, split_rows
from penstock.compiler.interpreter.windows import slide
from penstock.compiler.program import Program
from penstock.compiler.scalars.number_types import numpy_dtype
from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.tasks.interpret import interpret
from penstock.compiler.tasks.opened import network_of_op

ValueArrays = dict[SSAValue, Array]
ValueObserver = Callable[[SSAValue, Array], None]


def run(program: Program, inputs: Sequence[Array]) -> list[Array]:
    """Outputs for one set of inputs, at the module's own dtypes and the signature's shapes."""
    return [output[0] for output in run_many(program, [np.asarray(x)[None] for x in inputs])]


def run_many(
    program: Program, inputs: Sequence[Array], observe: ValueObserver | None = None, *, quick: bool = False
) -> list[Array]:
    """Like `run` for many independent runs at once: each input has a leading axis of runs, and so has each output.

    `observe` is called with the result of every generic. A `quick` run adds up large products in any order: for whoever
    asks how large numbers are, not for their last bits.
    """
    ports = program.signature.inputs
    if len(inputs) != len(ports):
        raise PenstockError(
            code="input-count",
            what=f"{len(inputs)} inputs given",
            where=program.name,
            limit=f"the model takes {len(ports)}",
        )
    by_name = {port.name: value for port, value in zip(ports, inputs, strict=True)}
    main = main_function(program)
    values: ValueArrays = {}
    for (name, kind), argument in zip(argument_names(main), main.body.block.args, strict=True):
        given = by_name[name] if kind == "input" else program.params[name][None]
        values[argument] = _as_argument(given, argument.type, name)
    for op in main.body.block.ops:
        if isinstance(op, func.ReturnOp):
            outputs = [values[operand] for operand in op.operands]
            runs = max([len(x) for x in inputs], default=1)
            return [
                np.ascontiguousarray(np.broadcast_to(x, (runs, *x.shape[1:]))).reshape(runs, *port.shape)
                for x, port in zip(outputs, program.signature.outputs, strict=True)
            ]
        if isinstance(op, ProgramOp):
            values |= _run_tasks(op, values)
            continue
        found = contract(op, values) if quick and isinstance(op, linalg.GenericOp) else None
        result = execute(op, values) if found is None else found
        values[op.results[0]] = result
        if observe is not None and isinstance(op, linalg.GenericOp):
            observe(op.results[0], result)
    raise PenstockError(code="invalid-ir", what="the function never returns", where=program.name)


def run_rows(program: Program, rows: Array) -> Array:
    """Real-valued outputs, one row an example, of a model with one input and one output."""
    signature = program.signature
    if len(signature.inputs) != 1 or len(signature.outputs) != 1:
        raise PenstockError(
            code="evaluation-ports",
            what=f"{len(signature.inputs)} inputs and {len(signature.outputs)} outputs",
            where=program.name,
            limit="an evaluation set needs a model with one input and one output",
        )
    port, batches = signature.inputs[0], split_rows(rows, signature.inputs[0].shape, program.name)
    numbers = port.quant.quantise(batches) if port.quant else batches.astype(port.dtype)
    outputs = program.dequantise_outputs(run_many(program, [numbers]))
    return join_rows(outputs[0], rows, port.shape)


def main_function(program: Program) -> func.FuncOp:
    for op in program.module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main":
            return op
    raise PenstockError(code="invalid-ir", what="the module has no function @main", where=program.name)


def argument_names(main: func.FuncOp) -> list[tuple[str, str]]:
    """Name and kind ("input" or "param") of every argument."""
    attributes = [] if main.arg_attrs is None else list(main.arg_attrs)
    return [(_text(a.data["penstock.name"]), _text(a.data["penstock.kind"])) for a in attributes]


def _text(attribute: Attribute) -> str:
    assert isinstance(attribute, StringAttr)
    return attribute.data


def _as_argument(value: Array, kind: Attribute, name: str) -> Array:
    """Arguments keep the C order of the user's array but may have another shape (flattened, without unit dims)."""
    assert isa(kind, TensorType)
    shape, dtype = kind.get_shape(), numpy_dtype(kind)
    if value.dtype != dtype or value[0].size != int(np.prod(shape)):
        raise PenstockError(
            code="input-shape",
            what=f"{value.dtype} of shape {value.shape[1:]} given",
            where=name,
            limit=f"the argument is {dtype} of shape {shape}",
        )
    return value.reshape(len(value), *shape)


def _run_tasks(op: ProgramOp, values: ValueArrays) -> ValueArrays:
    """A task program on each of the runs."""
    network = network_of_op(op)
    given = dict(zip(network.inputs, [values[value] for value in op.inputs], strict=True))
    runs = max(len(value) for value in given.values())
    answers = [interpret(network, {name: x[min(i, len(x) - 1)] for name, x in given.items()}) for i in range(runs)]
    return {
        result: np.stack([answer[name] for answer in answers])
        for result, name in zip(op.results, network.outputs, strict=True)
    }


def execute(op: Operation, values: ValueArrays) -> Array:
    """The result of one operation of the function, from the values of its operands."""
    match op:
        case linalg.GenericOp():
            return run_generic(op, values)
        case linalg.FillOp():
            return np.broadcast_to(values[op.operands[0]], (1, *_shape(op.results[0])))
        case tensor.EmptyOp():
            zero = np.zeros((), numpy_dtype(op.results[0].type))
            return np.broadcast_to(zero, (1, *_shape(op.results[0])))  # nothing may read it: no memory for it
        case tensor.CollapseShapeOp() | tensor.ExpandShapeOp():
            source = values[op.operands[0]]
            return source.reshape(len(source), *_shape(op.results[0]))
        case tensor.ExtractSliceOp():
            bounds = zip(op.static_offsets.get_values(), op.static_sizes.get_values(), strict=True)
            return values[op.source][(slice(None), *(slice(o, o + s) for o, s in bounds))]
        case tensor.ConcatOp():
            parts = [values[x] for x in op.inputs]
            runs = max(len(x) for x in parts)
            spread = [np.broadcast_to(x, (runs, *x.shape[1:])) for x in parts]
            return np.concatenate(spread, axis=op.dim.value.data + 1)
        case SlideOp():
            return slide(values[op.source], op, lead=1)
        case arith.ConstantOp():
            constant = evaluate(op, [])
            return constant[None] if isa(op.result.type, TensorType) else constant
        case _:
            return evaluate(op, [values[operand] for operand in op.operands])


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isa(value.type, TensorType)
    return value.type.get_shape()


def run_generic(op: linalg.GenericOp, values: ValueArrays) -> Array:
    """One linalg.generic on values with a leading axis of runs."""
    iterators = [attribute.data for attribute in op.iterator_types]
    maps = [attribute.data for attribute in op.indexing_maps]
    trips = trip_counts(op)
    reductions = [d for d, kind in enumerate(iterators) if kind is IteratorType.REDUCTION]
    parallels = [d for d, kind in enumerate(iterators) if kind is IteratorType.PARALLEL]
    loops = [*reductions, None, *parallels]  # None is the axis of runs
    operands = [_spread(values[x], m, loops, trips) for x, m in zip(op.inputs, maps, strict=False)]
    result_map = maps[len(op.inputs)]
    state = _spread(values[op.outputs[0]], result_map, loops, trips)[(0,) * len(reductions)]
    state = run_body(op, operands, state, values, GenericLoops(reductions, parallels, trips))
    state = state.reshape((1,) * (1 + len(parallels))) if state.ndim == 0 else state
    space = (
        max(len(state), *(x.shape[len(reductions)] for x in operands), 1),
        *(trips[d] for d in parallels),
    )
    state = np.broadcast_to(state, space)
    positions = [_position(expr) for expr in result_map.results]
    order = [0, *(1 + parallels.index(p) for p in positions if p is not None)]
    dropped = [axis for axis in range(state.ndim) if axis not in order]
    if any(state.shape[axis] != 1 for axis in dropped):
        raise PenstockError(code="invalid-ir", what=f"{op.name} writes its result more than once")
    kept = np.squeeze(state.transpose(order + dropped), axis=tuple(range(len(order), state.ndim)))
    return kept.reshape(len(kept), *_shape(op.results[0])).astype(numpy_dtype(op.results[0].type), copy=False)


def trip_counts(op: linalg.GenericOp) -> list[int]:
    """How often each loop of a generic runs, from the shapes of its operands."""
    trips = [1] * len(op.iterator_types)
    for value, attribute in zip(op.operands, op.indexing_maps, strict=True):
        if isa(value.type, TensorType):
            for size, expr in zip(value.type.get_shape(), attribute.data.results, strict=True):
                position = _position(expr)
                if position is not None:
                    trips[position] = size
    return trips


def _position(expr: object) -> int | None:
    """Which loop an index follows; None for the constant index of a dimension of size one."""
    match expr:
        case AffineDimExpr(position):
            return position
        case AffineConstantExpr(0):
            return None
        case _:
            raise PenstockError(
                code="unsupported-op",
                what=f"index expression {expr}",
                limit="operands are indexed by loops directly: no strides, no windows",
            )


def _spread(value: Array, layout: AffineMap, loops: Sequence[int | None], trips: Sequence[int]) -> Array:
    """A view with one axis for every loop (and the axis of runs), of size one where the operand does not follow it."""
    if value.ndim == 0:
        return value.reshape((1,) * len(loops))
    axes: dict[int | None, int] = {None: 0}
    fixed: list[int] = []
    for axis, expr in enumerate(layout.results, start=1):
        position = _position(expr)
        if position is None:
            fixed.append(axis)
        else:
            axes[position] = axis
    order = [axes[loop] for loop in loops if loop in axes]
    arranged = value.transpose(order + fixed)
    return arranged.reshape(tuple(value.shape[axes[loop]] if loop in axes else 1 for loop in loops))
