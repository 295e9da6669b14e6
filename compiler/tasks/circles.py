"""Streams that lead back to where they come from: who stands in a circle, and whether each gets what it waits for.

Tokens pass a task's ports in the order of its text, and what it waits for does not depend on values. So a circle is run
with tokens that are only counted. Channels have no limits there: what a circle needs of depth is seen in simulation.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.compiler.tasks.network import Instances, TaskInstance, tokens
from penstock.compiler.tasks.passes import passes
from penstock.compiler.tasks.source import TaskError
from penstock.compiler.tasks.tree import For, Get, Put, Stmt, StreamEnd, TaskBody, When, walk
from penstock.compiler.writers_first import circles_in

_MOST_PASSES = 1 << 21
"""Tokens that are counted one by one, put and got, and rounds of the loops around them."""

_Circle = tuple[TaskInstance, ...]
_Order = list[tuple[StreamEnd, bool]]


def circular_ports(network: Instances) -> Mapping[TaskBody, frozenset[StreamEnd]]:
    """The ports of each body through which some instance of it stands in a circle."""
    found = dict[TaskBody, set[StreamEnd]]()
    for circle in _circles(network):
        inner = _inner_channels(circle)
        for one in circle:
            ports = {port for port, name in one.channels.items() if name in inner}
            found.setdefault(one.body, set()).update(ports)
    return {body: frozenset(ports) for body, ports in found.items()}


def check_circles(network: Instances) -> None:
    """Every task of a circle gets all the tokens that it waits for, or the tasks that never do are shown."""
    for circle in _circles(network):
        if shared := next((one for one in circle if one.shared_by), None):
            raise network.source.error(
                shared.task.node, f"{shared.name} stands in a circle: {_said(network, circle)}",
                "leave the tasks of a circle to themselves", "instances in a circle share no element",
            )  # fmt: skip
        _run(network, circle)


def _circles(network: Instances) -> list[_Circle]:
    writers, readers = dict[str, TaskInstance](), dict[str, TaskInstance]()
    sides = {body: _sides(body) for body in network.bodies}
    for one in network.instances:
        puts, gets = sides[one.body]
        writers |= {one.channels[port]: one for port in puts}
        readers |= {one.channels[port]: one for port in gets}
    edges = [(writer, readers[name]) for name, writer in writers.items() if name in readers]
    return circles_in(network.instances, edges)


def _sides(body: TaskBody) -> tuple[set[StreamEnd], set[StreamEnd]]:
    """The ports into which a body puts, and those from which it gets."""
    puts, gets = set[StreamEnd](), set[StreamEnd]()
    for one in walk(body.statements):
        if isinstance(one, Get | Put):
            (puts if isinstance(one, Put) else gets).add(one.port)
    return puts, gets


def _inner_channels(circle: _Circle) -> set[str]:
    """The channels between two tasks of a circle."""
    met = Counter(name for one in circle for name in one.channels.values())
    return {name for name, ends in met.items() if ends == 2}


def _run(network: Instances, circle: _Circle) -> None:
    """With tokens that are counted, as far as it goes."""
    inner = _inner_channels(circle)
    order = dict[TaskInstance, _Order]()
    orders, left = dict[tuple[TaskBody, frozenset[StreamEnd]], _Order | None](), _MOST_PASSES
    for one in circle:
        ports = frozenset(port for port, name in one.channels.items() if name in inner)
        left -= sum(count for (port, _), count in tokens(one.body).items() if port in ports)
        if left > 0 and (one.body, ports) not in orders:
            orders[one.body, ports] = passes(_only(one.body.statements, ports), _MOST_PASSES)
        found = orders[one.body, ports] if left > 0 else None
        if found is None:
            raise network.source.error(
                one.task.node, f"tokens pass {one.name} too often to see whether its circle ends: "
                f"{_said(network, circle)}",
                "let the circle make fewer rounds, or send tiles", f"at most {_MOST_PASSES:,} in a circle",
            )  # fmt: skip
        order[one] = found
    at, there = dict.fromkeys(circle, 0), dict.fromkeys(inner, 0)
    waiting, ready = dict[str, TaskInstance](), deque(circle)
    while ready:
        one = ready.popleft()
        steps, number = order[one], at[one]
        while number < len(steps):
            port, puts = steps[number]
            name = one.channels[port]
            if puts:
                there[name] += 1
                if name in waiting:
                    ready.append(waiting.pop(name))
            elif there[name]:
                there[name] -= 1
            else:
                waiting[name] = one
                break
            number += 1
        at[one] = number
    if waiting:
        raise _stopped(network, waiting, {one: order[one][at[one]][0] for one in waiting.values()})


def _only(statements: Sequence[Stmt], ports: frozenset[StreamEnd]) -> tuple[Stmt, ...]:
    """What has to do with some ports."""
    found: list[Stmt] = []
    for one in statements:
        match one:
            case For() | When():
                if inside := _only(one.body, ports):
                    found.append(replace(one, body=inside))
            case Get() | Put():
                if one.port in ports:
                    found.append(one)
            case _:
                pass
    return tuple(found)


def _stopped(
    network: Instances, waiting: Mapping[str, TaskInstance], stands: Mapping[TaskInstance, StreamEnd]
) -> TaskError:
    """Who waits for whom, from the first that does, until it comes round."""
    writers = {one.channels[port]: one for one in network.instances for port in _sides(one.body)[0]}
    one, path = next(iter(waiting.values())), list[TaskInstance]()
    while one not in path:
        path.append(one)
        one = writers[one.channels[stands[one]]]
    path = path[path.index(one) :]
    gets = {one: stands[one].sites[0].node for one in path}
    steps = [
        f"{one.name} waits for {one.channels[stands[one]]} ({network.source.line_of(gets[one])})" for one in path[:8]
    ]
    return network.source.error(
        gets[path[0]], f"tasks wait for each other for ever: {', '.join(steps)}",
        "put a token into the circle before the first get of one of them, or let one get later",
        "no depth of these streams helps",
    )  # fmt: skip


def _said(network: Instances, circle: _Circle) -> str:
    """The tasks of a circle, each with the line of a put that stays in it."""
    inner, steps = _inner_channels(circle), list[str]()
    for one in circle[:8]:
        port = next(p for p in _sides(one.body)[0] if one.channels[p] in inner)
        steps.append(f"{one.name} puts {one.channels[port]} ({network.source.line_of(port.sites[0].node)})")
    return ", ".join(steps)
