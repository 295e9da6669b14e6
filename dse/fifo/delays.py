"""The linear program of FIFO sizing, in start times: one variable a kernel, one row an edge.

StreamTensor writes one delay an edge and one row a path; with delay = start of target − start of source, every
path between two kernels has the same sum, and the rows of the edges imply those of the paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.dse.support.linear import LinearProgram


@dataclass(frozen=True)
class Delay:
    """The target starts `least` cycles after the source or later; each cycle costs `weight`."""

    source: str
    target: str
    least: int
    weight: float = 1.0


def start_times(
    kernels: Sequence[str], delays: Sequence[Delay], latest: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Start times that minimise the weighted sum of all delays. `latest` bounds the start of some kernels.

    The rows are differences of variables, so whole limits give whole start times.
    """
    program = LinearProgram("start times")
    bounds = latest or {}
    starts = {name: program.variable(0, bounds.get(name)) for name in kernels}
    for delay in delays:
        if delay.source == delay.target:
            continue
        program.row({starts[delay.target]: 1, starts[delay.source]: -1}, ">=", delay.least)
        program.add_cost(starts[delay.target], delay.weight)
        program.add_cost(starts[delay.source], -delay.weight)
    for variable in starts.values():
        program.add_cost(variable, 1e-6)  # of equal solutions the earliest
    found = program.solve()
    if found is None:
        raise PenstockError(
            code="no-start-times", what="no start times satisfy every edge", where=f"{len(kernels)} kernels",
            limit=f"{len(delays)} edges", hint="the kernels feed each other in a cycle, or end too early",
        )  # fmt: skip
    return {name: found.whole(variable) for name, variable in starts.items()}
