"""What a program must be as a whole: a writer and a reader a stream, puts as gets, a port a tensor, no endless wait."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from penstock.compiler.tasks.circles import check_circles
from penstock.compiler.tasks.network import Instances, TaskInstance, tokens
from penstock.compiler.tasks.tree import Store, StreamEnd, TaskBody, memories_of, walk


@dataclass(frozen=True)
class End:
    """One end of a channel: which instance, at which port, how many tokens a run."""

    instance: TaskInstance
    port: StreamEnd
    count: int

    @property
    def node(self) -> ast.AST:
        return self.port.sites[0].node


@dataclass
class ChannelEnds:
    """Both ends of every channel; more than one of a kind is a mistake."""

    puts: dict[str, list[End]] = field(default_factory=dict[str, list[End]])
    gets: dict[str, list[End]] = field(default_factory=dict[str, list[End]])


def check(network: Instances, *, will_be_mapped: bool = False) -> ChannelEnds:
    """The ends of every channel, or the first mistake. What will be mapped may meet a tensor from all of a grid."""
    ends = _ends(network)
    _check_ends(network, ends)
    _check_tensors(network, of_a_grid=will_be_mapped)
    check_circles(network)
    return ends


def _ends(network: Instances) -> ChannelEnds:
    ends = ChannelEnds()
    counted: dict[TaskBody, list[tuple[StreamEnd, bool, int]]] = {}
    for one in network.instances:
        if one.body not in counted:
            counted[one.body] = [(port, puts, count) for (port, puts), count in tokens(one.body).items()]
        for port, puts, count in counted[one.body]:
            (ends.puts if puts else ends.gets).setdefault(one.channels[port], []).append(End(one, port, count))
    return ends


def _check_ends(network: Instances, ends: ChannelEnds) -> None:
    source = network.source
    for side, verb, other in ((ends.puts, "put into", "reader"), (ends.gets, "got from", "writer")):
        for name, users in side.items():
            if len(users) > 1:
                first, second = users[0], users[1]
                raise source.error(
                    second.node, f"{name} is {verb} by two: {first.instance.name} and {second.instance.name}",
                    "a stream has one writer and one reader: declare an array of streams, one for each",
                    f"the first is at {source.line_of(first.node)}",
                )  # fmt: skip
            there = ends.gets if side is ends.puts else ends.puts
            if name not in there:
                array = network.channels[name].stream
                beside = next((there[one][0] for one in there if network.channels[one].stream is array), None)
                raise source.error(
                    users[0].node, f"{name} has no {other}: {users[0].instance.name} waits for ever"
                    if other == "writer" else f"{name} has no reader: what {users[0].instance.name} puts stays in it",
                    "put into it from a task" if other == "writer" else "get from it in a task, or do not put",
                    f"others of the array have one: {beside.instance.name}, at {source.line_of(beside.node)}"
                    if beside else "",
                )  # fmt: skip
    for name, (put,) in ends.puts.items():
        (get,) = ends.gets[name]
        if put.count != get.count:
            raise source.error(
                put.node,
                f"{put.instance.name} puts {put.count} tokens into {name}, {get.instance.name} gets {get.count}",
                "let the loops around the put and the get make as many rounds",
                f"the get is at {source.line_of(get.node)}",
            )  # fmt: skip
        if put.instance is get.instance:
            raise source.error(
                put.node,
                f"{put.instance.name} puts into {name} and gets from it itself",
                "keep it in a variable or an array",
            )


def _check_tensors(network: Instances, *, of_a_grid: bool) -> None:
    """A tensor is a memory with a port: one instance meets it, or those of one task that will share an element."""
    met: dict[str, TaskInstance] = {}
    for one in network.instances:
        for memory in one.body.tensors:
            other = met.setdefault(memory.name, one)
            if other is not one and not (of_a_grid and other.task is one.task):
                raise network.source.error(
                    one.task.node, f"the tensor {memory.name} is met by {other.name} and {one.name}",
                    "let one task load it and send it on through streams (or one gather and store it)"
                    + (f", or let them share an element: bundle({one.task.name})" if other.task is one.task else ""),
                    "a tensor has one port",
                )  # fmt: skip
    for body in network.bodies:
        stored = {s.memory for s in walk(body.statements) if isinstance(s, Store)}
        for statement in walk(body.statements):
            for memory in memories_of(statement):
                if (
                    memory.is_tensor
                    and memory in stored
                    and not (isinstance(statement, Store) and statement.memory is memory)
                ):
                    raise network.source.error(
                        network.program.tensors[memory.name].node, f"{memory.name} is loaded and stored",
                        "take the input and the output as two tensors",
                    )  # fmt: skip
    if not network.outputs:
        raise network.source.error(
            network.program.tasks[0].node, "the program stores nothing", "store a result: C[i, j] = ..."
        )
    for name, tensor in network.program.tensors.items():
        if name not in met:
            raise network.source.error(tensor.node, f"no task meets the tensor {name}", "load it, or leave it out")
