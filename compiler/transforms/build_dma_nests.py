"""Builds the nests of loads and stores: words between external memory and a stream, one a slot, so that they burst.

Where the stream's slices are no runs of words, the words go through a block: one is moved while the other is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from compiler.analysis.converter import plan_converter
from compiler.analysis.packing import split_at_tiles, word_address
from compiler.analysis.walks import LoopOf, read_walk
from compiler.dialects import itensor, nest
from compiler.dialects.itensor_types import ITensorType, LayoutAttr, expect_itensor
from compiler.dialects.nest import ALWAYS
from compiler.transforms.build_converter_nests import (
    Conversion,
    Process,
    block_channel,
    block_reader,
    corners,
    named,
    push,
    token_of,
)


def build_load(op: itensor.LoadOp, memory: SSAValue, targets: Sequence[SSAValue]) -> Conversion:
    """From a memory into the FIFOs `targets`."""
    kind, words = expect_itensor(op.result), op.words
    if op.through is None:
        loops = _loops(read_walk(words).loops, op.layout)
        body = Block()
        value = nest.LoadOp(memory, _address(loops, words, op.layout), ALWAYS, token_of(words))
        body.add_ops([value, *push(value.result, targets, ALWAYS)])
        return Conversion((Process("", [nest.NestOp("load", named(loops), Region(body))]),))
    plan = plan_converter(words, kind)
    block = block_channel(op.sym_name.data, plan, words)
    shared, inside = _loops(plan.shared, op.layout), _loops(plan.source, op.layout)
    loops = [*shared, *inside]
    body = Block()
    value = nest.LoadOp(memory, _address(loops, words, op.layout, len(shared)), ALWAYS, token_of(words))
    place = corners(loops, words, len(shared))
    body.add_ops([value, nest.StoreOp(value.result, block.result, place, ALWAYS)])
    fetch = nest.NestOp("fetch", named(loops, len(shared)), Region(body), block_loops=len(shared))
    return Conversion((Process("_fetch", [fetch]), block_reader(plan, kind, block, targets)), block)


def build_store(op: itensor.StoreOp, memory: SSAValue, source: SSAValue) -> Conversion:
    """From the FIFO `source` to a memory."""
    kind, words = expect_itensor(op.source), op.words
    if op.through is None:
        loops = _loops(read_walk(words).loops, op.layout)
        body, value = Block(), nest.ReadOp(source, ALWAYS)
        body.add_ops([value, nest.StoreOp(value.result, memory, _address(loops, words, op.layout), ALWAYS)])
        return Conversion((Process("", [nest.NestOp("store", named(loops), Region(body))]),))
    plan = plan_converter(kind, words)
    block = block_channel(op.sym_name.data, plan, kind)
    skip = len(plan.shared)
    loops: list[LoopOf] = [*plan.shared, *plan.source]
    body, value = Block(), nest.ReadOp(source, ALWAYS)
    body.add_ops([value, nest.StoreOp(value.result, block.result, corners(loops, kind, skip), ALWAYS)])
    writer = nest.NestOp("write", named(loops, skip), Region(body), block_loops=skip)

    shared, inside = _loops(plan.shared, op.layout), _loops(plan.target, op.layout)
    loops = [*shared, *inside]
    body = Block()
    value = nest.LoadOp(block.result, corners(loops, words, len(shared)), ALWAYS, token_of(words))
    address = _address(loops, words, op.layout, len(shared))
    body.add_ops([value, nest.StoreOp(value.result, memory, address, ALWAYS)])
    drain = nest.NestOp("drain", named(loops, len(shared)), Region(body), block_loops=len(shared))
    return Conversion((Process("_write", [writer]), Process("_drain", [drain])), block)


def _loops(loops: Sequence[LoopOf], layout: LayoutAttr | None) -> list[LoopOf]:
    pieces = list(loops) if layout is None else split_at_tiles(loops, layout.layout)
    assert pieces is not None, "the order of words was chosen so that its loops fit the tiles"
    return pieces


def _address(loops: Sequence[LoopOf], words: ITensorType, layout: LayoutAttr | None, skip: int = 0) -> AffineMap:
    """Which word each iteration moves; with `skip` loops that change blocks there is always one more inside."""
    if layout is None:
        return corners(loops, words)
    return AffineMap(max(len(loops), skip + 1), 0, word_address(loops, layout.layout).results)
