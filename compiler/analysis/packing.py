"""Which layout a tensor gets in external memory, and in which order its words pass.

The word grows along the innermost loops of the stream that it feeds, so that it is a run of tokens; the tile is
what the stream walks through in row-major order before it jumps. Another stream of the same tensor takes what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, inf, prod

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.loops import canonical_itensor
from penstock.compiler.analysis.walks import LoopOf, SliceWalk, read_walk
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr
from penstock.compiler.layout import Layout
from penstock.compiler.scalars.number_types import number_type

MANY_WORDS = 4096
"""What passes in fewer is soon over, whatever its words."""
_WORTH_ROOM = 2
"""How many times as many elements as words of powers of two are worth some room in each word."""


def choose_layout(
    kind: ITensorType, port_bits: int, stripes: int = 1, grains: Sequence[int] = (), room_from: float = inf
) -> Layout | None:
    """The layout that suits a stream, with words of a power of two bits; None where words would hold one element.

    With `stripes` words are as wide as so many ports together, or as there are elements for. `grains` are of dims whose
    size each call says what it is always a multiple of, and 0 of others: no word goes on from one grain to the next.
    Of a tensor of at least `room_from` such words, those of odd sizes have some room behind their elements, if half as
    many are enough so.
    """
    number, walk = number_type(kind.dtype), read_walk(kind)
    if not number.is_native or not walk.tiles:
        return None
    port = 1 << (port_bits.bit_length() - 1)
    lanes = max(1, (stripes * port if stripes > 1 else port_bits) // number.bits)
    word = _choose_word(walk, lanes, grains)
    if prod(walk.extents) >= room_from * prod(word):
        wide = _wide_word(walk, lanes, grains)
        word = wide if prod(wide) >= _WORTH_ROOM * prod(word) else word
    if prod(word) <= 1:
        return None
    taken = 1 << (prod(word) - 1).bit_length()
    tile = list(word)
    previous = len(word)
    for trip, step, dim in reversed(_word_loops(walk, word)):
        if dim is None:
            continue
        if dim >= previous or step != tile[dim]:
            break
        tile[dim] *= trip
        previous = dim
    banks, room = max(1, taken * number.bits // max(port, number.bits)), taken if taken > prod(word) else 0
    return Layout(tuple(tile), tuple(word), banks, room=room)


def word_order(kind: ITensorType, layout: Layout) -> ITensorType:
    """In which order the words of a tensor pass to (or from) a stream, as nearly the stream's as they can."""
    walk = read_walk(kind)
    words = canonical_itensor(layout.word, kind.dtype, _word_loops(walk, layout.word))
    if split_at_tiles(read_walk(words).loops, layout) is not None:
        return words
    extents = walk.extents
    grid: list[LoopOf] = [(n // t, t, d) for d, (n, t) in enumerate(zip(extents, layout.tile, strict=True))]
    inside: list[LoopOf] = [(t // w, w, d) for d, (t, w) in enumerate(zip(layout.tile, layout.word, strict=True))]
    return canonical_itensor(layout.word, kind.dtype, [*grid, *inside])


def split_at_tiles(loops: Sequence[LoopOf], layout: Layout) -> list[LoopOf] | None:
    """The loops so that each stays inside a tile or goes from tile to tile; None where one crosses unevenly."""
    pieces: list[LoopOf] = []
    for trip, step, dim in loops:
        if dim is None or step % layout.tile[dim] == 0 or layout.tile[dim] % (trip * step) == 0:
            pieces.append((trip, step, dim))
            continue
        tile, reach = layout.tile[dim], trip * step
        if reach % tile or tile % step:
            return None
        pieces += [(reach // tile, tile, dim), (tile // step, step, dim)]
    return pieces


def word_address(loops: Sequence[LoopOf], layout: Layout) -> AffineMap:
    """Which word each iteration of loops that are split at tiles moves."""
    rank = len(layout.word)
    terms: list[list[tuple[int, int]]] = [[] for _ in range(2 * rank)]
    for position, (_, step, dim) in enumerate(loops):
        if dim is not None:
            outside = step % layout.tile[dim] == 0
            unit = layout.tile[dim] if outside else layout.word[dim]
            terms[dim if outside else rank + dim].append((position, step // unit))
    return AffineMap(len(loops), 0, tuple(linear_sum(one) for one in terms))


def layout_of(attributes: ArrayAttr[DictionaryAttr] | None, index: int) -> LayoutAttr | None:
    """The layout of an argument or result of @main, from its attributes."""
    found = attributes.data[index].data.get("penstock.layout") if attributes is not None else None
    return found if isinstance(found, LayoutAttr) else None


def _choose_word(walk: SliceWalk, lanes: int, grains: Sequence[int]) -> list[int]:
    """At most `lanes` elements: the slice's part of a power of two, grown along the innermost loops if it is whole."""
    grain_of = grains or (0,) * len(walk.element)
    word = [gcd(size, 1 << size.bit_length(), grain) for size, grain in zip(walk.element, grain_of, strict=True)]
    while prod(word) > max(lanes, 1):
        widest = next(d for d, size in enumerate(word) if size > 1)
        word[widest] //= 2
    if tuple(word) != walk.element:
        return word
    for trip, step, dim in reversed(walk.loops):
        if dim is None or step != word[dim]:
            break
        room = lanes // prod(word)
        grain = grain_of[dim]
        factor = gcd(grain // word[dim] if grain else trip, 1 << (room.bit_length() - 1)) if room else 1
        word[dim] *= factor
        if factor != trip or grain:
            break
    return word


def _wide_word(walk: SliceWalk, lanes: int, grains: Sequence[int]) -> list[int]:
    """At most `lanes` elements: a part of the slice, or all of it and what grows along the innermost loops."""
    word = list(walk.element)
    if any(grains):
        return [1] * len(word)
    for dim, size in enumerate(walk.element):
        others = prod(word) // size
        word[dim] = max((n for n in range(1, size + 1) if size % n == 0 and n * others <= lanes), default=1)
    if tuple(word) != walk.element:
        return word
    for trip, step, dim in reversed(walk.loops):
        if dim is None or step != word[dim]:
            break
        factor = max(n for n in range(1, trip + 1) if trip % n == 0 and n * prod(word) <= lanes)
        word[dim] *= factor
        if factor != trip:
            break
    return word


def _word_loops(walk: SliceWalk, word: list[int] | tuple[int, ...]) -> list[LoopOf]:
    """The stream's loops down to the blocks that are whole words, then the words of a block."""
    for position in range(len(walk.loops), -1, -1):
        block = SliceWalk(walk.element, walk.loops[position:]).extents
        if all(size % w == 0 for size, w in zip(block, word, strict=True)):
            inside: list[LoopOf] = [(n // w, w, d) for d, (n, w) in enumerate(zip(block, word, strict=True)) if n > w]
            return [*walk.loops[:position], *inside]
    raise AssertionError("the word divides the whole tensor")
