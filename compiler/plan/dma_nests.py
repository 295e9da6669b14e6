"""Builds the nests of loads and stores: words between external memory and a stream, one a slot, so that they burst.

Where the stream's slices are no runs of words, the words go through a block: one is moved while the other is used. A
tensor that is striped has a process a bank, which do not wait for each other, and one that puts words together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.converter import plan_converter
from penstock.compiler.analysis.nests import (
    Load,
    NestFacts,
    NestValue,
    Place,
    Read,
    Statement,
    StoreFact,
    Write,
)
from penstock.compiler.analysis.packing import split_at_tiles, word_address
from penstock.compiler.analysis.walks import LoopOf, read_walk
from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr
from penstock.compiler.dialects.nest import ALWAYS
from penstock.compiler.dialects.nest_stack import Stacking
from penstock.compiler.plan.converter_nests import (
    PartNests,
    Process,
    block_channel,
    block_reader,
    collect,
    corners,
    named,
    push,
    send,
    token_of,
)
from penstock.compiler.plan.last_tokens import stack
from penstock.compiler.plan.parts import Transfer

JOIN = "join"
"""The nest that puts words together from the shares of banks."""


def build_load(name: str, transfer: Transfer, memories: Sequence[Place], targets: Sequence[Place]) -> PartNests:
    """From a memory, or the shares of a tensor in several, into the FIFOs `targets`."""
    kind, words, layout = transfer.stream.kind, transfer.words.kind, transfer.layout
    if transfer.through is None:
        loops = _loops(read_walk(words).loops, layout)
        if len(memories) > 1:
            fetching, fifos = _fetch_stripes(name, loops, words, layout, memories)
            join = NestFacts(JOIN, named(loops), _joined(fifos, targets))
            return PartNests((*fetching, Process("_join", join)), None, fifos)
        statements = send(memories[0], _address(loops, words, layout), words, targets)
        return PartNests((Process("", NestFacts("load", named(loops), statements), 0),))
    plan = plan_converter(words, kind)
    block = block_channel(name, plan, words)
    shared, inside = _loops(plan.shared, layout), _loops(plan.source, layout)
    loops, skip = [*shared, *inside], len(shared)
    reader = block_reader(plan, kind, block, targets)
    if len(memories) > 1:
        fetching, fifos = _fetch_stripes(name, loops, words, layout, memories)
        whole = Place(f"{name}.words", "stream", words.element_shape, words.dtype)
        join = NestFacts(JOIN, named(loops), _joined(fifos, [whole]))
        fill = NestFacts("fill", named(loops, skip), collect(whole, block, corners(loops, words, skip)), skip)
        return PartNests((*fetching, Process("_join", join), Process("_fill", fill), reader), block, (*fifos, whole))
    statements = _move(words, memories[0], _address(loops, words, layout, skip), block, corners(loops, words, skip))
    fetch = NestFacts("fetch", named(loops, skip), statements, skip)
    return PartNests((Process("_fetch", fetch), reader), block)


def _fetch_stripes(
    name: str, loops: Sequence[LoopOf], words: ITensorType, layout: LayoutAttr | None, memories: Sequence[Place]
) -> tuple[tuple[Process, ...], tuple[Place, ...]]:
    """A process a bank, each with the FIFO of its shares of the words."""
    shape = (prod(words.element_shape) // len(memories),)
    address = _address(loops, words, layout)
    fifos = tuple([Place(f"{name}.stripe{i}", "stream", shape, words.dtype) for i in range(len(memories))])
    fetching: list[Process] = []
    for stripe, (memory, fifo) in enumerate(zip(memories, fifos, strict=True)):
        share = NestValue(shape, words.dtype)
        statements: list[Statement] = [Load(memory, address, ALWAYS, share), Write(share, fifo, ALWAYS)]
        fetching.append(Process(f"_fetch{stripe}", NestFacts(f"fetch{stripe}", named(loops), statements), stripe))
    return tuple(fetching), fifos


def _joined(shares: Sequence[Place], targets: Sequence[Place]) -> list[Statement]:
    """Words put together from the shares of all banks, which have their elements in turn."""
    taken = [NestValue(place.shape, place.dtype) for place in shares]
    (lanes,) = shares[0].shape
    in_turn = Stacking(along=0, first=0, count=lanes, size=len(shares), apart=lanes)
    word = NestValue((lanes, len(shares)), shares[0].dtype)
    return [
        *(Read(place, ALWAYS, value) for place, value in zip(shares, taken, strict=True)),
        stack(taken, in_turn, word),
        *push(word, targets, ALWAYS),
    ]


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
