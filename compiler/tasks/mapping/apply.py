"""A schedule applied to a program's instances: what is left are the elements, checked as a program is."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from penstock.compiler.errors import PenstockError
from penstock.compiler.tasks.bodies import with_body
from penstock.compiler.tasks.check import check
from penstock.compiler.tasks.mapping.bundle import bundled
from penstock.compiler.tasks.mapping.chain import chained
from penstock.compiler.tasks.mapping.place import GridPlacement, place
from penstock.compiler.tasks.mapping.shared_channels import with_shared_channels
from penstock.compiler.tasks.network import Instances, TaskInstance
from penstock.compiler.tasks.schedules import CODE, Bundle, Chain, MappingStep, Schedule, Use, parse, refused
from penstock.compiler.tasks.source import TaskError
from penstock.compiler.tasks.tree import Get, walk

MOST_SHARING = 256
"""Instances of one element: each has a place of its own in what chooses its channels."""


@lru_cache(maxsize=32)
def elements(network: Instances, mapping: tuple[str, ...]) -> Instances:
    """The program on the elements that a design's mapping leaves; without one, as its own schedule says."""
    schedule = parse(mapping) or network.program.schedule
    found = mapped(network, schedule) if schedule else network
    placed(found)
    return found


@lru_cache(maxsize=32)
def placed(network: Instances) -> GridPlacement | None:
    """Where elements stand; None of a program that names no grid."""
    grid = network.program.places
    return None if grid is None else place(network, grid)


def mapped(network: Instances, schedule: Schedule, *, unfinished: bool = False) -> Instances:
    """The program with its instances on fewer elements; a step that cannot be taken is named.

    Of an `unfinished` schedule, instances of a grid may still be to share the element that meets their tensor.
    """
    instances = list(network.instances)
    for step in schedule:
        match step:
            case Bundle():
                instances = _bundle(step, instances)
            case Chain():
                instances = _chain(step, instances)
            case Use():
                instances = with_body(step, instances, network)
    if all(isinstance(step, Use) for step in schedule):
        return replace(network, instances=tuple(instances))
    instances, stands_for = with_shared_channels(instances)
    made = replace(network, instances=tuple(instances), stands_for=stands_for)
    try:
        check(made, will_be_mapped=unfinished)
    except TaskError as error:
        raise PenstockError(
            code=CODE, what=f"with {'; '.join(map(str, schedule))}: {error.what}", where=error.where,
            limit=error.limit, hint="choose other instances to share an element",
        ) from None  # fmt: skip
    return made


def _of(step: MappingStep, name: str, instances: list[TaskInstance]) -> list[TaskInstance]:
    found = [one for one in instances if one.task.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(one.task.name for one in instances))
        raise refused(step, f"there is no task {name!r}", f"tasks are {names}", "name one of these")
    return found


def _bundle(step: Bundle, instances: list[TaskInstance]) -> list[TaskInstance]:
    members = _of(step, step.task, instances)
    count = step.count or len(members)
    if count < 2 or len(members) % count:
        raise refused(
            step, f"{len(members)} instances are no groups of {count}", "a count of at least 2 that divides them",
            f"choose one of {', '.join(str(n) for n in range(2, len(members) + 1) if len(members) % n == 0) or 'none'}",
        )  # fmt: skip
    if count > MOST_SHARING:
        raise refused(step, f"{count} instances on one element", f"at most {MOST_SHARING}", "give bundle a count")
    groups = [members[at : at + count] for at in range(0, len(members), count)]
    made = {group[0]: bundled(step, group) for group in groups}
    return [made.get(one, one) for one in instances if one in made or one not in members]


def _chain(step: Chain, instances: list[TaskInstance]) -> list[TaskInstance]:
    first, second = _of(step, step.first, instances), _of(step, step.second, instances)
    if step.first == step.second:
        raise refused(step, "a task is not chained to itself", hint="bundle its instances")
    gets = {
        name: one for one in second
        for port, name in one.channels.items()
        if any(isinstance(s, Get) and s.port is port for s in walk(one.body.statements))
    }  # fmt: skip
    goal: dict[TaskInstance, TaskInstance] = {}
    for one in first:
        found = list(dict.fromkeys(gets[name] for name in one.channels.values() if name in gets))
        if len(found) != 1:
            raise refused(
                step, f"{one.name} sends to {len(found)} instances of {step.second}", "each to one of its own",
                "bundle first, so that each has one to send to",
            )  # fmt: skip
        goal[one] = found[0]
    if len(set(goal.values())) != len(second):
        raise refused(step, f"{len(first)} instances of {step.first} do not pair with {len(second)} of {step.second}")
    made = {one: chained(step, one, other) for one, other in goal.items()}
    return [made.get(one, one) for one in instances if one not in set(goal.values())]
