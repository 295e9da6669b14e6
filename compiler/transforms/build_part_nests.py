"""Builds the nests of tasks that pass tokens on as they are: parts of a stream, streams joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Block, Region, SSAValue

from compiler.analysis.parts import range_loops
from compiler.analysis.walks import LoopOf
from compiler.dialects import itensor, nest
from compiler.dialects.itensor_types import expect_itensor, unpack
from compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term
from compiler.transforms.build_converter_nests import push

Fifos = Mapping[SSAValue, SSAValue]
Targets = Mapping[SSAValue, Sequence[SSAValue]]


def build_chunk(op: itensor.ChunkOp, fifo: Fifos, targets: Targets) -> nest.NestOp:
    """Every token passes once and goes to the parts whose range it lies in."""
    loops, along = range_loops(expect_itensor(op.source), op.dim.data)
    body, value = Block(), nest.ReadOp(fifo[op.source], ALWAYS)
    body.add_op(value)
    for start, part in zip(unpack(op.starts), op.parts, strict=True):
        guard = _range_guard(loops, along, start, expect_itensor(part).data_shape()[op.dim.data])
        body.add_ops(push(value.result, targets[part], guard))
    return nest.NestOp("chunk", _named(loops), Region(body))


def build_concat(op: itensor.ConcatOp, fifo: Fifos, targets: Targets) -> nest.NestOp:
    """Every token of the whole comes from the source in whose range it lies."""
    loops, along = range_loops(expect_itensor(op.result), op.dim.data)
    guards = [
        _range_guard(loops, along, start, expect_itensor(source).data_shape()[op.dim.data])
        for start, source in zip(op.starts, op.sources, strict=True)
    ]
    body, chosen = _select(zip((fifo[s] for s in op.sources), guards, strict=True))
    body.add_ops(push(chosen, targets[op.result], ALWAYS))
    return nest.NestOp("concat", _named(loops), Region(body))


def build_join(op: itensor.JoinOp, fifo: Fifos, targets: Targets) -> nest.NestOp:
    """A token of each source in turn."""
    count = len(op.sources)
    loops = [Loop("turn", expect_itensor(op.sources[0]).token_count), Loop("source", count)]
    guards = [GuardAttr((Term(1, "eq", i),) if count > 1 else ()) for i in range(count)]
    body, chosen = _select(zip((fifo[s] for s in op.sources), guards, strict=True))
    body.add_ops(push(chosen, targets[op.result], ALWAYS))
    return nest.NestOp("join", loops, Region(body))


def _select(sources: Iterable[tuple[SSAValue, GuardAttr]]) -> tuple[Block, SSAValue]:
    """A block that reads the FIFO whose guard holds, and the token that it read."""
    body, chosen = Block(), None
    for source, guard in sources:
        token = nest.ReadOp(source, guard)
        body.add_op(token)
        if chosen is None:
            chosen = token.result
        else:
            select = nest.SelectOp(token.result, chosen, guard)
            body.add_op(select)
            chosen = select.result
    assert chosen is not None
    return body, chosen


def _named(loops: list[LoopOf]) -> list[Loop]:
    return [Loop(f"w{i}", trip) for i, (trip, _, _) in enumerate(loops)]


def _range_guard(loops: list[LoopOf], along: int, start: int, size: int) -> GuardAttr:
    """The trips of loop `along` that lie in a range of its dim; terms that always hold are left out."""
    trip, step, _ = loops[along]
    first, last = start // step, (start + size) // step - 1
    if first == last and trip > 1:
        return GuardAttr((Term(along, "eq", first),))
    terms = [Term(along, "ge", first)] if first > 0 else []
    terms += [Term(along, "le", last)] if last < trip - 1 else []
    return GuardAttr(tuple(terms))
