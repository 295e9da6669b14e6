"""Random pairs of orders as hardware: from memory through a converter and back, at any port width, nothing moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr, i8
from xdsl.ir import Block, Operation, Region, SSAValue

from penstock.compiler.analysis.loops import canonical_itensor
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor, stream
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.interpreter import itensor as itensor_interpreter
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.layout import pack, unpack
from penstock.compiler.plan.orders import OrderTable
from penstock.compiler.plan.parts import Transfer
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.compiler.transforms.lower_to_streams import LowerToStreams
from tests.compiler.test_converter import pairs
from tests.compiler.test_one_pass import coarser, neighbours

DESIGN = Design("u55c", 300.0, {})


def round_trip(source: ITensorType, target: ITensorType, port_bits: int) -> ModuleOp:
    """@main returns its argument, which has come in one order and gone in another; at 0 bits nothing is packed."""
    table = OrderTable()
    come, gone = table.of(source), table.of(target)
    taken, given = (table.layout(order, port_bits) if port_bits else None for order in (come, gone))
    loading, storing = table.load(come, taken), table.store(gone, given)
    outer, inner = Block(arg_types=[loading.tensor]), Block(arg_types=[loading.tensor])

    def add(op: Operation) -> SSAValue:
        inner.add_op(op)
        return op.results[0]

    def words(transfer: Transfer) -> ITensorType | None:
        return transfer.through and transfer.through.kind

    value = add(itensor.LoadOp("load.x", inner.args[0], loading.stream.kind, taken, words(loading)))
    if loading.stream is not come:
        value = add(itensor.ConverterOp("unpack.x", value, source))
    value = add(itensor.ConverterOp("convert.x", value, target))
    if storing.stream is not gone:
        value = add(itensor.ConverterOp("pack.0", value, storing.stream.kind))
    value = add(itensor.StoreOp("store.0", value, storing.tensor, given, words(storing)))
    inner.add_op(itensor.YieldOp([value]))
    kernel = itensor.KernelOp("group0", [outer.args[0]], [storing.tensor], Region(inner), 0)
    outer.add_ops([kernel, func.ReturnOp(kernel.outputs[0])])
    named = {"penstock.name": StringAttr("x"), "penstock.kind": StringAttr("input")}
    arguments, results = (
        ArrayAttr([DictionaryAttr(known | ({} if layout is None else {"penstock.layout": layout}))])
        for known, layout in ((named, taken), ({}, given))
    )
    signature = FunctionType.from_lists([loading.tensor], [storing.tensor])
    return ModuleOp([func.FuncOp("main", signature, Region(outer), arg_attrs=arguments, res_attrs=results)])


def check(source: ITensorType, target: ITensorType, port_bits: int) -> None:
    shape = source.data_shape()
    values = np.arange(np.prod(shape), dtype=np.int64).astype(np.int8).reshape(shape)
    plain = round_trip(source, target, 0)
    plain.verify()
    assert (itensor_interpreter.run(plain, [values])[0] == values).all()
    packed = round_trip(source, target, port_bits)
    packed.verify()
    streams = GenerateDirectives(DESIGN).apply(LowerToStreams(DESIGN).apply(packed))
    streams.verify()
    top = next(op for op in streams.ops if isinstance(op, stream.TopOp))
    layouts = {name.data: top.layout(i) for i, name in enumerate(top.argument_names)}
    taken, given_back = layouts["x"], layouts["output_0"]
    found = stream_interpreter.run(streams, {"x": pack(values, taken) if taken else values}, {})["output_0"]
    assert ((unpack(found, given_back, shape) if given_back else found) == values).all()


RELAXED = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
ANY_PAIR = st.one_of(pairs(), neighbours(), coarser())
PORTS = st.sampled_from([8, 16, 32, 64, 512])


@settings(RELAXED, max_examples=40)
@given(pair=ANY_PAIR, port_bits=PORTS)
def test_any_order_becomes_any_other(pair: tuple[ITensorType, ITensorType], port_bits: int) -> None:
    check(*pair, port_bits)


@pytest.mark.slow
@settings(RELAXED, max_examples=500)
@given(pair=ANY_PAIR, port_bits=PORTS)
def test_any_order_becomes_any_other_many_more(pair: tuple[ITensorType, ITensorType], port_bits: int) -> None:
    check(*pair, port_bits)


@pytest.mark.parametrize("port_bits", [8, 64])
def test_rows_become_tiles_and_columns(port_bits: int) -> None:
    rows = canonical_itensor([1, 4], i8, [(8, 1, 0), (16, 4, 1)])
    for other in (
        canonical_itensor([4, 4], i8, [(2, 4, 0), (16, 4, 1)]),
        canonical_itensor([4, 4], i8, [(16, 4, 1), (2, 4, 0)]),
        canonical_itensor([1, 1], i8, [(64, 1, 1), (8, 1, 0)]),
    ):
        check(rows, other, port_bits)
        check(other, rows, port_bits)
