"""Builds the nests of loads and stores: words between external memory and a stream, one a slot, so that they burst.

Where the stream's slices are no runs of words, the words go through a block: one is moved while the other is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.converter import plan_converter
from penstock.compiler.analysis.nests import Load, NestFacts, Place, Statement, StoreFact
from penstock.compiler.analysis.packing import split_at_tiles, word_address
from penstock.compiler.analysis.walks import LoopOf, read_walk
from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr
from penstock.compiler.dialects.nest import ALWAYS
from penstock.compiler.plan.converter_nests import (
    PartNests,
    Process,
    block_channel,
    block_reader,
    collect,
    corners,
    named,
    send,
    token_of,
)
from penstock.compiler.plan.parts import Transfer


def build_load(name: str, transfer: Transfer, memory: Place, targets: Sequence[Place]) -> PartNests:
    """From a memory into the FIFOs `targets`."""
    kind, words, layout = transfer.stream.kind, transfer.words.kind, transfer.layout
    if transfer.through is None:
        loops = _loops(read_walk(words).loops, layout)
        statements = send(memory, _address(loops, words, layout), words, targets)
        return PartNests((Process("", NestFacts("load", named(loops), statements)),))
    plan = plan_converter(words, kind)
    block = block_channel(name, plan, words)
    shared, inside = _loops(plan.shared, layout), _loops(plan.source, layout)
    loops, skip = [*shared, *inside], len(shared)
    statements = _move(words, memory, _address(loops, words, layout, skip), block, corners(loops, words, skip))
    fetch = NestFacts("fetch", named(loops, skip), statements, skip)
    return PartNests((Process("_fetch", fetch), block_reader(plan, kind, block, targets)), block)


def build_store(name: str, transfer: Transfer, memory: Place, source: Place) -> PartNests:
    """From the FIFO `source` to a memory."""
    kind, words, layout = transfer.stream.kind, transfer.words.kind, transfer.layout
    if transfer.through is None:
        loops = _loops(read_walk(words).loops, layout)
        statements = collect(source, memory, _address(loops, words, layout))
        return PartNests((Process("", NestFacts("store", named(loops), statements)),))
    plan = plan_converter(kind, words)
    block = block_channel(name, plan, kind)
    loops, skip = [*plan.shared, *plan.source], len(plan.shared)
    writer = NestFacts("write", named(loops, skip), collect(source, block, corners(loops, kind, skip)), skip)

    shared, inside = _loops(plan.shared, layout), _loops(plan.target, layout)
    loops, skip = [*shared, *inside], len(shared)
    statements = _move(words, block, corners(loops, words, skip), memory, _address(loops, words, layout, skip))
    drain = NestFacts("drain", named(loops, skip), statements, skip)
    return PartNests((Process("_write", writer), Process("_drain", drain)), block)


def _move(words: ITensorType, source: Place, taken: AffineMap, target: Place, put: AffineMap) -> list[Statement]:
    """A word from one memory to another."""
    word = token_of(words)
    return [Load(source, taken, ALWAYS, word), StoreFact(word, target, put, ALWAYS)]


def _loops(loops: Sequence[LoopOf], layout: LayoutAttr | None) -> list[LoopOf]:
    pieces = list(loops) if layout is None else split_at_tiles(loops, layout.layout)
    assert pieces is not None, "the order of words was chosen so that its loops fit the tiles"
    return pieces


def _address(loops: Sequence[LoopOf], words: ITensorType, layout: LayoutAttr | None, skip: int = 0) -> AffineMap:
    """Which word each iteration moves; with `skip` loops that change blocks there is always one more inside."""
    if layout is None:
        return corners(loops, words)
    return AffineMap(max(len(loops), skip + 1), 0, word_address(loops, layout.layout).results)
