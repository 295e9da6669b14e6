"""Bodies written by hand: which a search may choose, and that each keeps its contract before a figure counts on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from penstock.compiler.design import Design
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.injected import Injected
from penstock.compiler.platforms import Platform
from penstock.compiler.tasks.mapping.apply import elements, mapped
from penstock.compiler.tasks.network import Instances, TaskInstance
from penstock.compiler.tasks.schedules import Schedule, Use
from penstock.compiler.transforms.lower_tasks import body_language, write_instances
from penstock.profiling.injected.contract import BodyCase
from penstock.profiling.injected.in_cpp import check_in_cpp
from penstock.profiling.injected.in_verilator import check_in_verilator
from penstock.profiling.tool_runner import ToolRunner

_MOST_SETTINGS = 64
_kept: set[tuple[str, Injected, str]] = set()
"""Contracts that were seen to be kept by this process: by task text, body and what measured it."""


class InjectedBodies:
    """Those of one platform at one clock."""

    def __init__(self, platform: Platform, clock_mhz: float) -> None:
        self.platform, self.clock_mhz, self.language = platform, clock_mhz, body_language(platform)

    def offered(self, network: Instances, shared: Sequence[Schedule]) -> Iterator[Schedule]:
        """Every way to share elements with every choice of bodies, up to a bound."""
        program = network.program
        bodies: dict[str, list[str]] = {}
        for one in program.bodies:
            if one.body.language == self.language:
                bodies.setdefault(one.task, []).append(one.body.name)
        count = 0
        for schedule in shared:
            steps = schedule or program.schedule
            alone = _alone(network, steps)
            free = {task: names for task, names in bodies.items() if task in alone}
            choices = [[None, *(Use(task, name) for name in names)] for task, names in free.items()]
            for chosen in product(*choices):
                uses = tuple(one for one in chosen if one is not None)
                if count < _MOST_SETTINGS:
                    yield (*steps, *uses) if uses else schedule
                count += 1

    def check_all(self, network: Instances) -> None:
        """All bodies of the program that this platform can be built of."""
        for one in network.program.bodies:
            if one.body.language == self.language:
                self.check(mapped(network, (Use(one.task, one.body.name),)))

    def check(self, network: Instances) -> None:
        """Those that stand in a network of elements."""
        firsts = {one.body: one for one in reversed(network.instances) if one.injected is not None}
        for instance in firsts.values():
            self._check(network, instance)

    def _check(self, network: Instances, instance: TaskInstance) -> None:
        body = instance.injected
        assert body is not None
        design = Design(self.platform.name, self.clock_mhz, {})
        module = write_instances(network, (instance,), design)
        (task,) = (op for op in module.walk() if isinstance(op, stream.TaskOp))
        key = (str(task), body, self.platform.name)
        if key in _kept:
            return
        check = check_in_verilator if body.language == "systemverilog" else check_in_cpp
        check(BodyCase(network, instance, module, task, body, self.platform, self.clock_mhz), ToolRunner())
        _kept.add(key)


def _alone(network: Instances, steps: Schedule) -> set[str]:
    """Tasks of which every instance has an element of its own."""
    instances = elements(network, tuple(map(str, steps))).instances if steps else network.instances
    return {one.task.name for one in instances} - {one.task.name for one in instances if one.shared_by}
