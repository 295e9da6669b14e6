"""Several instances of a task on one element: a loop over them, each with channels and parts of tensors of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.compiler.tasks.affine import Affine, Test
from penstock.compiler.tasks.mapping.rewriting import Renaming, same_shapes
from penstock.compiler.tasks.network import TaskInstance
from penstock.compiler.tasks.schedules import Bundle, refused
from penstock.compiler.tasks.tree import (
    Assign,
    Expr,
    For,
    Get,
    Memory,
    Put,
    Stmt,
    Store,
    StreamEnd,
    TaskBody,
    Var,
    When,
    expressions,
    memories_of,
    walk,
)


def bundled(step: Bundle, members: Sequence[TaskInstance]) -> TaskInstance:
    """One instance for several, which may differ in their channels and in where their tensors' parts begin."""
    first, last = members[0], members[-1]
    for other in members[1:]:
        if not same_shapes(first.body.statements, other.body.statements) or not _same_ports(first.body, other.body):
            raise refused(
                step,
                f"{first.name} and {other.name} do not run the same",
                "an element has one body",
                "bundle instances for which everything comes out the same",
            )  # fmt: skip
    made = _Merging(step, members)
    body = made.body()
    name = f"{first.name}_to_{'_'.join(map(str, last.place)) or last.name}"
    shared_by = tuple(name for one in members for name in one.members)
    return replace(first, name=name, body=body, channels=made.channels, shared_by=shared_by)


class _Merging:
    def __init__(self, step: Bundle, members: Sequence[TaskInstance]) -> None:
        self.step, self.members, self.first = step, members, members[0].body
        self.shot = max(self.first.trips, default=-1) + 1
        self.channels: dict[StreamEnd, str] = {}
        self.ports: dict[StreamEnd, list[StreamEnd]] = {}
        self._make_ports()

    def _make_ports(self) -> None:
        """For each port of the first member, one a member, by where it stands in the text."""
        order = [_ports_in_order(one.body) for one in self.members]
        for position, port in enumerate(order[0]):
            own: list[StreamEnd] = []
            for number, (member, ports) in enumerate(zip(self.members, order, strict=True)):
                one = ports[position]
                made = StreamEnd(f"{port.name}_{number}", one.stream, one.channel, one.sites)
                self.channels[made] = member.channels[one]
                own.append(made)
            self.ports[port] = own

    def body(self) -> TaskBody:
        first, count = self.first, len(self.members)
        trips, names = first.trips | {self.shot: count}, first.names | {self.shot: "shot"}
        inner = self._inside(first.statements, self.step.inside)
        arrays = dict(first.arrays)
        ports = {(one.stream, one.channel): one for own in self.ports.values() for one in own}
        return TaskBody(inner, arrays, ports, trips, names, first.decisions)

    def _inside(self, statements: Sequence[Stmt], depth: int) -> tuple[Stmt, ...]:
        """The loop over the members, so many loops further in."""
        if depth == 0:
            body = self._merged(statements)
            node = next((one.node for one in statements if isinstance(one, For)), self.members[0].task.node)
            return (For(self.shot, len(self.members), "shot", body, node),)
        loop = statements[0] if len(statements) == 1 else None
        if not isinstance(loop, For):
            name = self.members[0].task.name
            raise refused(
                self.step, f"{name} is no nest of {self.step.inside} loops with nothing between them",
                hint="bundle it with a smaller `inside`",
            )  # fmt: skip
        if carried := lasting(loop.body):
            raise refused(
                self.step, f"{carried} lives from round to round of the loop over {loop.name}",
                "an element that changes between instances keeps no values for each",
                "bundle it with a smaller `inside`",
            )  # fmt: skip
        return (replace(loop, body=self._inside(loop.body, depth - 1)),)

    def _merged(self, statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for one in Renaming(index=self._index).statements(statements):
            found += self._each(one)
        return tuple(found)

    def _each(self, one: Stmt) -> list[Stmt]:
        """A statement in which a port is every member's own in its turn."""
        match one:
            case For():
                return [replace(one, body=tuple(s for inner in one.body for s in self._each(inner)))]
            case When():
                return [When(one.tests, tuple(s for inner in one.body for s in self._each(inner)))]
            case Get() | Put():
                return [
                    When((Test(self.shot, "eq", number),), (replace(one, port=port),))
                    for number, port in enumerate(self.ports[one.port])
                ]
            case _:
                return [one]

    def _index(self, memory: Memory, at: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """Where a tensor's part begins, as a function of the turn."""
        if not memory.is_tensor:
            return at
        starts = [self._offset(one.body, memory.name) for one in self.members]
        steps = tuple(b - a for a, b in zip(starts[0], starts[1], strict=True))
        for number, start in enumerate(starts):
            if start != tuple(a + number * step for a, step in zip(starts[0], steps, strict=True)):
                raise refused(
                    self.step, f"the parts of {memory.name} do not lie in equal steps", str(starts[:4]),
                    "bundle instances along one axis of the grid",
                )  # fmt: skip
        return tuple(
            one.plus(Affine.counter(self.shot, step)) if step else one for one, step in zip(at, steps, strict=True)
        )

    def _offset(self, body: TaskBody, name: str) -> tuple[int, ...]:
        return next(one.offset for one in body.tensors if one.name == name)


def _same_ports(one: TaskBody, other: TaskBody) -> bool:
    """Whether two bodies meet ports of theirs alike, statement by statement."""
    met = [[s.port for s in walk(body.statements) if isinstance(s, Get | Put)] for body in (one, other)]
    pairs = set(zip(*met, strict=True))
    return len(pairs) == len(set(met[0])) == len(set(met[1]))


def _ports_in_order(body: TaskBody) -> list[StreamEnd]:
    return list(dict.fromkeys(one.port for one in walk(body.statements) if isinstance(one, Get | Put)))


def lasting(statements: Sequence[Stmt]) -> str:
    """A variable or array of which some statement may need what an earlier round left; "" if there is none."""
    known: set[str] = set()
    return _lasting(statements, known, sure=True)


def _lasting(statements: Sequence[Stmt], known: set[str], *, sure: bool) -> str:
    for one in statements:
        if isinstance(one, For | When):
            inner = set(known)
            if found := _lasting(one.body, inner, sure=sure):
                return found
            if isinstance(one, For):
                known |= inner
            continue
        for value in expressions(one):
            if (name := _kept(value)) and name not in known:
                return name
        for memory in memories_of(one):
            if not memory.is_tensor:
                return memory.name
        if isinstance(one, Get | Assign):
            known.add(one.var)
        assert not isinstance(one, Store) or one.memory.is_tensor
    return ""


def _kept(value: Expr) -> str:
    return value.name if isinstance(value, Var) else ""
