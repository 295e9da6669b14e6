"""Equal tasks share a module: what they do is the same, and only their channels are each one's own."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from xdsl.ir import IRNode, SSAValue

from penstock.compiler.backend.rtl.task_sv import TaskModule, met_channels
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.injected import Injected, injected_of
from penstock.compiler.dialects.stream import StreamType


@dataclass
class EqualTasks:
    """Modules that were written, by what their tasks look like from afar."""

    firsts: dict[Hashable, list[TaskModule]] = field(default_factory=dict[Hashable, "list[TaskModule]"])

    def module_of(self, task: stream.TaskOp) -> TaskModule | None:
        """The module of a task that equals one which has a module already."""
        look = _look(task)
        for first in self.firsts.get(look, ()) if look is not None else ():
            if _are_equal(first.task, task):
                return _as_another(first, task)
        return None

    def add(self, module: TaskModule) -> None:
        if (look := _look(module.task)) is not None:
            self.firsts.setdefault(look, []).append(module)


def _look(task: stream.TaskOp) -> Hashable | None:
    """What equal tasks have in common. None for one that shares nothing.

    That is a task which meets more than streams, since how a memory's port is cut depends on all who meet it.
    """
    streams = [(v.type, writes) for v, writes in met_channels(task) if isinstance(v.type, StreamType)]
    operations = list(task.body.block.ops)
    if len(streams) != len(met_channels(task)) or any(isinstance(op, stream.RomOp) for op in operations):
        return None
    kinds = tuple((kind.token, writes) for kind, writes in streams)
    return task.layer.data, task.group.data, kinds, tuple(op.name for op in operations)


def _are_equal(one: stream.TaskOp, other: stream.TaskOp) -> bool:
    """Whether their bodies are the same, with the channels of one for those of the other."""
    if _written_by_hand(one) != _written_by_hand(other):
        return False
    channels = zip(_channels(one), _channels(other), strict=True)
    context: dict[IRNode | SSAValue, IRNode | SSAValue] = {one.body.block: other.body.block, **dict(channels)}
    pairs = zip(one.body.block.ops, other.body.block.ops, strict=True)
    return all(a.is_structurally_equivalent(b, context) for a, b in pairs)


def _written_by_hand(task: stream.TaskOp) -> Injected | None:
    """The body without the channels, which are each task's own."""
    body = injected_of(task.injected)
    return None if body is None else replace(body, channels=())


def _as_another(first: TaskModule, task: stream.TaskOp) -> TaskModule:
    goal = dict(zip(_channels(first.task), _channels(task), strict=True))
    return replace(
        first, task=task, text="", data={}, tables={},
        hands_on=tuple(goal[value] for value in first.hands_on),
        pin_names={value: first.pin_names[other] for other, value in goal.items()},
    )  # fmt: skip


def _channels(task: stream.TaskOp) -> list[SSAValue]:
    return list(dict.fromkeys(value for value, _ in met_channels(task)))
