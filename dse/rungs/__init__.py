"""Rungs of evidence: what each way of measuring says of a design's time, and which of the best designs it prefers.

The model has seen every design of a search already; a stronger rung looks at the best of them and ranks these anew.
Figures of two rungs are never compared.
"""

from penstock.dse.rungs.inputs import FRAMES, simulate_inputs, steady_interval
from penstock.dse.rungs.kinds import RUNGS, modelled, open_rtl, simulated, usable
from penstock.dse.rungs.ranking import (
    BEST,
    WIDER,
    Ranked,
    in_order,
    measure_all,
    nearly_as_good,
    rank,
    rank_beaten,
    shortlist,
)
from penstock.dse.rungs.rung import Bench, Measured, Rung

__all__ = [
    "BEST",
    "FRAMES",
    "RUNGS",
    "WIDER",
    "Bench",
    "Measured",
    "Ranked",
    "Rung",
    "in_order",
    "measure_all",
    "nearly_as_good",
    "modelled",
    "open_rtl",
    "rank",
    "rank_beaten",
    "shortlist",
    "simulate_inputs",
    "simulated",
    "steady_interval",
    "usable",
]
