"""Scheduled networks of a task program: every body is lowered and scheduled once, its instances share the schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.design import Design
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.tasks import ProgramOp
from penstock.compiler.platforms import Platform
from penstock.compiler.program import Program
from penstock.compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_nest
from penstock.compiler.tasks.network import Instances
from penstock.compiler.tasks.opened import network_of_op
from penstock.compiler.tasks.tree import TaskBody
from penstock.compiler.transforms.lower_tasks import write_instances
from penstock.profiling.network import Task, TaskChannel, TaskNetwork, in_order


class TaskAssembler:
    """The network of one task program on one platform at one clock, at the depths that a design says."""

    def __init__(self, program: Program, platform: Platform, clock_mhz: float) -> None:
        self.program, self.platform = program, platform
        self.library: OperatorLibrary = load_library(platform.operators, platform.check_clock(clock_mhz))
        self.clock_mhz, self.instances = clock_mhz, _network(program.module)

    @property
    def pieces(self) -> int:
        """How many distinct bodies there are."""
        return len(self.instances.bodies)

    @property
    def declared_depths(self) -> dict[str, int]:
        """Of the streams that the program gives a depth."""
        return {name: one.depth for name, one in self.instances.channels.items() if one.depth}

    def network(self, design: Design) -> TaskNetwork:
        """The same network as lowering the whole program and scheduling it gives."""
        known = self.instances.channels
        return self._scheduled.with_depths(
            {name: design.fifo_depths.get(name, one.depth or design.default_depth) for name, one in known.items()}
        )

    @cached_property
    def _scheduled(self) -> TaskNetwork:
        schedules = dict(self._schedules())
        tasks = [
            Task(one.name, one.task.name, schedules[one.body], {p.name: name for p, name in one.channels.items()})
            for one in self.instances.instances
        ]
        channels = {
            name: TaskChannel(name, "stream", 2, one.kind.bits, lanes=one.kind.lanes)
            for name, one in self.instances.channels.items()
        }
        return TaskNetwork(in_order(tasks), channels)

    def _schedules(self) -> Iterator[tuple[TaskBody, tuple[NestSchedule, ...]]]:
        """Of every body, as the first of its instances has it."""
        firsts = {one.body: one for one in reversed(self.instances.instances)}
        module = write_instances(self.instances, tuple(firsts.values()), Design(self.platform.name, self.clock_mhz, {}))
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


def _network(module: ModuleOp) -> Instances:
    (op,) = (one for one in module.walk() if isinstance(one, ProgramOp))
    return network_of_op(op)
