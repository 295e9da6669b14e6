"""Cycle-exact, data-free simulation of process networks."""

from penstock.compiler.simulator.network import (
    Channel,
    ChannelAccess,
    MemoryPort,
    Network,
    Phase,
    Repeat,
    Sequence,
    SimulatedMemory,
    SimulatedProcess,
    StartControl,
)
from penstock.compiler.simulator.results import ChannelResult, Deadlock, Hop, ProcessTimes, Simulation, Stall, Wait
from penstock.compiler.simulator.rules import OPEN_RTL, VITIS, Rules
from penstock.compiler.simulator.simulate import FreeRun, SimulationOutcome, Simulator, TokenTimes, simulate

__all__ = [
    "OPEN_RTL",
    "VITIS",
    "ChannelAccess",
    "Channel",
    "ChannelResult",
    "StartControl",
    "Deadlock",
    "FreeRun",
    "Hop",
    "SimulatedMemory",
    "MemoryPort",
    "Network",
    "SimulationOutcome",
    "Phase",
    "SimulatedProcess",
    "ProcessTimes",
    "Repeat",
    "Rules",
    "Sequence",
    "Simulation",
    "Simulator",
    "Stall",
    "TokenTimes",
    "Wait",
    "simulate",
]
