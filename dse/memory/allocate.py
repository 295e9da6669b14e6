"""The allocation as an integer program: one way for every memory, so that no resource of a die runs short.

Regions do not share anything, so each is solved alone. Memories with the same choices are interchangeable and
counted, not listed, which keeps the program small however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import RESOURCE_NAMES, Resources, total
from penstock.compiler.schedule import MemoryUse
from penstock.dse.memory.items import StoredItem
from penstock.dse.memory.result import Allocation
from penstock.dse.support.linear import LinearProgram, Solution

COMFORT = 0.5
"""The share of a limit up to which a resource counts as plentiful."""
CROWDING = 10.0
"""What a share beyond that costs in the fullest resource, where a share of any resource costs 1."""
_OF_MEMORIES = ("lut", "bram18", "uram")
_ROUNDING = 1e-9
_WIDE = 1e-3
"""A gap within which nothing is to be proven the least."""


def allocate(
    items: Sequence[StoredItem],
    limits: Mapping[str, Resources],
    logic: Mapping[str, Resources] | None = None,
    *,
    effort: float = 0.3,
    gap: float = 1e-6,
    explain: bool = True,
) -> Allocation:
    """Build everything with the least shares of all resources, and none of them crowded where another has room.

    With a `gap`, it may take that part more than the least. `logic` is what the design needs besides. Where it does
    not fit, the error says which resource is short by how much at least, if somebody is to read it.
    """
    besides = dict(logic or {})
    uses: dict[str, MemoryUse] = {}
    proven = True
    for item in items:
        if item.region not in limits:
            raise PenstockError(
                code="unknown-die", what=f"it is to stand on {item.region!r}", where=item.name,
                limit="known are " + ", ".join(limits), hint="allocate with the dies of the partition",
            )  # fmt: skip
        _check_alone(item, limits[item.region])
    for region, limit in limits.items():
        here = [item for item in items if item.region == region]
        model = _Region(region, here, limit, besides.get(region, Resources()))
        chosen, best = model.solve(effort, gap, explain=explain)
        uses |= chosen
        proven &= best
    return Allocation(uses, {i.name: i.region for i in items}, dict(limits), besides, proven)


@dataclass(frozen=True)
class _Class:
    """Memories with the same choices, and the variables that count how many are built in each way."""

    members: list[StoredItem]
    counts: list[int]


class _Region:
    def __init__(self, name: str, items: Sequence[StoredItem], limits: Resources, logic: Resources) -> None:
        self.name, self.limits, self.logic = name, limits.as_dict(), logic.as_dict()
        groups: dict[object, list[StoredItem]] = {}
        for item in items:
            groups.setdefault(tuple([(c.kind, *vars(c.area).values()) for c in item.choices]), []).append(item)
        self.groups = list(groups.values())

    def solve(self, effort: float, gap: float, *, explain: bool) -> tuple[dict[str, MemoryUse], bool]:
        if all(len(members[0].choices) == 1 for members in self.groups):  # by a design's record
            only = {member.name: member.choices[0] for members in self.groups for member in members}
            used = total([use.area for use in only.values()]).as_dict()
            if all(used[name] + self.logic[name] <= limit for name, limit in self.limits.items()):
                return only, True
        found = None if self._surely_short else self._solved(effort, gap)
        if found is None:
            raise self._shortage(effort) if explain else _short(self.name)
        classes, solution = found
        return _dealt(classes, solution), solution.proven

    @property
    def _surely_short(self) -> bool:
        """Whether what memories are built of is too little, some of it or all together, whatever each is built of."""
        limits = {name: limit for name, limit in self.limits.items() if limit and name in _OF_MEMORIES}
        left = [1 - self.logic[name] / limit for name, limit in limits.items()]
        shares = [
            (len(members), [[area[name] / limit for name, limit in limits.items()] for area in areas])
            for members in self.groups
            for areas in [[choice.area.as_dict() for choice in members[0].choices]]
        ]
        for places in (c for n in range(1, len(limits) + 1) for c in combinations(range(len(limits)), n)):
            least = sum(count * min(sum(way[place] for place in places) for way in ways) for count, ways in shares)
            if least > sum(left[place] for place in places) + _ROUNDING:
                return True
        return False

    def _solved(self, effort: float, gap: float) -> tuple[list[_Class], Solution] | None:
        program = LinearProgram(f"memory of {self.name}")
        classes = self._count(program)
        crowding = program.variable(0, None, cost=CROWDING)
        for resource, limit in self.limits.items():
            row = self._row(classes, resource)
            base = self.logic[resource]
            program.row(dict(row), "<=", limit - base)
            if limit:
                program.row({v: use / limit for v, use in row.items()} | {crowding: -1.0}, "<=", COMFORT - base / limit)
                for variable, use in row.items():
                    program.add_cost(variable, use / limit)
        found = program.solve(effort, gap, plain=gap >= _WIDE)
        return None if found is None else (classes, found)

    def _count(self, program: LinearProgram) -> list[_Class]:
        classes: list[_Class] = []
        for members in self.groups:
            counts = [program.variable(0, len(members), whole=True) for _ in members[0].choices]
            program.row(dict.fromkeys(counts, 1.0), "==", len(members))
            classes.append(_Class(members, counts))
        return classes

    def _row(self, classes: Sequence[_Class], resource: str) -> dict[int, float]:
        return {
            variable: float(use)
            for group in classes
            for variable, choice in zip(group.counts, group.members[0].choices, strict=True)
            if (use := getattr(choice.area, resource))
        }

    def _shortage(self, effort: float) -> PenstockError:
        """What is missing at least, found by letting every limit be exceeded at a price."""
        program = LinearProgram(f"shortage of {self.name}")
        classes = self._count(program)
        over = {name: program.variable(cost=1 / max(self.limits[name], 1)) for name in RESOURCE_NAMES}
        for resource, limit in self.limits.items():
            row = {**self._row(classes, resource), over[resource]: -1.0}
            program.row(row, "<=", limit - self.logic[resource])
        found = program.solve(effort)
        assert found is not None  # every limit may be exceeded
        built = total([use.area for use in _dealt(classes, found).values()]).as_dict()
        short = {n: built[n] + self.logic[n] - self.limits[n] for n in RESOURCE_NAMES}
        parts = [f"{n} by {by:,} (limit {self.limits[n]:,})" for n, by in short.items() if by > 0]
        members = [m for group in self.groups for m in group]
        largest = max(members, key=lambda m: m.usual.bits * m.usual.copies, default=None)
        return PenstockError(
            code="memory-short",
            what=f"short of {', '.join(parts)}, however its memories are built",
            where=self.name,
            limit=f"{len(members)} memories" + (f", the largest is {_size(largest)}" if largest else ""),
            hint="smaller tiles, shallower FIFOs, weights in external memory, or a larger platform",
        )


def _short(region: str) -> PenstockError:
    return PenstockError(
        code="memory-short", what="its memories do not fit, however they are built", where=region,
        hint="allocate it with an explanation to see what is short",
    )  # fmt: skip


def _dealt(classes: Sequence[_Class], found: Solution) -> dict[str, MemoryUse]:
    """Which member of a class is built which way does not matter, so they take turns in order."""
    uses: dict[str, MemoryUse] = {}
    for group in classes:
        ways = [n for n, variable in enumerate(group.counts) for _ in range(found.whole(variable))]
        for member, way in zip(group.members, ways, strict=True):
            uses[member.name] = member.choices[way]
    return uses


def _check_alone(item: StoredItem, limits: Resources) -> None:
    """A memory that does not even fit alone is named."""
    have = limits.as_dict()
    if any(all(use <= have[name] for name, use in c.area.items()) for c in item.choices):
        return
    ways: list[str] = []
    for choice in item.choices:
        over = [f"{use:,} {name} of {have[name]:,}" for name, use in choice.area.items() if use > have[name]]
        ways.append(f"{choice.kind}: {', '.join(over)}")
    raise PenstockError(
        code="memory-too-large", what=f"{_size(item)} is more than the die can hold", where=item.name,
        limit="; ".join(ways), hint="smaller tiles or a shallower FIFO, or keep it in external memory",
    )  # fmt: skip


def _size(item: StoredItem) -> str:
    use = item.usual
    shape, copies = use.shape, f" × {use.copies} copies" if use.copies > 1 else ""
    banks = f" × {shape.banks:,} banks" if shape.banks > 1 else ""
    return f"{item.name} of {shape.words:,} words × {shape.word_bits:,} bits{banks}{copies}"
