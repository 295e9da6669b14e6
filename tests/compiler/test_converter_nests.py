"""Random pairs of orders as hardware: from memory through a converter and back, at any port width, nothing moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr, TensorType, i8
from xdsl.ir import Block, Region

from penstock.compiler.analysis.loops import canonical_itensor
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor, stream
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.interpreter import itensor as itensor_interpreter
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.layout import pack, unpack
from penstock.compiler.transforms.fold_itensors import FoldITensors
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.compiler.transforms.lower_to_streams import LowerToStreams
from penstock.compiler.transforms.pack_interfaces import PackInterfaces
from tests.compiler.test_converter import pairs
from tests.compiler.test_one_pass import coarser, neighbours

DESIGN = Design("u55c", 300.0, {})


def round_trip(source: ITensorType, target: ITensorType) -> ModuleOp:
    """@main returns its argument, which has come in one order and gone in another."""
    kind = TensorType(i8, source.data_shape())
    outer, inner = Block(arg_types=[kind]), Block(arg_types=[kind])
    load = itensor.LoadOp("load.x", inner.args[0], source)
    converter = itensor.ConverterOp("convert.x", load.result, target)
    store = itensor.StoreOp("store.0", converter.result, kind)
    inner.add_ops([load, converter, store, itensor.YieldOp([store.result])])
    kernel = itensor.KernelOp("group0", [outer.args[0]], [kind], Region(inner), 0)
    outer.add_ops([kernel, func.ReturnOp(kernel.outputs[0])])
    words = DictionaryAttr({"penstock.name": StringAttr("x"), "penstock.kind": StringAttr("input")})
    signature = FunctionType.from_lists([kind], [kind])
    return ModuleOp([func.FuncOp("main", signature, Region(outer), arg_attrs=ArrayAttr([words]))])


def check(source: ITensorType, target: ITensorType, port_bits: int) -> None:
    module = round_trip(source, target)
    module.verify()
    shape = source.data_shape()
    values = np.arange(np.prod(shape), dtype=np.int64).astype(np.int8).reshape(shape)
    (plain,) = itensor_interpreter.run(module, [values])
    assert (plain == values).all()
    packed = FoldITensors().apply(PackInterfaces(port_bits).apply(module))
    packed.verify()
    streams = GenerateDirectives(DESIGN).apply(LowerToStreams(DESIGN).apply(packed))
    streams.verify()
    top = next(op for op in streams.ops if isinstance(op, stream.TopOp))
    layouts = {name.data: top.layout(i) for i, name in enumerate(top.argument_names)}
    taken, given_back = layouts["x"], layouts["output_0"]
    found = stream_interpreter.run(streams, {"x": pack(values, taken) if taken else values}, {})["output_0"]
    assert ((unpack(found, given_back, shape) if given_back else found) == values).all()


RELAXED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
ANY_PAIR = st.one_of(pairs(), neighbours(), coarser())
PORTS = st.sampled_from([8, 16, 32, 64, 512])


@settings(RELAXED, max_examples=80)
@given(pair=ANY_PAIR, port_bits=PORTS)
def test_any_order_becomes_any_other(pair: tuple[ITensorType, ITensorType], port_bits: int) -> None:
    check(*pair, port_bits)


@pytest.mark.slow
@settings(RELAXED, max_examples=1500)
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
