"""What each layer computes under a design's schedule; equal layers and equal schedules share theirs."""

from __future__ import annotations

from collections.abc import Hashable
from io import StringIO

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.printer import Printer

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.tasks import Computation, is_reread
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.plan.checks import check_bindings_of
from penstock.compiler.plan.orders import OrderTable
from penstock.compiler.plan.parts import Computing, Order
from penstock.compiler.plan.value_orders import dtype_of, loops_of
from penstock.compiler.platforms import Platform

_BELOW = 6
"""The predicate `ult` of a comparison."""


class KnownComputations:
    """What graphs of one program have in common, however each is padded: orders, and what layers compute."""

    def __init__(self) -> None:
        self.orders = OrderTable()
        self.computations: dict[str, Computation] = {}
        self.computing: dict[Hashable, Computing] = {}


class Computations:
    """The computations of one graph's designs, each found once."""

    def __init__(self, graph: Graph, platform: Platform, known: KnownComputations) -> None:
        self._platform = platform
        self._known = known
        self._params = frozenset(a for a in graph.arguments if graph.is_param(a))
        self._texts: dict[str, str] = {}
        self._of_layers: dict[Hashable, Computing] = {}

    def of(self, operation: TensorOp, design: Design) -> Computing:
        kernel = design.kernels[operation.layer]
        bindings = tuple(sorted(kernel.bindings.items()))
        key = (operation.layer, kernel.tile, kernel.unroll, kernel.order, kernel.weights, bindings, kernel.interval)
        if key not in self._of_layers:
            self._of_layers[key] = self._find(operation, design, bindings)
        return self._of_layers[key]

    def _find(self, operation: TensorOp, design: Design, bindings: tuple[tuple[str, str], ...]) -> Computing:
        check_bindings_of(operation, design, self._platform)
        plan = loops_of(operation, design)
        operands: list[Order | None] = []
        tensors: list[TensorType[Attribute]] = []
        reread: list[bool] = []
        for value, indexing_map in zip(operation.inputs, operation.operand_maps, strict=True):
            param, store = value in self._params, design.kernels[operation.layer].weights
            again = param and store == "stream"
            kind = plan.itensor(indexing_map, dtype_of(value), reread=again)
            operands.append(self._known.orders.of(kind) if store != "rom" or not param else None)
            reread.append(again and is_reread(kind, indexing_map, plan))
            if operands[-1] is None:
                tensors.append(tensor_type(value))
        result = self._known.orders.of(plan.itensor(operation.result_map, dtype_of(operation.result)))
        interval = design.kernels[operation.layer].interval
        facts = (self._text(operation), plan.steps, plan.unroll, tuple(operands), bindings, interval)
        if facts not in self._known.computing:
            self._known.computing[facts] = Computing(
                plan, self._computation(operation), bindings, tuple(operands), tuple(tensors), tuple(reread), result,
                interval,
            )  # fmt: skip
        return self._known.computing[facts]

    def _computation(self, operation: TensorOp) -> Computation:
        """What an operation computes; equal ones share theirs."""
        text, known = self._text(operation), self._known.computations
        if text not in known:
            maps, dtype = (*operation.operand_maps, operation.result_map), dtype_of(operation.result)
            body = task_body(operation).block
            known[text] = Computation.of(operation.layer, maps, dtype, operation.init, body)
        return known[text]

    def _text(self, operation: TensorOp) -> str:
        """What an operation computes along which dims, whatever it is called."""
        if operation.layer not in self._texts:
            out = StringIO()
            Printer(stream=out).print_region(task_body(operation))
            maps = (*operation.operand_maps, operation.result_map)
            types = [v.type for v in (*operation.inputs, operation.result)]
            facts = (operation.trips, operation.iterators, operation.init, maps, types)
            self._texts[operation.layer] = f"{out.getvalue()} {' '.join(map(str, facts))}"
        return self._texts[operation.layer]


def task_body(operation: TensorOp) -> Region:
    """The scalar body, with captured constants brought in; an unused `outs` argument is dropped.

    What compares a loop's index with its size becomes one operation; there are no indices below linalg.
    """
    source = operation.op.body.block
    count = len(operation.op.inputs) + (operation.init is not None)
    if operation.init is None and any(True for _ in source.args[-1].uses):
        raise PenstockError(
            code="unsupported-op", what="an elementwise operation that reads its output's old value",
            where=operation.layer, hint="pass that tensor as an input",
        )  # fmt: skip
    block = Block(arg_types=[a.type for a in source.args[:count]])
    mapping: dict[SSAValue, SSAValue] = dict(zip(source.args[:count], block.args, strict=True))
    for op in source.ops:
        if isinstance(op.results[0].type if op.results else None, IndexType):
            continue
        if (within := _within(operation.layer, op)) is not None:
            block.add_op(within)
            mapping[op.results[0]] = within.result
            continue
        for operand in op.operands:
            if operand not in mapping:
                mapping[operand] = _capture(operation.layer, operand, block)
        if isinstance(op, linalg.YieldOp):
            block.add_op(itensor.YieldOp([mapping[v] for v in op.operands]))
        else:
            block.add_op(op.clone(mapping))
    return Region(block)


def _within(layer: str, op: Operation) -> itensor.WithinOp | None:
    if not any(isinstance(operand.type, IndexType) for operand in op.operands):
        return None
    index, size = (operand.owner for operand in op.operands[:2])
    below = isinstance(op, arith.CmpiOp) and op.predicate.value.data == _BELOW
    if not below or not isinstance(index, linalg.IndexOp) or not isinstance(size, arith.ConstantOp):
        raise PenstockError(
            code="unsupported-op", what=f"{op.name} of a loop's index", where=layer,
            limit="an index is compared with how much of its loop is no padding, and nothing else",
        )  # fmt: skip
    bound = size.value
    assert isinstance(bound, IntegerAttr)
    return itensor.WithinOp(index.dim.value.data, bound.value.data)


def _capture(layer: str, value: SSAValue, block: Block) -> SSAValue:
    if not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
        raise PenstockError(
            code="unsupported-op", what="a body that uses a value from outside which is not a constant", where=layer,
        )  # fmt: skip
    constant = value.op.clone()
    block.add_op(constant)
    return constant.result
