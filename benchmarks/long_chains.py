"""Chains of many tasks that run for very long: what the speed of simulation is judged by."""

from __future__ import annotations

from random import Random

from penstock.compiler.simulator import Channel, ChannelAccess, Network, Phase, SimulatedProcess
from penstock.profiling.networks.guards import Guard, pattern_of


def products_chain(tasks: int, cycles: int) -> Network:
    """Matrix products in a row: a row of 4 packed words is read in a burst, 256 results leave 64 at a time."""
    trips = (cycles // 1024, 4, 64, 4)

    def phase(task: int) -> Phase:
        read = ChannelAccess(f"c{task - 1}", "read", pattern_of(trips, (Guard(1, "==", 0), Guard(2, "==", 0))), 0)
        write = ChannelAccess(f"c{task}", "write", pattern_of(trips, (Guard(2, "==", 63), Guard(3, "==", 3))))
        return Phase(trips, 1, 9, (*([read] if task else []), *([write] if task + 1 < tasks else [])))

    return _chain("products", [phase(task) for task in range(tasks)])


def pass_through_chain(tasks: int, cycles: int) -> Network:
    """Every task reads and writes a token in every cycle: the most events that a cycle can have."""

    def phase(task: int) -> Phase:
        accesses = [ChannelAccess(f"c{task - 1}", "read", pattern_of((cycles,)))] if task else []
        accesses += [ChannelAccess(f"c{task}", "write", pattern_of((cycles,)))] if task + 1 < tasks else []
        return Phase((cycles,), 1, 5, tuple(accesses))

    return _chain("pass through", [phase(task) for task in range(tasks)])


def mixed_chain(tasks: int, cycles: int, words: int = 60) -> Network:
    """Each task at its own pace: IIs of 1 to 3, bursts of rows, rounds of its own; the slowest takes all the cycles."""
    random = Random("mixed")
    rows = cycles // (words * 6)

    def phase(task: int) -> Phase:
        ii, rounds = random.choice([(1, 1), (1, 2), (1, 6), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)])
        around = random.random() < 0.4
        trips, own = ((rows, rounds, words), 1) if around else ((rows, words, rounds), 2)
        read, write = pattern_of(trips, (Guard(own, "==", 0),)), pattern_of(trips, (Guard(own, "==", rounds - 1),))
        accesses = [ChannelAccess(f"c{task - 1}", "read", read)] if task else []
        accesses += [ChannelAccess(f"c{task}", "write", write)] if task + 1 < tasks else []
        return Phase(trips, ii, random.randint(2, 30), tuple(accesses))

    return _chain("mixed", [phase(task) for task in range(tasks)])


def _chain(name: str, phases: list[Phase]) -> Network:
    processes = tuple(SimulatedProcess(f"t{task}", (phase,)) for task, phase in enumerate(phases))
    return Network(name, processes, tuple(Channel(f"c{i}") for i in range(len(phases) - 1)))
