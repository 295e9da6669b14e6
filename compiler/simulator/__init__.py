"""Cycle-exact, data-free simulation of process networks."""

from penstock.compiler.simulator.guards import Term, pattern_of
from penstock.compiler.simulator.network import (
    Access,
    Channel,
    Control,
    Memory,
    MemoryPort,
    Network,
    Phase,
    Process,
    Repeat,
    Sequence,
)
from penstock.compiler.simulator.results import ChannelTimes, Deadlock, Hop, ProcessTimes, Simulation, Stall, Wait
from penstock.compiler.simulator.rules import OPEN_RTL, RULES, VITIS, Rules
from penstock.compiler.simulator.simulate import Outcome, Simulator, simulate

__all__ = [
    "OPEN_RTL",
    "RULES",
    "VITIS",
    "Access",
    "Channel",
    "ChannelTimes",
    "Control",
    "Deadlock",
    "Hop",
    "Memory",
    "MemoryPort",
    "Network",
    "Outcome",
    "Phase",
    "Process",
    "ProcessTimes",
    "Repeat",
    "Rules",
    "Sequence",
    "Simulation",
    "Simulator",
    "Stall",
    "Term",
    "Wait",
    "pattern_of",
    "simulate",
]
