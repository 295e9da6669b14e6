"""A scheduled design as a network for the simulator: latency and FIFO behaviour with evidence `simulated`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.compiler.platforms import Platform
from penstock.compiler.schedule import NestSchedule, PortSchedule, load_library
from penstock.compiler.simulator import (
    OPEN_RTL,
    VITIS,
    ChannelAccess,
    MemoryPort,
    Phase,
    Rules,
    Sequence,
    SimulatedMemory,
    SimulatedProcess,
    Simulation,
    Simulator,
    simulate,
)
from penstock.compiler.simulator import Channel as SimulatedChannel
from penstock.compiler.simulator import Network as SimulatedNetwork
from penstock.profiling.bandwidth import memory_ports
from penstock.profiling.network import Task, TaskNetwork
from penstock.profiling.sampling import handovers


def rules_of(platform: Platform, clock_mhz: float) -> Rules:
    """How pipelines behave on the platform's tool chain."""
    return OPEN_RTL if load_library(platform.operators, platform.check_clock(clock_mhz)).flushing else VITIS


def simulate_design(
    network: TaskNetwork,
    platform: Platform,
    clock_mhz: float,
    *,
    depths: Mapping[str, int | None] | None = None,
    frames: int = 1,
    bounded: bool = True,
) -> Simulation:
    """Simulate a scheduled design under its platform's rules."""
    rules = rules_of(platform, clock_mhz)
    converted = simulated_network(network, platform, clock_mhz)
    return simulate(converted, rules, depths=depths, frames=frames, bounded=bounded)


@dataclass(frozen=True)
class SimulationOutlook:
    """What is known of a simulation before it is made: `least` cycles that it will find, `events` that it goes through.

    Every task takes its own time even if it never waits; kernels that run one after the other add theirs up.
    """

    least: int
    events: int


def outlook_of(network: TaskNetwork, platform: Platform, clock_mhz: float) -> SimulationOutlook:
    """Of one run of a scheduled design under its platform's rules."""
    rules, parts = rules_of(platform, clock_mhz), simulated_kernels(network, platform, clock_mhz)
    plans = [Simulator(part, rules).plan for part in parts]
    return SimulationOutlook(sum(max(plan.busy) for plan in plans), sum(plan.accesses for plan in plans))


def simulated_network(network: TaskNetwork, platform: Platform, clock_mhz: float) -> SimulatedNetwork | Sequence:
    """The simulator's network of a design; kernels that run one after the other become a sequence."""
    parts = simulated_kernels(network, platform, clock_mhz)
    return parts[0] if len(parts) == 1 else Sequence("design", tuple((part,) for part in parts))


def simulated_kernels(network: TaskNetwork, platform: Platform, clock_mhz: float) -> list[SimulatedNetwork]:
    """The simulator's network of each kernel, in the order in which they run."""
    return [_kernel(part, f"kernel {i}", platform, clock_mhz) for i, part in enumerate(network.groups)]


def _kernel(network: TaskNetwork, name: str, platform: Platform, clock_mhz: float) -> SimulatedNetwork:
    """What a task loads or stores in words of one width goes through one port of its own; banks are those of the
    fastest memory."""
    fastest = platform.fastest_memory
    memories: tuple[SimulatedMemory, ...] = ()
    ports: dict[str, MemoryPort] = {}
    if fastest is not None:
        memories = (SimulatedMemory(fastest.name, fastest.ports, fastest.port_gb_s * 8e3 / clock_mhz),)
        uses = memory_ports(network, platform)
        for task in (task for task in network.tasks if task.name in uses):
            for bits in _widths(task):
                key = _memory_port(task, bits)
                ports[key] = MemoryPort(key, fastest.name, uses[task.name].bank, bits)
    processes = tuple(
        SimulatedProcess(task.name, tuple(_phase(task, schedule, bool(memories)) for schedule in task.nests))
        for task in network.tasks
    )
    channels = tuple(
        SimulatedChannel(c.name, "block" if c.kind == "block" else "fifo", c.depth, c.bits, c.words)
        for c in network.channels.values()
    )
    return SimulatedNetwork(name, processes, channels, tuple(ports.values()), memories)


def _phase(task: Task, schedule: NestSchedule, with_memory: bool) -> Phase:
    """Blocks pass once a block however many accesses a nest has to them; at the stage of the last of these."""
    accesses: list[ChannelAccess] = []
    blocks: dict[tuple[str, str], PortSchedule] = {}
    for port in schedule.ports:
        if port.kind == "stream":
            slots = schedule.in_slots(port.pattern)
            accesses.append(ChannelAccess(task.channel(port.channel), port.direction, slots, port.stage))
        elif port.kind == "external" and with_memory:
            slots = schedule.in_slots(port.pattern)
            accesses.append(ChannelAccess(_memory_port(task, port.bits), port.direction, slots, port.stage))
        elif port.kind == "block":
            key = (port.channel, port.direction)
            if key not in blocks or blocks[key].stage < port.stage:
                blocks[key] = port
    for port in blocks.values():
        hold = schedule.block_iterations - 1
        accesses.append(
            ChannelAccess(task.channel(port.channel), port.direction, handovers(port, schedule), port.stage, hold=hold)
        )
    return Phase(_trips(schedule), schedule.ii, schedule.depth, tuple(accesses), schedule.name, schedule.flushes)


def _widths(task: Task) -> list[int]:
    """Of the words that a task loads and stores."""
    return sorted({port.bits for nest in task.nests for port in nest.ports if port.kind == "external"})


def _memory_port(task: Task, bits: int) -> str:
    """A task of a program may meet tensors of several types, each a port of its own."""
    return f"{task.name}.memory" + (f".{bits}" if len(_widths(task)) > 1 else "")


def _trips(schedule: NestSchedule) -> tuple[int, ...]:
    """Trip counts of the loops, from the strides of a port that knows them all; one of slots, if some are idle."""
    if schedule.idle:
        return (schedule.slots,)
    strides = [level.stride for port in schedule.ports[:1] for level in port.pattern.levels]
    whole = [schedule.iterations, *strides]
    return tuple(whole[i] // stride for i, stride in enumerate(strides)) or (schedule.iterations,)
