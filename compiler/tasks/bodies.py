"""Bodies written by hand, held against the tasks that they stand for: ports, tokens, and what may have such a body."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.dialects.injected import Injected
from penstock.compiler.dialects.stream import TaskOp
from penstock.compiler.dialects.tasks import ProgramOp
from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.tasks.circles import circular_ports
from penstock.compiler.tasks.network import Instances, TaskInstance, tokens
from penstock.compiler.tasks.schedules import CODE, Use, refused
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.tree import StreamEnd, TaskBody
from penstock.compiler.tasks.values import TaskInjection

BROKEN = "broken-contract"


def pins_of(body: TaskBody) -> dict[str, StreamEnd]:
    """A pin is called after its stream; of several ends in one array of streams, with a number."""
    ports = list(body.ports.values())
    found: dict[str, StreamEnd] = {}
    for port in ports:
        alike = [one for one in ports if one.stream == port.stream]
        found[port.stream if len(alike) == 1 else f"{port.stream}_{alike.index(port)}"] = port
    return found


def check_bodies(network: Instances) -> None:
    """Every injection's tokens, and that its task can have it; the first mistake at its place."""
    circles = circular_ports(network) if network.program.bodies else dict[TaskBody, frozenset[StreamEnd]]()
    for one in network.program.bodies:
        instances = [instance for instance in network.instances if instance.task.name == one.task]
        if any(instance.body in circles for instance in instances):
            raise network.source.error(
                one.node, f"{one.task} stands in a circle of streams", "leave out its inject",
                "a body written by hand does not say when it takes tokens that come of its own",
            )  # fmt: skip
        _check(network, one, instances)


def _check(network: Instances, one: TaskInjection, instances: Sequence[TaskInstance]) -> None:
    source, body = network.source, instances[0].body
    if any(other.body is not body for other in instances):
        raise source.error(
            one.node, f"the instances of {one.task} are not all alike", "give what differs a task of its own",
            "one body written by hand stands for all of them",
        )  # fmt: skip
    if body.tensors:
        raise source.error(
            one.node, f"{one.task} meets the tensor {body.tensors[0].name}",
            "load it in a task of its own, and send it on", "a body written by hand meets streams only",
        )  # fmt: skip
    counts = tokens(body)
    ends = {(name, puts): counts[port, puts] for name, port in pins_of(body).items() for puts in (False, True)
            if (port, puts) in counts}  # fmt: skip
    for puts, side, said in ((False, "reads", one.body.reads), (True, "writes", one.body.writes)):
        known = {name: count for (name, writes), count in ends.items() if writes is puts}
        for name, count in said:
            if known.get(name) != count:
                what = f"{one.task} {'puts' if puts else 'gets'} {known[name]}" if name in known else "there is none"
                raise PenstockError(
                    code=BROKEN, where=f"{source.name}:{getattr(one.node, 'lineno', 0)}",
                    what=f"{one.body.name}: tokens: declared {count} of {name}, {what} in a run",
                    limit=f"{one.task} {side} " + (", ".join(f"{n}: {c}" for n, c in known.items()) or "nothing"),
                    hint=f'write {side}={{"{name}": {known[name]}}}' if name in known
                    else nearest(name, known, "name the task's streams"),
                )  # fmt: skip
        if missing := [name for name in known if name not in dict(said)]:
            raise source.error(
                one.node, f"the contract does not say how many tokens of {missing[0]} a run {side}",
                f'write {side}={{"{missing[0]}": {known[missing[0]]}}}',
            )  # fmt: skip
    if one.body.language == "systemverilog" and len(one.body.writes) != 1:
        raise source.error(
            one.node, f"{one.task} puts into {len(one.body.writes)} streams", "join them into one stream of tiles",
            "a body in SystemVerilog has one output",
        )  # fmt: skip


def has_foreign_bodies(module: ModuleOp) -> bool:
    """Whether a program brings text in another language, which tools would build and run."""
    for op in module.walk():
        if isinstance(op, ProgramOp) and any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "inject"
            for node in ast.walk(ProgramText(op.file.data, op.text).parse())
        ):
            return True
        if isinstance(op, TaskOp) and op.injected is not None:
            return True
    return False


def with_body(step: Use, instances: list[TaskInstance], network: Instances) -> list[TaskInstance]:
    """The instances, those of a task with the body of that name."""
    offered = {one.body.name: one.body for one in network.program.bodies if one.task == step.task}
    members = [one for one in instances if one.task.name == step.task]
    if not members or step.body not in offered:
        raise refused(
            step, f"{step.task} has no body {step.body!r}", f"it has {', '.join(offered) or 'none written by hand'}",
            nearest(step.body, offered, "name a body that the program injects into an element of its own"),
        )  # fmt: skip
    if any(one.shared_by for one in members):
        raise refused(
            step, "its instances share elements", "a body written by hand is one instance's", "leave out the bundle"
        )
    return [_built_of(one, offered[step.body]) if one in members else one for one in instances]


def _built_of(instance: TaskInstance, body: Injected) -> TaskInstance:
    if instance.injected is not None:
        raise PenstockError(
            code=CODE, what=f"{instance.task.name} has two bodies", where="mapping", hint="choose one of them"
        )
    pins = pins_of(instance.body)
    channels = tuple(instance.channels[pins[name]] for name, _ in (*body.reads, *body.writes))
    return replace(instance, injected=replace(body, channels=channels))
