"""FIFO depths: enough for no deadlock and no lost time, and no more than that.

`safe_depths` needs closed-form figures only and is generous; `size_fifos` simulates and is tight.
"""

from penstock.dse.fifo.back_to_back import depths_back_to_back, roomy_or_slower
from penstock.dse.fifo.cost import total_bits
from penstock.dse.fifo.depths import (
    LEAST_DEPTH,
    bridges,
    check_blocks,
    check_depths,
    prefetched,
    safe_depths,
    single_blocks,
)
from penstock.dse.fifo.effort import Effort, SizingProgress
from penstock.dse.fifo.equalise import CONSERVATIVE, NORMAL, equalised_depths, slower_tasks
from penstock.dse.fifo.measure import MeasuredDepths, MeasureDepths
from penstock.dse.fifo.meeting import depths_where_paths_meet, lean_depths
from penstock.dse.fifo.of_design import DesignSizing, runs_through, size_design
from penstock.dse.fifo.one_block import large_single_blocks, single_blocks_held
from penstock.dse.fifo.periodic import periodic_depths
from penstock.dse.fifo.shrinking import Shrunk, shrink
from penstock.dse.fifo.single_slots import two_slots
from penstock.dse.fifo.size import Sizing, size_fifos
from penstock.dse.fifo.waiting import seen_depths, waiting_depths

__all__ = [
    "CONSERVATIVE",
    "LEAST_DEPTH",
    "NORMAL",
    "DesignSizing",
    "Effort",
    "MeasureDepths",
    "MeasuredDepths",
    "Shrunk",
    "Sizing",
    "SizingProgress",
    "bridges",
    "check_blocks",
    "check_depths",
    "depths_back_to_back",
    "depths_where_paths_meet",
    "equalised_depths",
    "lean_depths",
    "periodic_depths",
    "roomy_or_slower",
    "runs_through",
    "large_single_blocks",
    "prefetched",
    "safe_depths",
    "seen_depths",
    "shrink",
    "single_blocks",
    "single_blocks_held",
    "size_design",
    "size_fifos",
    "slower_tasks",
    "total_bits",
    "two_slots",
    "waiting_depths",
]
