"""Loops split, put into another order and cut into tiles; the banks that tiles need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import lcm, prod

from penstock.profiling.kernels.explore.accesses import Accesses
from penstock.profiling.kernels.explore.legality import (
    LoopDirection,
    Span,
    directions,
    may_permute,
    may_split,
    may_tile,
)
from penstock.profiling.kernels.explore.loop_tree import SourceLoop, SourceNode, SourceStatement, written

_MOST_LOOPS = 5
_MOST_WITHIN = 64
"""Turns of inner loops that are done at once for the loops around them."""
Banks = dict[tuple[str, int], int]
"""Into how many banks a dimension (from 0) of an array is cut."""


@dataclass(frozen=True)
class NestShape:
    """How a perfect nest is built: the order of its loops, and of each (as in the source) how many turns at once."""

    order: tuple[int, ...]
    tiles: tuple[int, ...]

    @property
    def lanes(self) -> int:
        return prod(self.tiles)


@dataclass(frozen=True)
class Nest:
    """Loops with nothing between them, and the statements of the innermost."""

    path: tuple[int, ...]
    """Which node of which body, from the outermost."""
    loops: tuple[SourceLoop, ...]

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(loop.span for loop in self.loops)

    @property
    def body(self) -> Accesses:
        return self.loops[-1].accesses

    @property
    def iterations(self) -> int:
        return prod(span.trip for span in self.spans)

    @property
    def plain(self) -> NestShape:
        return NestShape(tuple(range(len(self.loops))), (1,) * len(self.loops))

    @property
    def within(self) -> tuple[Span, ...]:
        """Loops in its statements, all turns of which are done at once."""
        return tuple(span for one in self.loops[-1].body if isinstance(one, SourceStatement) for span in one.within)

    def dependences(self) -> set[LoopDirection]:
        return directions(self.body, self.spans)

    def orders(self) -> list[tuple[int, ...]]:
        """Orders that change no value, the source's first."""
        if self.body.opaque or len(self.loops) > _MOST_LOOPS:
            return [self.plain.order]
        found = self.dependences()
        return [order for order in permutations(range(len(self.loops))) if may_permute(found, order)]

    def allows(self, shape: NestShape, found: set[LoopDirection]) -> bool:
        if self.body.opaque:
            return shape == self.plain
        return may_permute(found, shape.order) and may_tile(found, shape.order, shape.tiles)


def split(nodes: Sequence[SourceNode], around: tuple[Span, ...] = ()) -> tuple[SourceNode, ...]:
    """Each loop as several one after the other, wherever that changes no value; inner loops first.

    Statements beside each other are parted too: two sums of which each wants another loop innermost.
    """
    made: list[SourceNode] = []
    for node in nodes:
        if isinstance(node, SourceStatement):
            made.append(node)
            continue
        loops = (*around, node.span)
        body = split(node.body, loops)
        parts: list[list[SourceNode]] = [[]]
        for at, one in enumerate(body):
            if parts[-1] and _may_cut(body[:at], body[at:], (node.span,)):
                parts.append([])
            parts[-1].append(one)
        made += [replace(node, body=tuple(part), label=node.label if len(parts) == 1 else "") for part in parts]
    return tuple(made)


def fused(nodes: Sequence[SourceNode]) -> tuple[SourceNode, ...]:
    """Neighbouring nests of the same loops as one, wherever that changes no value: one pipeline in place of two."""
    made: list[SourceNode] = []
    for node in nodes:
        one = node if isinstance(node, SourceStatement) else replace(node, body=fused(node.body))
        before = made[-1] if made else None
        both = _one_nest(before, one) if isinstance(before, SourceLoop) and isinstance(one, SourceLoop) else None
        if both is not None:
            made[-1] = both
        else:
            made.append(one)
    return tuple(made)


def gathered(nodes: Sequence[SourceNode]) -> tuple[SourceNode, ...]:
    """Inner loops of few turns that stand beside other statements as one statement with these, all turns at once: a
    sum in a variable, say. The loops around them are a nest then, which may be put into any order and cut."""
    made: list[SourceNode] = []
    for node in nodes:
        if isinstance(node, SourceStatement):
            made.append(node)
            continue
        inner = [one for one in node.body if isinstance(one, SourceLoop)]
        if inner and len(node.body) > 1 and sum(_turns(one) for one in inner) <= _MOST_WITHIN:
            body = tuple(_as_statement(one) if isinstance(one, SourceLoop) else one for one in node.body)
        else:
            body = gathered(node.body)
        made.append(replace(node, body=body))
    return tuple(made)


def _turns(loop: SourceLoop) -> int:
    """How often the statements of a loop are done; more than any bound where some of them cannot be told."""
    if any(isinstance(one, SourceStatement) and (one.loops or one.accesses.opaque) for one in loop.body):
        return _MOST_WITHIN + 1
    return loop.span.trip * max(1, sum(_turns(one) for one in loop.body if isinstance(one, SourceLoop)))


def _as_statement(loop: SourceLoop) -> SourceStatement:
    text = "\n".join(written((loop,), 0))
    return SourceStatement(text, loop.accesses, loop.line, within=tuple(_spans(loop)))


def _spans(loop: SourceLoop) -> Iterator[Span]:
    yield loop.span
    for one in loop.body:
        if isinstance(one, SourceLoop):
            yield from _spans(one)


def _one_nest(first: SourceLoop, second: SourceLoop) -> SourceLoop | None:
    a, b = nests_of((first,)), nests_of((second,))
    if len(a) != 1 or len(b) != 1 or len(a[0].path) != 1 or len(b[0].path) != 1 or a[0].spans != b[0].spans:
        return None
    if a[0].body.opaque or b[0].body.opaque or not may_split(a[0].body, b[0].body, a[0].spans):
        return None
    node: tuple[SourceNode, ...] = (*a[0].loops[-1].body, *b[0].loops[-1].body)
    for loop in reversed(a[0].loops):
        node = (replace(loop, body=node),)
    found = node[0]
    assert isinstance(found, SourceLoop)
    return found


