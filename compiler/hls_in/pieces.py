"""A kernel as the pieces that become nests: one pipeline each, with the loops that stand around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.records import (
    Again,
    Called,
    DataflowRegion,
    Pipeline,
    ReadKernel,
    Region,
    Straight,
)
from penstock.compiler.hls_in.storage import Counter
from penstock.compiler.hls_in.timed import flattened, merged

_HINT = "write one perfect loop nest a loop, or leave the kernel to its cycles alone"


@dataclass(eq=False)
class Piece:
    """What becomes one nest. `item` says of its conditions which counters they have."""

    name: str
    item: Pipeline
    loops: list[Counter]

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


def tasks_of(kernel: ReadKernel) -> list[tuple[str, list[Piece]]]:
    """Each task's pieces in the order in which they run; a kernel without dataflow is one task."""
    body = list(_opened(kernel.body))
    flows = [item for item in body if isinstance(item, DataflowRegion)]
    others = [item for item in body if not isinstance(item, DataflowRegion)]
    if len(flows) == 1 and not any(piece.acts for piece in _pieces(others, [])):
        found = [(task.name, list(_pieces(task.body, []))) for task in merged(flattened(flows[0]))]
        return [(name, pieces) for name, pieces in found if any(piece.acts for piece in pieces)]
    return [(kernel.name, list(_pieces(body, [])))]


def _opened(items: Sequence[Region]) -> Iterator[Pipeline | Straight | Again | DataflowRegion]:
    for item in items:
        if isinstance(item, Called):
            yield from _opened(item.body)
        else:
            yield item


def _pieces(items: Sequence[Region], around: list[Counter]) -> Iterator[Piece]:
    for item in _opened(items):
        if isinstance(item, Pipeline):
            yield Piece(item.name, item, [*around, *item.counters])
        elif isinstance(item, Straight):
            shell = Pipeline("straight", [], item.graph, 1, False, item.where)
            yield Piece("straight", shell, list(around))
        elif isinstance(item, DataflowRegion):
            for task in item.tasks:
                yield from _pieces(task.body, around)
        else:
            yield from _again(item, around)


def _again(item: Again, around: list[Counter]) -> Iterator[Piece]:
    inner = [p for p in _pieces(item.body, [*around, item.counter]) if p.acts or _is_used(p)]
    if len(inner) > 1:
        raise PenstockError(
            code="no-nests", what=f"the loop {item.name} runs {len(inner)} loops one after the other in each iteration",
            where=item.where, limit="one perfect loop nest, whose statements may stand beside inner loops",
            hint=_HINT,
        )  # fmt: skip
    if item.assigned and inner:
        raise PenstockError(
            code="no-nests", what=f"the loop {item.name} carries {item.assigned[0]!r} from one iteration to the next",
            where=item.where, limit="variables that a flattened nest carries", hint=_HINT,
        )  # fmt: skip
    yield from inner


def _is_used(piece: Piece) -> bool:
    """Whether it loads what others may use."""
    return any(n.op == "load" for n in piece.graph.nodes) and piece.name == "straight"


def owners_of(tasks: list[tuple[str, list[Piece]]]) -> dict[KernelValue, Piece]:
    """The piece in which each value is made."""
    return {node: piece for _, pieces in tasks for piece in pieces for node in piece.graph.nodes}
