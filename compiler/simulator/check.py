"""What must be true of a network before it can be simulated; everything that is not is named and refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NoReturn

from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator.network import (
    Channel,
    ChannelAccess,
    MemoryPort,
    Network,
    Phase,
    Repeat,
    Sequence,
    SimulatedProcess,
)

LONGEST = 1 << 44  # cycles or tokens; sums of them, in fractions of a cycle, still fit the integers of the engine


def _refuse(
    what: str, where: str, limit: str = "", hint: str = "correct the network", code: str = "bad-network"
) -> NoReturn:
    raise PenstockError(code=code, what=what, where=where, limit=limit, hint=hint)


def check_network(network: Network) -> None:
    """Numbers, names, ends and rates."""
    _check_names(network)
    for process in network.processes:
        if not process.phases:
            _refuse("the process has no phases", process.name)
        for number, phase in enumerate(process.phases):
            _check_phase(phase, f"{process.name}, phase {number}")
    for channel in network.channels:
        _check_numbers(channel.name, bits=channel.bits, words=channel.words, depth=channel.depth)
    _check_memories(network)
    known = {c.name: c for c in network.channels}
    ports = {p.name: p for p in network.ports}
    for process in network.processes:
        for phase in process.phases:
            for access in phase.accesses:
                _check_access(process, phase, access, known, ports)
    _check_ends(network)
    _check_rates(network)


def check_sequence(sequence: Sequence) -> None:
    """Numbers of loops outside networks; networks are checked when they are simulated."""
    if not sequence.steps or not all(sequence.steps):
        _refuse("a step without items" if sequence.steps else "no steps", sequence.name)
    if sequence.control.scalar_registers < 0:
        _refuse(f"{sequence.control.scalar_registers} registers", sequence.name, "at least 0")
    for number, step in enumerate(sequence.steps):
        for item in step:
            where = f"{sequence.name}, step {number}"
            if isinstance(item, Repeat):
                _check_numbers(where, repeat=item.times, iteration_latency=item.iteration_latency)
                for phase in item.body:
                    _check_phase(phase, where)
            elif isinstance(item, Phase):
                _check_phase(item, where)
                if item.accesses:
                    _refuse("a loop of a sequence touches a channel", where, hint="put it into a network")


def _check_names(network: Network) -> None:
    if not network.processes:
        _refuse("the network has no processes", network.name)
    for kind, names in (
        ("process", [p.name for p in network.processes]),
        ("channel or port", [c.name for c in chain(network.channels, network.ports)]),
        ("memory", [m.name for m in network.memories]),
    ):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            _refuse(f"{len(twice)} {kind} names stand for several", ", ".join(twice), hint="give each its own")


def _check_numbers(where: str, **numbers: int | None) -> None:
    for name, value in numbers.items():
        if value is not None and value < 1:
            _refuse(f"{name} is {value}", where, "it is at least 1")


def _check_phase(phase: Phase, where: str) -> None:
    _check_numbers(where, ii=phase.ii, depth=phase.depth)
    for trip in phase.trips:
        _check_numbers(where, trip=trip)
    if phase.length > LONGEST:
        _refuse(f"it runs for {phase.length} cycles", where, f"at most {LONGEST} are counted")


def _check_memories(network: Network) -> None:
    memories = {m.name: m for m in network.memories}
    for memory in network.memories:
        _check_numbers(memory.name, banks=memory.banks)
        if not memory.bits_per_cycle > 0 or memory.latency < 0:
            _refuse(f"{memory.bits_per_cycle} bits a cycle after {memory.latency} cycles", memory.name,
                    "bandwidth is above 0 and latency at least 0")  # fmt: skip
    for port in network.ports:
        _check_numbers(port.name, bits=port.bits, ahead=port.ahead)
        if port.memory not in memories:
            _refuse(f"there is no memory {port.memory!r}", port.name)
        if not 0 <= port.bank < memories[port.memory].banks:
            _refuse(f"bank {port.bank}", port.name, f"{port.memory} has {memories[port.memory].banks}")


def _check_access(
    process: SimulatedProcess,
    phase: Phase,
    access: ChannelAccess,
    known: Mapping[str, Channel],
    ports: Mapping[str, MemoryPort],
) -> None:
    where = f"{process.name}, access to {access.channel}"
    if access.channel not in known and access.channel not in ports:
        _refuse(f"there is no channel {access.channel!r}", where)
    _check_numbers(where, count=access.count)
    if access.tokens > LONGEST:
        _refuse(f"{access.tokens} tokens", where, f"at most {LONGEST} are counted")
    if access.hold < 0:
        _refuse(f"a block is given back {-access.hold} iterations before it is taken", where)
    if access.stage is not None and not 0 <= access.stage < phase.depth:
        _refuse(f"stage {access.stage}", where, f"the pipeline has stages 0 to {phase.depth - 1}")
    levels = access.pattern.levels
    last = sum((level.runs[-1][0] + level.runs[-1][1] - 1) * level.stride for level in levels if level.runs)
    if access.pattern.count and last + access.hold >= phase.iterations:
        _refuse(f"it happens in iteration {last + access.hold}", where, f"there are {phase.iterations}")
    if access.channel in ports:
        if access.count > ports[access.channel].ahead:
            _refuse(f"{access.count} words at once", where, f"the port buffers {ports[access.channel].ahead}")
    elif known[access.channel].kind == "pipo":
        _refuse("a pipo passes between processes, not inside a phase", where, hint="make it a block channel")


def _check_ends(network: Network) -> None:
    writers, readers = _ends(network, "write"), _ends(network, "read")
    names = {p.name for p in network.processes}
    for channel in network.channels:
        if channel.kind == "pipo":
            strangers = [n for n in (*channel.producers, *channel.consumers) if n not in names]
            if strangers:
                _refuse(f"there is no process {strangers[0]!r}", channel.name)
            if not channel.producers or not channel.consumers:
                _refuse("nobody writes it" if not channel.producers else "nobody reads it", channel.name)
            continue
        for verb, ends in (("writes", writers), ("reads", readers)):
            found = ends.get(channel.name, [])
            if len(found) != 1:
                _refuse(f"nobody {verb} it" if not found else f"{' and '.join(found)} {verb[:-1]} it", channel.name,
                        "a channel has one writer and one reader")  # fmt: skip


def _ends(network: Network, direction: str) -> dict[str, list[str]]:
    ends: dict[str, list[str]] = {}
    for process, access in _accesses(network):
        if access.direction == direction and process.name not in ends.setdefault(access.channel, []):
            ends[access.channel].append(process.name)
    return ends


def _check_rates(network: Network) -> None:
    """What is put in is what is got out, and no single access needs more slots than there are."""
    put, got = Counter[str](), Counter[str]()
    for _, access in _accesses(network):
        (put if access.direction == "write" else got)[access.channel] += access.tokens
    ends = network.ends()
    for channel in network.channels:
        if channel.kind != "pipo" and put[channel.name] != got[channel.name]:
            writer, reader = ends[channel.name]
            _refuse(
                f"{writer} puts {put[channel.name]} and {reader} gets {got[channel.name]}", channel.name,
                "a channel is empty at the end of a run", "correct the guards or the trip counts", "rates",
            )  # fmt: skip


def _accesses(network: Network) -> Iterable[tuple[SimulatedProcess, ChannelAccess]]:
    return ((process, a) for process in network.processes for phase in process.phases for a in phase.accesses)
