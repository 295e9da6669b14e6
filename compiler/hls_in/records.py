"""What an elaborated kernel is made of: pipelines, loops around them, modules and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from penstock.compiler.hls_in.graph import KernelValue, LinearForm, ValueGraph
from penstock.compiler.hls_in.storage import Counter, KernelArray, KernelStream


@dataclass(frozen=True)
class TurnSpan:
    """What a loop's variable has to go where loops around decide it, and by how much it goes on."""

    form: LinearForm
    by: int

    def turns(self, at: Mapping[Counter, int], most: int) -> int:
        """How often it goes round where those loops stand; of a counter that is not known, in the mean."""
        twice = 2 * self.form.base + sum(f * (2 * at[c] if c in at else c.trip - 1) for c, f in self.form.terms)
        return min(most, max(0, -(-twice // (2 * self.by))))


@dataclass(frozen=True)
class DataTurns:
    """Between which values a loop's variable goes, where these are no constants, and what a pragma says of it."""

    begin: KernelValue
    end: KernelValue
    sign: str
    """How the variable is compared with its end: "<", "<=", ">", ">=" or "!="."""
    step: int
    most: int
    """How often the loop goes round, as the pragma has it."""
    where: str
    variable: str
    counter: Counter | None = None
    """Of a loop that stays one."""
    lanes: int = 1
    """How many turns an iteration of that counter makes."""


@dataclass(frozen=True)
class CarriedVariable:
    """A variable from outside that a nest assigns: what it is before, in an iteration, and after."""

    before: KernelValue | None
    phi: KernelValue
    after: KernelValue


@dataclass(eq=False)
class Pipeline:
    """A pipelined nest, flattened: its counters from the outermost, and what one iteration does."""

    name: str
    counters: list[Counter]
    graph: ValueGraph
    target: int
    explicit: bool
    """A pragma asked for it."""
    where: str
    line: int = 0
    pipelined: bool = True
    sunk: set[KernelValue] = field(default_factory=set[KernelValue])
    """Conditions of statements that stand beside an inner loop."""
    carried: list[CarriedVariable] = field(default_factory=list[CarriedVariable])
    directive: str = ""
    """Where its pipelining is asked for."""
    flushes: bool = False
    """What has entered is asked to go on while the next iteration waits for input."""
    apart: dict[KernelArray, int] = field(default_factory=dict[KernelArray, int])
    """As `KernelArray.apart`, where a pragma in the nest says so."""
    spans: dict[Counter, TurnSpan] = field(default_factory=dict[Counter, TurnSpan])
    """Of loops that do not go round equally often each time."""
    returned: KernelValue | None = None
    """Of a function that is one pipeline."""

    @property
    def iterations(self) -> int:
        return prod(c.trip for c in self.counters)


@dataclass(eq=False)
class Straight:
    """Operations outside of any loop."""

    graph: ValueGraph
    where: str = ""


@dataclass(eq=False)
class Again:
    """A loop that is not pipelined, around others."""

    name: str
    counter: Counter
    body: list[Region]
    where: str
    dataflow: bool = False
    span: TurnSpan | None = None
    assigned: tuple[str, ...] = ()
    """Variables from outside that its iterations assign."""


@dataclass(eq=False)
class Called:
    """A function that stays a module of its own."""

    name: str
    body: list[Region]
    where: str


@dataclass(eq=False)
class Either:
    """Two branches with loops, of which data decide which one runs."""

    branches: tuple[list[Region], list[Region]]
    where: str
    name: str = "if"

    @property
    def body(self) -> list[Region]:
        return [item for branch in self.branches for item in branch]


@dataclass(eq=False)
class KernelTask:
    name: str
    body: list[Region]
    where: str


@dataclass(eq=False)
class DataflowRegion:
    """Tasks that run at the same time, in the order of the program."""

    name: str
    tasks: list[KernelTask]
    where: str


Region = Pipeline | Straight | Again | Called | DataflowRegion | Either


def graphs(items: list[Region]) -> Iterator[Pipeline | Straight]:
    """All straight code of some items."""
    for item in items:
        if isinstance(item, (Pipeline, Straight)):
            yield item
        elif isinstance(item, DataflowRegion):
            for task in item.tasks:
                yield from graphs(task.body)
        else:
            yield from graphs(item.body)


@dataclass
class ReadKernel:
    """A whole top function."""

    name: str
    body: list[Region]
    arrays: list[KernelArray]
    streams: list[KernelStream]
    scalars: list[str]
    s_axilite: bool
    axi: frozenset[str] = frozenset()
    """Arguments behind an m_axi interface."""
    interfaces: frozenset[str] = frozenset()
    """Arguments that an interface pragma names."""
    body_at: str = ""
    """Where the top's body begins."""
    arguments: list[tuple[str, KernelArray | KernelStream | KernelValue]] = field(
        default_factory=list[tuple[str, KernelArray | KernelStream | KernelValue]]
    )
    """All of them in the order of the declaration."""
    tables: dict[KernelArray, tuple[float | int, ...]] = field(
        default_factory=dict[KernelArray, tuple[float | int, ...]]
    )
    """Constant arrays with their words."""
    initial: dict[KernelArray, tuple[float | int, ...]] = field(
        default_factory=dict[KernelArray, tuple[float | int, ...]]
    )
    """What lies in memories before the run, where the source says so."""
    beyond: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What the source computes and the values here do not say: (place, what)."""
    turns: list[DataTurns] = field(default_factory=list[DataTurns])
    """Of loops whose ends are no constants."""
    assumed: list[KernelValue] = field(default_factory=list[KernelValue])
    """What `assert` says of numbers."""
    notes: list[str] = field(default_factory=list[str])
