"""The constants of the cycle-exact semantics: one set of global rules per way of building pipelines.

They hold for every design that a tool or generator makes; none of them belongs to one design.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """See README.md for what each constant means; all are cycles or stages."""

    name: str
    flushing: bool
    """A pipeline that waits for input lets its later stages go on; otherwise it stops whole."""
    read_stage: int
    """Stage of accesses that read, where the network does not say (never beyond the last)."""
    first_phase_delay: int
    """From the start of a process of several phases to the start of its first one."""
    phase_gap: int
    """From the end of a phase to the start of the next."""
    start_gap: int
    """From the end of what a process waits for (a whole block, or its own run before) to its start."""
    sequence_entry: int
    """Once for a sequence of more than one step."""
    step_gap: int
    """From the end of a step to the start of the next."""
    sequence_exit: int
    """Added to a sequence's sum: its last step's final cycle is also the sequence's."""
    repeat_overhead: int
    """What a report's iteration latency has too much, for every phase inside a loop that is not pipelined."""
    register_base: int
    """Writing the start command over a register bus."""
    register_cycles: int
    """Writing one scalar argument over a register bus."""
    list_entry: int
    """Once for a list of calls: asking for its first word, which says how many there are."""
    call_gap: int
    """From the last word of a call's addresses to its start, and from its end to the first word of the next."""


VITIS = Rules(
    name="vitis",
    flushing=False,
    read_stage=1,
    first_phase_delay=1,
    phase_gap=2,
    start_gap=1,
    sequence_entry=1,
    step_gap=2,
    sequence_exit=-1,
    repeat_overhead=2,
    register_base=13,
    register_cycles=12,
    list_entry=1,
    call_gap=4,
)
"""Vitis HLS' default pipelines, as co-simulation shows them."""

OPEN_RTL = Rules(
    name="open-rtl",
    flushing=True,
    read_stage=0,
    first_phase_delay=0,
    phase_gap=0,
    start_gap=0,
    sequence_entry=0,
    step_gap=0,
    sequence_exit=0,
    repeat_overhead=0,
    register_base=0,
    register_cycles=0,
    list_entry=2,
    call_gap=0,
)
"""The open route's own SystemVerilog: valid bits, bubbles for missing input, one clock enable for a full output.

Simulated RTL has no cycle between phases, frames or kernels: what follows begins in the cycle after a last stage.
"""
