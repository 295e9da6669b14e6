"""A kernel as the pieces that become nests: pipelines with the loops that stand around them.

Several of them in one loop take turns in one nest: its iterations are first those of the one, then of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.records import (
    Again,
    Called,
    CarriedVariable,
    DataflowRegion,
    Either,
    Pipeline,
    ReadKernel,
    Region,
    Straight,
)
from penstock.compiler.hls_in.storage import Counter
from penstock.compiler.hls_in.timed import flattened, merged

_HINT = "let the variable live in an array of one word, or leave the kernel to its cycles alone"


@dataclass(eq=False)
class PiecePart:
    """One pipeline in a nest. Its counters are loops of the nest, counted from `offset` on; it happens in the
    iterations of `window` alone: (first, count) of a loop, every one of loops that are not named."""

    item: Pipeline
    at: dict[Counter, tuple[Counter, int]]
    window: dict[Counter, tuple[int, int]] = field(default_factory=dict[Counter, tuple[int, int]])

    @property
    def graph(self) -> ValueGraph:
        return self.item.graph

    @property
    def acts(self) -> bool:
        """Whether anything of it is seen outside."""
        return any(
            n.op in ("store", "put", "take") or (n.op == "phi" and n.follow is not None)
            for n in self.graph.nodes
        )  # fmt: skip


@dataclass(eq=False)
class Piece:
    """What becomes one nest: pipelines that take turns, in their order."""

    name: str
    loops: list[Counter]
    parts: list[PiecePart]

    @property
    def acts(self) -> bool:
        return any(part.acts for part in self.parts)

    @property
    def nodes(self) -> Iterator[KernelValue]:
        return (node for part in self.parts for node in part.graph.nodes)

    @property
    def carried(self) -> Iterator[CarriedVariable]:
        return (one for part in self.parts for one in part.item.carried)


def tasks_of(kernel: ReadKernel) -> list[tuple[str, list[Piece]]]:
    """Each task's pieces in the order in which they run; a kernel without dataflow is one task."""
    body = list(_opened(kernel.body))
    flows = [item for item in body if isinstance(item, DataflowRegion)]
    others = [item for item in body if not isinstance(item, DataflowRegion)]
    if len(flows) == 1 and not any(piece.acts for piece in _pieces(others)):
        found = [(task.name, list(_pieces(task.body))) for task in merged(flattened(flows[0]))]
        return [(name, pieces) for name, pieces in found if any(piece.acts for piece in pieces)]
    return [(kernel.name, list(_pieces(body)))]


def _opened(items: Sequence[Region]) -> Iterator[Pipeline | Straight | Again | DataflowRegion]:
    for item in items:
        if isinstance(item, (Called, Either)):  # kernels with branches of loops are refused before
            yield from _opened(item.body)
        else:
            yield item


def _pieces(items: Sequence[Region]) -> Iterator[Piece]:
    for item in _opened(items):
        if isinstance(item, Pipeline):
            yield Piece(item.name, list(item.counters), [PiecePart(item, {c: (c, 0) for c in item.counters})])
        elif isinstance(item, Straight):
            shell = Pipeline("straight", [], item.graph, 1, False, item.where)
            yield Piece("straight", [], [PiecePart(shell, {})])
        elif isinstance(item, DataflowRegion):
            for task in item.tasks:
                yield from _pieces(task.body)
        else:
            yield from _again(item)


def _again(item: Again) -> Iterator[Piece]:
    """A loop around others: its counter is one more loop of what stands in it."""
    inner = [piece for piece in _pieces(item.body) if piece.acts or _is_used(piece)]
    if item.assigned and inner:
        raise PenstockError(
            code="no-nests", what=f"the loop {item.name} carries {item.assigned[0]!r} from one iteration to the next",
            where=item.where, limit="variables that a flattened nest carries", hint=_HINT,
        )  # fmt: skip
    if not inner:
        return
    whole = inner[0] if len(inner) == 1 else _in_turn(item.name, inner)
    for part in whole.parts:
        part.at[item.counter] = item.counter, 0
    yield Piece(whole.name, [item.counter, *whole.loops], whole.parts)


def _in_turn(name: str, pieces: Sequence[Piece]) -> Piece:
    """Pieces one after the other as one nest: its outermost loop goes through those of all of them."""
    rank = max(len(piece.loops) for piece in pieces)
    if rank == 0:
        return Piece(name, [], [part for piece in pieces for part in piece.parts])
    trips = [[*[1] * (rank - len(piece.loops)), *(c.trip for c in piece.loops)] for piece in pieces]
    loops = [Counter(f"{name}_turn", sum(own[0] for own in trips))]
    loops += [Counter(f"{name}_{d}", max(own[d] for own in trips)) for d in range(1, rank)]
    parts: list[PiecePart] = []
    before = 0
    for piece, own in zip(pieces, trips, strict=True):
        places = dict(zip(piece.loops, loops[rank - len(piece.loops) :], strict=True))
        for part in piece.parts:
            starts = {new: before if new is loops[0] else 0 for new in loops}
            window = {new: (starts[new], own[d]) for d, new in enumerate(loops)}
            for loop, (first, count) in part.window.items():
                new = places[loop]
                window[new] = starts[new] + first, count
            at = {c: (places[loop], starts[places[loop]] + offset) for c, (loop, offset) in part.at.items()}
            parts.append(PiecePart(part.item, at, window))
        before += own[0]
    return Piece(name, loops, parts)


def _is_used(piece: Piece) -> bool:
    """Whether it loads or computes what others may use."""
    plain = ("const", "counter", "input", "phi", "dead")
    return piece.name == "straight" and any(node.op not in plain and node.linear is None for node in piece.nodes)


def owners_of(tasks: list[tuple[str, list[Piece]]]) -> dict[KernelValue, PiecePart]:
    """The part in which each value is made."""
    return {node: part for _, pieces in tasks for piece in pieces for part in piece.parts for node in part.graph.nodes}
