"""A task's loops as perfect nests: what stands before, between and after inner loops runs in their first or last round.

Loops that follow each other in one round of an outer loop become one loop: over a number of phases where they make
the same rounds, else one after the other in a single count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from penstock.compiler.tasks.affine import Affine, Test, Tests
from penstock.compiler.tasks.lowering.turns import in_turns, merged
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.tree import (
    Assign,
    Expr,
    Fetch,
    For,
    Get,
    Memory,
    Put,
    Simple,
    Stmt,
    Store,
    StreamEnd,
    TaskBody,
    Var,
    When,
    expressions,
    memories_of,
    parts_of,
    walk,
)


@dataclass(eq=False)
class FlatNest:
    """Loops, outermost first, and what happens in which of their rounds, in the order of the text."""

    loops: list[int]
    items: list[tuple[Tests, Simple]] = field(default_factory=list[tuple[Tests, Simple]])


@dataclass(eq=False)
class Flattened:
    """A body as nests that run one after the other. Trips and names are of all their loops."""

    nests: list[FlatNest]
    trips: dict[int, int]
    names: dict[int, str]


def flatten(source: ProgramText, body: TaskBody, circle: Collection[StreamEnd] = ()) -> Flattened:
    """The nests of a body, of which some ports may lie in a circle."""
    flattener = _Flattener(source, dict(body.trips), dict(body.names), circle)
    return Flattened(flattener.nests(body.statements), flattener.trips, flattener.names)


@dataclass
class _Piece:
    tests: Tests
    one: Simple | For


@dataclass
class _Flattener:
    source: ProgramText
    trips: dict[int, int]
    names: dict[int, str]
    circle: Collection[StreamEnd]

    def nests(self, statements: Sequence[Stmt]) -> list[FlatNest]:
        """One nest for each outermost loop; what stands beside it goes in."""
        groups: list[list[_Piece]] = [[]]
        for piece in self._pieces(statements, ()):
            if any(isinstance(p.one, For) for p in groups[-1]):
                groups.append([])
            groups[-1].append(piece)
        if len(groups) > 1 and not any(isinstance(p.one, For) for p in groups[-1]):
            last = groups.pop()
            groups[-1] += last
        return [self._alone(self._flat(part)) for group in groups for part in _fills_first(group) if part]

    def _alone(self, nest: FlatNest) -> FlatNest:
        """With at most one access to a channel a round."""
        loop = max(self.trips, default=-1) + 1
        items, count = in_turns(merged(nest.items, self.circle), loop, self.circle)
        if count == 1:
            return FlatNest(nest.loops, items)
        self.trips[loop], self.names[loop] = count, "turn"
        return FlatNest([*nest.loops, loop], items)

    def _pieces(self, statements: Sequence[Stmt], tests: Tests) -> list[_Piece]:
        found: list[_Piece] = []
        for one in statements:
            if isinstance(one, When):
                found += self._pieces(one.body, (*tests, *one.tests))
            else:
                found.append(_Piece(tests, one))
        return found

    def _flat(self, pieces: Sequence[_Piece]) -> FlatNest:
        inner = [(i, p.one, p.tests) for i, p in enumerate(pieces) if isinstance(p.one, For)]
        flats: list[FlatNest] = []
        for _, loop, _ in inner:
            flat = self._flat(self._pieces(loop.body, ()))
            flats.append(FlatNest([loop.loop, *flat.loops], flat.items))
        if len(flats) > 1:
            return self._several(pieces, inner, flats)
        loops = flats[0].loops if flats else list[int]()
        nest, seen = FlatNest(loops), False
        for piece in pieces:
            if isinstance(piece.one, For):
                nest.items += [(joined(piece.tests, tests), one) for tests, one in flats[0].items]
                seen = True
            else:
                nest.items.append((joined(piece.tests, self._ends(loops, last=seen)), piece.one))
        return nest

    def _ends(self, loops: Sequence[int], *, last: bool) -> Tests:
        """The first or the last of all rounds of some loops."""
        return tuple(Test(loop, "eq", self.trips[loop] - 1 if last else 0) for loop in loops)

    def _several(
        self, pieces: Sequence[_Piece], inner: Sequence[tuple[int, For, Tests]], flats: Sequence[FlatNest]
    ) -> FlatNest:
        trips = [[self.trips[loop] for loop in flat.loops] for flat in flats]
        if all(one == trips[0] for one in trips):
            return self._phases(pieces, flats)
        if all(len(one) == 1 for one in trips):
            return self._in_turn(pieces, inner, flats)
        raise self.source.error(
            inner[1][1].node, "loops of different rounds follow each other inside a loop",
            "let them make the same rounds, write the short one out with unroll(), or give each a task of its own",
            f"the first makes {' × '.join(map(str, trips[0]))} rounds, then {' × '.join(map(str, trips[1]))}",
        )  # fmt: skip

    def _phases(self, pieces: Sequence[_Piece], flats: Sequence[FlatNest]) -> FlatNest:
        phase = self._new(len(flats), "phase")
        loops = flats[0].loops
        nest, at, seen = FlatNest([phase, *loops]), 0, False
        for piece in pieces:
            here = Test(phase, "eq", at)
            if isinstance(piece.one, For):
                if seen:
                    at += 1
                    here = Test(phase, "eq", at)
                moves = {old: Affine.counter(new) for old, new in zip(flats[at].loops, loops, strict=True)}
                nest.items += [
                    (joined((*piece.tests, here), moved_tests(tests, moves)), moved(one, moves))
                    for tests, one in flats[at].items
                ]
                seen = True
            else:
                nest.items.append((joined((*piece.tests, here), self._ends(loops, last=seen)), piece.one))
        return nest

    def _in_turn(
        self, pieces: Sequence[_Piece], inner: Sequence[tuple[int, For, Tests]], flats: Sequence[FlatNest]
    ) -> FlatNest:
        sizes = [self.trips[flat.loops[0]] for flat in flats]
        count = self._new(sum(sizes), self.names[flats[0].loops[0]])
        nest, at, start = FlatNest([count]), -1, 0
        for piece in pieces:
            if not isinstance(piece.one, For):
                end = start + sizes[at] - 1 if at >= 0 else 0
                nest.items.append((joined(piece.tests, (Test(count, "eq", end),)), piece.one))
                continue
            start, at = (start + sizes[at] if at >= 0 else 0), at + 1
            size, last = sizes[at], start + sizes[at] - 1
            here = () if start == 0 else (Test(count, "ge", start),)
            here = here if last == sum(sizes) - 1 else (*here, Test(count, "le", last))
            moves = {flats[at].loops[0]: Affine.counter(count, 1, -start)}
            for tests, one in flats[at].items:
                if _addresses(one, flats[at].loops[0]):
                    raise self.source.error(
                        inner[at][1].node, f"a loop of {size} rounds beside loops of others indexes a memory",
                        "let the loops make the same rounds, write the short one out with unroll(), or give each a "
                        "task of its own",
                    )  # fmt: skip
                nest.items.append((joined((*piece.tests, *here), moved_tests(tests, moves)), moved(one, moves)))
        return nest

    def _new(self, trip: int, name: str) -> int:
        loop = max(self.trips, default=-1) + 1
        self.trips[loop], self.names[loop] = trip, name
        return loop


def _fills_first(group: list[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
    """First values, by a nest of their own, of memories that the group's loop loads and stores: in a round that stored
    all of a memory, the loop could not load from it again."""
    inside = [one for piece in group if isinstance(piece.one, For) for one in walk(piece.one.body)]
    stored = {one.memory for one in inside if isinstance(one, Store)}
    kept = stored & {value.memory for one in inside for value in expressions(one) if isinstance(value, Fetch)}
    touched: set[Memory] = set()
    first: list[_Piece] = []
    for piece in group:
        one = piece.one
        if isinstance(one, Store) and one.declared and one.memory in kept - touched and _is_known(one.value):
            first.append(piece)
        touched |= {memory for each in walk([one]) for memory in memories_of(each)}
    return first, [piece for piece in group if piece not in first]


def _is_known(value: Expr) -> bool:
    """Whether a value is made of numbers of the text alone."""
    return not any(isinstance(one, Var | Fetch) for one in parts_of(value))


def joined(first: Tests, second: Tests) -> Tests:
    """All of both, each once."""
    return tuple(dict.fromkeys((*first, *second)))


def moved_tests(tests: Tests, moves: dict[int, Affine]) -> Tests:
    """Tests of counters that another loop now counts, from another start."""
    found: list[Test] = []
    for test in tests:
        if test.loop not in moves:
            found.append(test)
            continue
        goal = moves[test.loop]
        ((loop, _),), start = goal.terms, -goal.const
        value = (test.value + start) % test.every if test.every else test.value + start
        found.append(Test(loop, test.comparison, value, test.every))
    return tuple(found)


def moved(one: Simple, moves: dict[int, Affine]) -> Simple:
    """A statement whose addresses go by other loops."""
    match one:
        case Assign(var=var, value=Fetch() as load):
            return Assign(var, replace(load, index=tuple(_moved(a, moves) for a in load.index)))
        case Store():
            return replace(one, index=tuple(_moved(a, moves) for a in one.index))
        case Assign() | Get() | Put():
            return one


def _moved(address: Affine, moves: dict[int, Affine]) -> Affine:
    found = Affine(address.const)
    for loop, factor in address.terms:
        found = found.plus(moves.get(loop, Affine.counter(loop)), factor)
    return found


def _addresses(one: Simple, loop: int) -> bool:
    index = (
        one.index
        if isinstance(one, Store)
        else one.value.index
        if isinstance(one, Assign) and isinstance(one.value, Fetch)
        else ()
    )
    return any(loop == term for a in index for term, _ in a.terms)
