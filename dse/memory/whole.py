"""The memories of a design on its chip as a whole, whatever die its tasks stand on."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.platforms import Resources, total
from penstock.compiler.schedule import OperatorLibrary
from penstock.dse.memory.allocate import allocate
from penstock.dse.memory.items import WHOLE_CHIP, decided, stored_items
from penstock.dse.memory.result import Allocation
from penstock.profiling.network import TaskNetwork


def allocate_whole(
    network: TaskNetwork,
    library: OperatorLibrary,
    limits: Resources,
    kinds: Mapping[str, str],
    gap: float = 1e-6,
    *,
    explain: bool = True,
) -> Allocation:
    """A kind for every memory and FIFO, so that the design keeps to the limits; those in `kinds` have theirs.

    With a `gap`, it may take that part more than the least. Where it does not fit, what is short is only worked out
    if somebody is to read it.
    """
    items = decided(stored_items(network, library), kinds)
    logic = total([nest.logic for task in network.tasks for nest in task.nests])
    return allocate(items, {WHOLE_CHIP: limits}, {WHOLE_CHIP: logic}, gap=gap, explain=explain)


def memory_luts(network: TaskNetwork) -> int:
    """What of the LUTs the tasks' own memories take: kept weights most of all."""
    return sum(task.area.lut - sum(nest.logic.lut for nest in task.nests) for task in network.tasks)
