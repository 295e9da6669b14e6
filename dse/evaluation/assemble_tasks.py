"""Scheduled networks of a task program: every body is lowered and scheduled once, its instances share the schedules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from penstock.compiler.design import Design
from penstock.compiler.dialects import nest, stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform
from penstock.compiler.program import Program
from penstock.compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_nest
from penstock.compiler.tasks.mapping.apply import elements, placed
from penstock.compiler.tasks.mapping.candidates import load_of, schedules
from penstock.compiler.tasks.network import Instances
from penstock.compiler.tasks.opened import network_of
from penstock.compiler.tasks.schedules import Schedule
from penstock.compiler.tasks.tree import TaskBody
from penstock.compiler.transforms.lower_tasks import nests_of, write_instances
from penstock.dse.evaluation.injected_bodies import InjectedBodies
from penstock.profiling.network import Task, TaskChannel, TaskNetwork, in_order

_KEPT = 16
"""Mappings whose schedules are remembered."""


class TaskAssembler:
    """The network of one task program on one platform at one clock, as mapped and at the depths that a design says."""

    def __init__(self, program: Program, platform: Platform, clock_mhz: float) -> None:
        self.program, self.platform = program, platform
        self.library: OperatorLibrary = load_library(platform.operators, platform.check_clock(clock_mhz))
        self.clock_mhz, self.instances = clock_mhz, network_of(program.module)
        self._scheduled = OrderedDict[tuple[str, ...], TaskNetwork]()
        self.bodies = InjectedBodies(platform, clock_mhz)

    @property
    def pieces(self) -> int:
        """How many distinct bodies there are."""
        return len(self.instances.bodies)

    def declared_depths(self, design: Design) -> dict[str, int]:
        """Of the streams that the program gives a depth, as far as the design's mapping leaves them."""
        return {name: one.depth for name, one in self._elements(design).channels.items() if one.depth}

    def network(self, design: Design) -> TaskNetwork:
        """The same network as lowering the whole program and scheduling it gives."""
        known = self._elements(design).channels
        return self._scheduled_as(design.mapping).with_depths(
            {name: design.fifo_depths.get(name, one.depth or design.default_depth) for name, one in known.items()}
        )

    @cached_property
    def mappings(self) -> tuple[Schedule, ...]:
        """How a search may build it: as it stands, or what fits the limits that the program names; with any bodies."""
        self.bodies.check_all(self.instances)
        return tuple(self.bodies.offered(self.instances, self._shared()))

    def _shared(self) -> tuple[Schedule, ...]:
        """Which instances share elements."""
        limits = self.instances.program.limits
        if limits is None:
            return ((),)
        found = schedules(self.instances, limits, self._builds)
        if not found:
            load = load_of(self.instances)
            raise PenstockError(
                code="mapping-too-large", what="no mapping of the program fits its limits", where=self.program.name,
                limit=f"fit({limits}); as it stands it has {load.elements} elements of up to {load.ports} ports",
                hint="let fit(...) have more elements, ports or memory, or map it by hand with bundle and chain",
            )  # fmt: skip
        return tuple(found)

    def _builds(self, network: Instances) -> bool:
        """Whether every body becomes pipelines, and the elements stand on the program's grid."""
        try:
            placed(network)
            for _ in nests_of(network, arrays=self.platform.has_array_arguments):
                pass
        except PenstockError:
            return False
        return True

    def _elements(self, design: Design) -> Instances:
        return elements(self.instances, design.mapping)

    def _scheduled_as(self, mapping: tuple[str, ...]) -> TaskNetwork:
        if mapping not in self._scheduled:
            self._scheduled[mapping] = self._schedule(elements(self.instances, mapping), mapping)
            if len(self._scheduled) > _KEPT:
                self._scheduled.popitem(last=False)
        return self._scheduled[mapping]

    def _schedule(self, network: Instances, mapping: tuple[str, ...]) -> TaskNetwork:
        self.bodies.check(network)
        schedules = dict(self._schedules(network, mapping))
        tasks = [
            Task(one.name, one.task.name, schedules[one.body], {p.name: name for p, name in one.channels.items()})
            for one in network.instances
        ]
        channels = {
            name: TaskChannel(name, "stream", 2, one.kind.bits, lanes=one.kind.lanes)
            for name, one in network.channels.items()
        }
        return TaskNetwork(in_order(tasks), channels)

    def _schedules(
        self, network: Instances, mapping: tuple[str, ...]
    ) -> Iterator[tuple[TaskBody, tuple[NestSchedule, ...]]]:
        """Of every body, as the first of its instances has it."""
        firsts = {one.body: one for one in reversed(network.instances)}
        design = Design(self.platform.name, self.clock_mhz, {}, mapping=mapping)
        module = write_instances(network, tuple(firsts.values()), design)
        top = next(op for op in module.ops if isinstance(op, stream.TopOp))
        tasks = {op.sym_name.data: op for op in top.body.block.ops if isinstance(op, stream.TaskOp)}
        for body, first in firsts.items():
            nests = [op for op in tasks[first.name].body.block.ops if isinstance(op, nest.NestOp)]
            ports = {name: port.name for port, name in first.channels.items()}
            yield body, tuple(_between_ports(schedule_nest(op, self.library), first.name, ports) for op in nests)


def _between_ports(schedule: NestSchedule, task: str, renamed: Mapping[str, str]) -> NestSchedule:
    """A schedule between the ports of a body, whose channels are each instance's own."""
    ports = tuple(replace(port, channel=renamed.get(port.channel, port.channel)) for port in schedule.ports)
    return replace(schedule, name=schedule.name.removeprefix(f"{task}."), ports=ports)
