"""Tile loops in the order that fits the kernel before, or in one of their own."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.parser import Parser

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Port, Program, Signature
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.space.fusion import fusion_graph
from penstock.dse.space.orders import order_choices
from penstock.dse.space.tiling import TilingSpace
from tests.compiler.designs import networks


def chain() -> Program:
    """A (B C): the second product reads the first one's result down its columns."""
    square = "tensor<8x8xf32>"
    maps = "[affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]"

    def product(name: str, left: str, right: str) -> str:
        return f"""
  %{name}e = tensor.empty() : {square}
  %{name}f = linalg.fill ins(%zero : f32) outs(%{name}e : {square}) -> {square}
  %{name} = linalg.generic {{indexing_maps = {maps}, iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({left}, {right} : {square}, {square}) outs(%{name}f : {square}) attrs = {{penstock.layer = "{name}"}} {{
  ^bb0(%x: f32, %y: f32, %r: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %r, %p : f32
    linalg.yield %s : f32
  }} -> {square}"""

    arguments = ", ".join(f'%{n}: {square} {{penstock.name = "{n}", penstock.kind = "input"}}' for n in "abc")
    text = f"""func.func @main({arguments}) -> {square} {{
  %zero = arith.constant 0.0 : f32{product("inner", "%b", "%c")}{product("outer", "%a", "%inner")}
  func.return %outer : {square}
}}"""
    ports = tuple(Port(name, (8, 8), "float32") for name in "abc")
    module = Parser(make_context(), text).parse_module()
    return Program("chain", module, {}, Signature(ports, (Port("y", (8, 8), "float32"),)))


def test_connected_orders_need_the_least_converters() -> None:
    program = chain()
    evaluator = Evaluator.create(program, "u55c")
    guess = {**evaluator.space.default_params(), "default_tile_size": 4, "overall_unroll_size": 4}
    found = {
        order: fusion_graph(evaluator.space.graph, evaluator.space.design({**guess, "order": order})).edges
        for order in evaluator.space.choices["order"]
    }
    bits = {order: edges["inner", "outer"] for order, edges in found.items()}
    assert bits["connected"] < bits["parallel-outer"]
    assert bits["connected"] <= bits["reduction-outer"]
    every = [
        evaluator.space.design({**guess, "order.outer": name})
        for name in order_choices(evaluator.space.graph.by_layer["outer"])[1:]
    ]
    least = min(fusion_graph(evaluator.space.graph, design).edges["inner", "outer"] for design in every)
    assert bits["connected"] == least
    assert {design.kernels["outer"].order for design in every} == set(permutations(range(3)))
    for design in every:
        lower(program, design)


@given(data=st.data())
@settings(max_examples=15)
def test_connected_orders_are_legal(data: st.DataObject) -> None:
    program = data.draw(networks())
    space = TilingSpace(read_graph(program.module), load_platform("u55c"), 300.0)
    params = {name: data.draw(st.sampled_from(values)) for name, values in space.choices.items()}
    lower(program, space.design({**params, "order": "connected"}))
