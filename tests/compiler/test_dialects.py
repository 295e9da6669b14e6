"""Every type and operation prints, parses back to itself, and refuses what it cannot mean."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from xdsl.dialects.builtin import MemRefType, VectorType, f32, i8
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from penstock.compiler.analysis.converter import plan_converter
from penstock.compiler.dialects.itensor import ConverterOp, ITensorType, ScheduleAttr
from penstock.compiler.dialects.nest import GuardAttr, Loop, LoopsAttr, Term
from penstock.compiler.dialects.stream import BlocksType, StreamType
from penstock.compiler.frontend.context import make_context
from tests.compiler.graphs import Case, GraphSpec, Step, cases

B = "!itensor.itensor<4x2xf32, iter_space: [4, 2]*[2, 4], iter_map: (d0, d1) -> (d1, d0)>"
FIGURE_5 = [
    "!itensor.itensor<8x1xf32, iter_space: [8]*[1], iter_map: (d0) -> (0, d0)>",
    B,
    "!itensor.itensor<4x2xf32, iter_space: [4, 2, 2]*[2, 1, 4], iter_map: (d0, d1, d2) -> (d2, d0)>",
]


def parse_type(text: str) -> object:
    return Parser(make_context(), text).parse_type()


@pytest.mark.parametrize("text", FIGURE_5)
def test_types_of_the_paper(text: str) -> None:
    kind = parse_type(text)
    assert isinstance(kind, ITensorType)
    assert str(kind) == text
    assert kind.data_shape() == (8, 8)


def test_order_of_slices() -> None:
    """The index sequences that the paper spells out for figure 5 (b) and (c)."""
    b, c = parse_type(FIGURE_5[1]), parse_type(FIGURE_5[2])
    assert isinstance(b, ITensorType)
    assert isinstance(c, ITensorType)
    assert list(b.offsets())[:4] == [(0, 0), (4, 0), (0, 2), (4, 2)]
    assert list(c.offsets())[:5] == [(0, 0), (4, 0), (0, 0), (4, 0), (0, 2)]


def test_the_converter_of_the_paper() -> None:
    """Figure 5, (b) to (c), as an operation: it verifies, and its buffer is two tiles, four with ping-pong."""
    text = f"""
    %0 = tensor.empty() : tensor<8x8xf32>
    %1 = itensor.load "b" %0 : tensor<8x8xf32> -> {FIGURE_5[1]}
    %2 = itensor.converter "b_to_c" %1 : {FIGURE_5[1]} -> {FIGURE_5[2]}"""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    assert str(Parser(make_context(), str(module)).parse_module()) == str(module)
    converter = module.body.block.last_op
    assert isinstance(converter, ConverterOp)
    assert isinstance(converter.source.type, ITensorType)
    assert isinstance(converter.result.type, ITensorType)
    plan, tile = plan_converter(converter.source.type, converter.result.type), 4 * 2
    assert plan.block == (8, 2)
    assert plan.shared == ((4, 2, 1),)
    assert (plan.block_elements, plan.ping_pong_elements, plan.live_max) == (2 * tile, 4 * tile, 2 * tile)


@pytest.mark.parametrize(
    "kind",
    [
        StreamType.of(VectorType(i8, [1, 16]), 7),
        BlocksType.of(MemRefType(f32, [8, 2]), 2),
        LoopsAttr((Loop("k", 4), Loop("j", 8))),
        LoopsAttr(()),
        GuardAttr((Term(0, "eq", 0), Term(2, "ne", 7), Term(1, "ge", 3), Term(1, "le", 5))),
        GuardAttr(()),
        ScheduleAttr.of([4, 8], [2, 1], [1, 0]),
    ],
    ids=str,
)
def test_attributes_print_and_parse(kind: object) -> None:
    assert Parser(make_context(), str(kind)).parse_attribute() == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (B.replace("[2, 4]", "[2]"), "2 trip counts but 1 steps"),
        (B.replace("[4, 2]", "[4, 0]"), "must all be at least 1"),
        (B.replace("(d0, d1) -> (d1, d0)", "(d0) -> (d0, d0)"), "has 1 dims, the iteration space 2"),
        (B.replace("-> (d1, d0)", "-> (d1)"), "1 coordinates for an element of rank 2"),
        ("!stream.stream<vector<4xi8>, depth: 0>", "depth 0 must be at least 1"),
        ("!stream.blocks<memref<4xi8>, count: 0>", "count 0 must be at least 1"),
    ],
)
def test_impossible_types(text: str, message: str) -> None:
    with pytest.raises((VerifyException, ParseError), match=message.replace("(", r"\(")):
        parse_type(text)


def test_impossible_schedule() -> None:
    with pytest.raises(VerifyException, match="cannot unroll tile 6 of dim 0 by 4"):
        ScheduleAttr.of([6], [4], [0])
    with pytest.raises(VerifyException, match="not a permutation"):
        ScheduleAttr.of([6, 6], [1, 1], [0, 0])


_JOINED_TWICE = GraphSpec(
    "int8", 0, 4, 4, (Step("relu", 0, 0, 0), Step("relu", 0, 0, 0), Step("join", 0, 0, 0), Step("join", 6, 2, 0)), True
)
"""Whose channels' names end in two numbers."""


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@example(case=Case(_JOINED_TWICE, (0,) * 30))
@given(case=cases())
def test_modules_round_trip(case: Case) -> None:
    """What lowering makes parses back to the same text, at every level."""
    lowered = case.lowered()
    for module in (lowered.itensor, lowered.stream):
        text = str(module)
        parsed = Parser(make_context(), text).parse_module()
        parsed.verify()
        assert str(parsed) == text
        assert not re.search(r'"(itensor|stream|nest)\.\w+"\(', text), "every operation has a format of its own"


def test_overlap_is_a_sliding_window() -> None:
    kind = ITensorType.of([3, 3], f32, [6, 6], [1, 1], AffineMap.identity(2))
    assert kind.data_shape() == (8, 8)
    assert kind.token_count == 36
