"""Builds the nests of loads and stores: words between external memory and a stream, one a slot, so that they burst.

Where the stream's slices are no runs of words, the words go through a block: one is moved while the other is used. A
tensor that is striped has a process a bank, which do not wait for each other, and one that puts words together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Block
from xdsl.ir.affine import AffineMap
from xdsl.utils.hints import isa

from penstock.compiler.analysis.converter import plan_converter
from penstock.compiler.analysis.nests import (
    Constant,
    Load,
    NestFacts,
    NestValue,
    Other,
    Place,
    Read,
    Statement,
    StoreFact,
    Write,
)
from penstock.compiler.analysis.packing import split_at_tiles, word_address
from penstock.compiler.analysis.walks import LoopOf, read_walk
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.affine import linear_sum
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
            fetching, fifos = _fetch_stripes(name, loops, layout, memories, words)
            join = NestFacts(JOIN, named(loops), _joined(fifos, targets, words))
            return PartNests((*fetching, Process("_join", join)), None, fifos)
        word, taken = _taken(memories[0], _address(loops, words, layout), words, layout)
        statements = [*taken, *push(word, targets, ALWAYS)]
        return PartNests((Process("", NestFacts("load", named(loops), statements), 0),))
    plan = plan_converter(words, kind)
    block = block_channel(name, plan, words)
    shared, inside = _loops(plan.shared, layout), _loops(plan.source, layout)
    loops, skip = [*shared, *inside], len(shared)
    reader = block_reader(plan, kind, block, targets)
    if len(memories) > 1:
        fetching, fifos = _fetch_stripes(name, loops, layout, memories, words)
        whole = Place(f"{name}.words", "stream", words.element_shape, words.dtype)
        join = NestFacts(JOIN, named(loops), _joined(fifos, [whole], words))
        fill = NestFacts("fill", named(loops, skip), collect(whole, block, corners(loops, words, skip)), skip)
        return PartNests((*fetching, Process("_join", join), Process("_fill", fill), reader), block, (*fifos, whole))
    word, taken = _taken(memories[0], _address(loops, words, layout, skip), words, layout)
    statements = [*taken, StoreFact(word, block, corners(loops, words, skip), ALWAYS)]
    fetch = NestFacts("fetch", named(loops, skip), statements, skip)
    return PartNests((Process("_fetch", fetch), reader), block)


def _fetch_stripes(
    name: str, loops: Sequence[LoopOf], layout: LayoutAttr | None, memories: Sequence[Place], words: ITensorType
) -> tuple[tuple[Process, ...], tuple[Place, ...]]:
    """A process a bank, each with the FIFO of its shares of the words."""
    assert layout is not None, "what is striped has words"
    shape = (layout.layout.lanes_of_stripe,)
    address = _address(loops, words, layout)
    fifos = tuple([Place(f"{name}.stripe{i}", "stream", shape, words.dtype) for i in range(len(memories))])
    fetching: list[Process] = []
    for stripe, (memory, fifo) in enumerate(zip(memories, fifos, strict=True)):
        share = NestValue(shape, words.dtype)
        statements: list[Statement] = [Load(memory, address, ALWAYS, share), Write(share, fifo, ALWAYS)]
        fetching.append(Process(f"_fetch{stripe}", NestFacts(f"fetch{stripe}", named(loops), statements), stripe))
    return tuple(fetching), fifos


def _joined(shares: Sequence[Place], targets: Sequence[Place], words: ITensorType) -> list[Statement]:
    """Words put together from the shares of all banks, which have their elements in turn."""
    taken = [NestValue(place.shape, place.dtype) for place in shares]
    (lanes,) = shares[0].shape
    in_turn = Stacking(along=0, first=0, count=lanes, size=len(shares), apart=lanes)
    word = NestValue((lanes, len(shares)), shares[0].dtype)
    own, picked = _own(word, words)
    return [
        *(Read(place, ALWAYS, value) for place, value in zip(shares, taken, strict=True)),
        stack(taken, in_turn, word),
        *picked,
        *push(own, targets, ALWAYS),
    ]


def _taken(
    memory: Place, address: AffineMap, words: ITensorType, layout: LayoutAttr | None
) -> tuple[NestValue, list[Statement]]:
    """A word out of a memory, without what lies behind its own elements."""
    room = layout is not None and layout.layout.room
    word = NestValue((room,), words.dtype) if room else token_of(words)
    own, picked = _own(word, words)
    return own, [Load(memory, address, ALWAYS, word), *picked]


def _own(word: NestValue, words: ITensorType) -> tuple[NestValue, list[Statement]]:
    """The elements of a word, which may have room for more."""
    own = token_of(words)
    return (word, []) if prod(word.shape) == prod(own.shape) else (own, [_picked(word, own)])


def _picked(word: NestValue, first: NestValue) -> Other:
    """The first lanes of a word, in the shape of what they are to be."""
    strides = [prod(first.shape[dim + 1 :]) for dim in range(len(first.shape))]
    lanes = AffineMap(len(strides), 0, (linear_sum(list(enumerate(strides))),))
    (given,) = Block(arg_types=[VectorType(word.dtype, word.shape)]).args
    return Other(nest.PickOp(given, lanes, first.shape), (word,), first)


def build_store(name: str, transfer: Transfer, memory: Place, source: Place) -> PartNests:
    """From the FIFO `source` to a memory."""
    kind, words, layout = transfer.stream.kind, transfer.words.kind, transfer.layout
    if transfer.through is None:
        loops = _loops(read_walk(words).loops, layout)
        token = NestValue(source.shape, source.dtype)
        statements = [Read(source, ALWAYS, token), *_put(token, memory, _address(loops, words, layout), layout)]
        return PartNests((Process("", NestFacts("store", named(loops), statements)),))
    plan = plan_converter(kind, words)
    block = block_channel(name, plan, kind)
    loops, skip = [*plan.shared, *plan.source], len(plan.shared)
    writer = NestFacts("write", named(loops, skip), collect(source, block, corners(loops, kind, skip)), skip)

    shared, inside = _loops(plan.shared, layout), _loops(plan.target, layout)
    loops, skip = [*shared, *inside], len(shared)
    word, address = token_of(words), _address(loops, words, layout, skip)
    statements = [Load(block, corners(loops, words, skip), ALWAYS, word), *_put(word, memory, address, layout)]
    drain = NestFacts("drain", named(loops, skip), statements, skip)
    return PartNests((Process("_write", writer), Process("_drain", drain)), block)


def _put(word: NestValue, memory: Place, address: AffineMap, layout: LayoutAttr | None) -> list[Statement]:
    """A word into a memory, zeros behind it where there is room for more."""
    own, room = prod(word.shape), 0 if layout is None else layout.layout.room
    if not room:
        return [StoreFact(word, memory, address, ALWAYS)]
    flat, zeros, whole = (NestValue((lanes,), word.dtype) for lanes in (own, own, room))
    zero = FloatAttr(0.0, word.dtype) if isa(word.dtype, AnyFloat) else IntegerAttr(0, cast(IntegerType, word.dtype))
    return [
        _picked(word, flat), Constant(zero, zeros), stack([flat, zeros], Stacking(0, 0, room, 1), whole),
        StoreFact(whole, memory, address, ALWAYS),
    ]  # fmt: skip


def _loops(loops: Sequence[LoopOf], layout: LayoutAttr | None) -> list[LoopOf]:
    pieces = list(loops) if layout is None else split_at_tiles(loops, layout.layout)
    assert pieces is not None, "the order of words was chosen so that its loops fit the tiles"
    return pieces


def _address(loops: Sequence[LoopOf], words: ITensorType, layout: LayoutAttr | None, skip: int = 0) -> AffineMap:
    """Which word each iteration moves; with `skip` loops that change blocks there is always one more inside."""
    if layout is None:
        return corners(loops, words)
    return AffineMap(max(len(loops), skip + 1), 0, word_address(loops, layout.layout).results)
