"""Rows in blocks: kernels that meet the same weights with many rows pass these a block at a time.

A product that walks its columns outside takes in all rows for each. With rows innermost, whatever it makes at the end
of a sum lies column by column, and a norm behind it, which wants rows, has to wait until a whole tensor is there, twice
over. In blocks of rows that stand inside the slow dims the same product makes, in its last pass, block after block, and
takes in, in its first one, what a norm makes block after block. Its weights pass once for each block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.transforms.pad_dims import Dims
from penstock.dse.lanes.alignment import divisors

NOT_BLOCKED = 0
BLOCKS_OF_ROWS = (NOT_BLOCKED, 8, 16, 32)
"""Rows in a block; 0 leaves them as the walks have them."""


def row_dims(graph: Graph, dims: Dims, large: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The dim of each kernel along which it meets the same weights again, and of the others that walk these rows.

    `large` has the dims along which the large tensor of a kernel lies. None where two dims meet it again.
    """
    found: dict[str, int] = {}
    for op in graph.operations:
        meeting = [d for d in _parallel(op) if d not in large.get(op.layer, _parallel(op))]
        if len(meeting) == 1:
            found[op.layer] = meeting[0]
    classes = {dims.of_loop(op, found[op.layer]) for op in graph.operations if op.layer in found}
    for op in graph.operations:
        walking = [d for d in _parallel(op) if dims.of_loop(op, d) in classes]
        if op.layer not in large and walking:
            found[op.layer] = walking[0]
    return found


def block_of(rows: int, part: int, lanes: int) -> int:
    """How many steps of its lanes a block of at most so many rows has, which divides a part of all of them."""
    return max(n for n in divisors(part // lanes) if n == 1 or n * lanes <= rows)


def _parallel(op: TensorOp) -> list[int]:
    return [d for d, trip in enumerate(op.trips) if trip > 1 and d not in op.reductions]
