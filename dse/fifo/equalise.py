"""Equalisation: FIFOs for tasks that are thought slower than they are, so that fewer tokens wait between them.

Under *normal* equalisation (0 %) every task goes at its own pace and no FIFO may cost time. Under the *conservative*
one (100 %) every task is thought to take as long as the slowest: what is written fast and read slowly then waits in
the writer, not in a FIFO. In between, every task is slowed by a part of what it is faster by. A run with FIFOs that
suffice for slower tasks ends no later than these would, since tasks that are sooner delay nobody, and for the same
reason it cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.compiler.simulator import Network, Phase, Rules, Simulator
from penstock.dse.fifo.depths import LEAST_DEPTH, bridges
from penstock.profiling.model import ChannelFigures
from penstock.profiling.network import Task, TaskNetwork

NORMAL, CONSERVATIVE = 0, 100
"""Percent of the way from every task's own pace to that of the slowest."""
_MARGIN = 8
"""One token more for so many, where depths come from modelled times: model and simulation differ by less."""


def slower_network(network: Network, rules: Rules, equalisation: int) -> Network:
    """The same network for the simulator, with slower pipelines."""
    plan = Simulator(network, rules).plan
    busy, slowest = dict(zip(plan.processes, plan.busy, strict=True)), max(plan.busy)

    def slower(phase: Phase, own: int) -> Phase:
        return replace(phase, ii=_slower(phase.ii, own, slowest, equalisation))

    processes = [replace(p, phases=tuple([slower(f, busy[p.name]) for f in p.phases])) for p in network.processes]
    return replace(network, processes=tuple(processes))


def slower_tasks(network: TaskNetwork, equalisation: int) -> TaskNetwork:
    """The same design with slower pipelines. Kernels that run one after the other have a slowest task each."""
    slowest: dict[int, int] = {}
    for task in network.tasks:
        slowest[task.group] = max(slowest.get(task.group, 0), task.busy)

    def slower(task: Task) -> Task:
        iis = [_slower(nest.ii, task.busy, slowest[task.group], equalisation) for nest in task.nests]
        return replace(task, nests=tuple([replace(n, ii=ii) for n, ii in zip(task.nests, iis, strict=True)]))

    return replace(network, tasks=tuple([slower(task) for task in network.tasks]))


def _slower(ii: int, busy: int, slowest: int, equalisation: int) -> int:
    """Cycles between two iterations of a task whose run is to take part of the time that the slowest one's does."""
    return max(ii, ii * (100 * busy + equalisation * (slowest - busy)) // (100 * max(1, busy)))


def equalised_depths(
    channels: Sequence[ChannelFigures], slower: Sequence[ChannelFigures], depths: Mapping[str, int]
) -> tuple[dict[str, int], bool]:
    """Depths by the modelled times of `slower` tasks, at most the safe `depths`; and whether they may stop for ever.

    They may where paths part and meet again, and are to be simulated then. What loads fill stays as it is: how far
    these run ahead is a decision of its own.
    """
    alone, times = bridges(channels), {one.name: one for one in slower}
    found, doubtful = dict(depths), False
    for channel in channels:
        if channel.kind != "stream" or channel.prefetch is not None:
            continue
        seen = times[channel.name]
        meets = channel.name not in alone
        held = seen.high_water + seen.high_water // _MARGIN + LEAST_DEPTH if meets else seen.least_depth
        found[channel.name] = min(depths[channel.name], max(LEAST_DEPTH, held))
        doubtful |= meets and found[channel.name] < depths[channel.name]
    return found, doubtful