def _may_cut(before: Sequence[SourceNode], after: Sequence[SourceNode], loops: tuple[Span, ...]) -> bool:
    """Whether a loop may be split between its statements. Inner loops' variables may have any value here."""
    return may_split(_together(before), _together(after), loops)


def _together(nodes: Sequence[SourceNode]) -> Accesses:
    found = Accesses(())
    for node in nodes:
        found = found.plus(node.accesses)
    return found


def nests_of(nodes: Sequence[SourceNode], path: tuple[int, ...] = ()) -> list[Nest]:
    """The perfect nests, in the order of the program."""
    found: list[Nest] = []
    for at, node in enumerate(nodes):
        if isinstance(node, SourceStatement):
            continue
        chain = [node]
        while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], SourceLoop):
            chain.append(chain[-1].body[0])
        if any(isinstance(one, SourceLoop) for one in chain[-1].body):
            inner = (*path, at, *(0 for _ in chain[1:]))
            found += nests_of(chain[-1].body, inner)
        else:
            found.append(Nest((*path, at), tuple(chain)))
    return found


def shaped(
    nodes: Sequence[SourceNode], shapes: Mapping[tuple[int, ...], NestShape], names: frozenset[str]
) -> tuple[SourceNode, ...]:
    """The program with some of its nests in another shape."""
    made = list(nodes)
    for nest in nests_of(nodes):
        shape = shapes.get(nest.path)
        if shape is not None:
            made = list(_put(made, nest.path, built(nest, shape, names)))
    return tuple(made)


def _put(nodes: Sequence[SourceNode], path: tuple[int, ...], new: SourceNode) -> tuple[SourceNode, ...]:
    at, rest = path[0], path[1:]
    made = list(nodes)
    old = made[at]
    if not rest:
        made[at] = new
    else:
        assert isinstance(old, SourceLoop)
        made[at] = replace(old, body=_put(old.body, rest, new))
    return tuple(made)


def built(nest: Nest, shape: NestShape, names: frozenset[str]) -> SourceNode:
    """A nest in a shape: loops over tiles, the innermost a pipeline, and in it the points of a tile, unrolled."""
    body: tuple[SourceNode, ...] = nest.loops[-1].body
    declared: list[SourceNode] = []
    outer: list[SourceLoop] = []
    points: list[SourceLoop] = []
    for loop, tile in zip(nest.loops, shape.tiles, strict=True):
        span = loop.span
        if tile == 1:
            outer.append(replace(loop, body=()))
            continue
        over, point = fresh(f"{span.variable}_tile", names), fresh(f"{span.variable}_in", names)
        outer.append(_counting(over, span.trip // tile, loop))
        points.append(_counting(point, tile, loop))
        turn = f"{tile} * {over} + {point}" if span.trip > tile else point
        value = turn if span.step == 1 else f"{span.step} * ({turn})"
        value = value if span.first == 0 else f"{span.first} + {value}"
        declared.append(SourceStatement(f"const int {span.variable} = {value};", Accesses(()), loop.line))
    node: tuple[SourceNode, ...] = (*declared, *body)
    for point in reversed(points):
        node = (replace(point, body=node),)
    pipelined = not any(isinstance(one, SourceStatement) and one.loops for one in body)
    kept = [outer[i] for i in shape.order if outer[i].span.trip > 1 or shape.tiles[i] == 1]  # who declares its variable
    for depth, loop in enumerate(reversed(kept)):
        node = (replace(loop, body=node, pragmas=("pipeline II=1",) if depth == 0 and pipelined else ()),)
    found = node[0]
    assert isinstance(found, SourceLoop)
    return found


def _counting(variable: str, trip: int, loop: SourceLoop) -> SourceLoop:
    head = f"int {variable} = 0; {variable} < {trip}; {variable}++"
    return SourceLoop(Span(variable, 0, 1, trip), head, (), loop.line)


def fresh(name: str, names: frozenset[str]) -> str:
    """A name that the source does not use."""
    found, number = name, 2
    while found in names:
        found, number = f"{name}{number}", number + 1
    return found


def banks_of(nest: Nest, shape: NestShape) -> Banks:
    """Banks with which the points of a tile meet no two words of one, as far as each dimension by itself can say."""
    tiles = {span.variable: (tile, span.step) for span, tile in zip(nest.spans, shape.tiles, strict=True)}
    tiles |= {span.variable: (span.trip, span.step) for span in nest.within}
    offsets: dict[tuple[str, int], set[int]] = {}
    found: Banks = {}
    for access in nest.body.touched:
        for dim, index in enumerate(access.index):
            if index is None:
                continue
            offsets.setdefault((access.name, dim), set()).add(index.base)
            need = 1
            for name, factor in index.factors.items():
                tile, step = tiles.get(name, (1, 1))
                if tile > 1:
                    need *= tile * abs(factor * step)
            found[access.name, dim] = lcm(found.get((access.name, dim), 1), need)
    for key, bases in offsets.items():
        if len(bases) > 2 and found.get(key, 1) == 1:
            found[key] = 2
    return {key: need for key, need in found.items() if need > 1}


def joined(all_banks: Sequence[Banks]) -> Banks:
    """Banks that are enough for each of several nests: what one array connects gets factors that fit both."""
    found: Banks = {}
    for banks in all_banks:
        for key, need in banks.items():
            found[key] = lcm(found.get(key, 1), need)
    return found
