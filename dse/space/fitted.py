"""Every kernel's own walk, fitted to what a design may use: the parameters of `allocation=fitted`, and what they mean.

Nothing here is an amount: a setting means the fastest design with these walks that keeps to the limits, or to a share
of them. How much of that is left to operators once everything around them is there, only the model knows; whoever
evaluates a setting asks again with less (`dse/evaluation/fitting.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.pairs import PAIRINGS
from penstock.compiler.design import KernelDesign
from penstock.compiler.platforms import Resources
from penstock.compiler.schedule import OperatorLibrary, implementations
from penstock.dse.lanes.binding import ADDERS, MULTIPLIERS, PARAMETERS, bindable, operand_bits
from penstock.dse.lanes.costs import KnownLanes
from penstock.dse.lanes.factors import useful_factors
from penstock.dse.lanes.joined import beside_joined
from penstock.dse.lanes.neighbours import flowing
from penstock.dse.lanes.pacing import MOST_PADDING, NO_PADDING, Fitter, Sizes
from penstock.dse.lanes.rows import BLOCKS_OF_ROWS, NOT_BLOCKED
from penstock.dse.lanes.stores import Stores
from penstock.dse.lanes.walks import FEW, SOME, KernelWalk

FITTED = "fitted"
SHARE = "limit_share"
SHARES = (1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 55, 70, 85, 100)
"""Percent of the limits on DSPs and LUTs: smaller designs for whoever wants them, the first for the fastest."""
IN_TURN = "in_turn"
"""Whether lanes are shared out for the least sum of all kernels' times, not for a common pace."""
ROWS = "row_block"
"""In blocks of how many rows kernels meet weights that come from outside."""
WALK, FAVOUR, BUILT, BURST, COMPACT, PADDED = "walk", "favour", "built", "burst", "compact", "pad"
FAVOURS = (50, 70, 100, 140, 200)
_FAVOURED = 140
BURSTS = ("as-paced", "2x", "4x", "8x", "whole")
_EVEN = 4
_MIXED = "mixed-"
CAPPED = {None: "", 1: "-fine", **{n: f"-by{n}" for n in (*FEW[1:], SOME)}}
"""How a walk says that its outermost dim has few lanes."""
IN_PARTS = "-parts"
"""How it says that lanes along what is joined divide each part of it."""
_PLAIN = {(FAVOUR, 100), (BURST, BURSTS[0]), (COMPACT, False), (PADDED, 0), (IN_TURN, False), (ROWS, NOT_BLOCKED)}
MOST_FITTED = 64
"""Kernels up to which walks are decided one by one; of more, each has its plainest."""
_AT_HAND = 64
"""Fitted designs: one setting is fitted within a dozen allowances, and mostly twice."""

FittedSetting = Mapping[str, int | str | bool]
FittedValues = tuple[int | str | bool, ...]


@dataclass(frozen=True)
class Allowance:
    """What the operators of a design may take, all together and those of one kernel.

    With `changed`, mixed operators of the same lanes take no more LUTs than these, as far as there are DSPs. Where
    `spilled`, products of a few kernels are built of LUTs if DSPs are short by little.
    """

    whole: Resources
    one: Resources | None = None
    changed: int | None = None
    spilled: bool = False


@dataclass(frozen=True)
class Fitting:
    """The fitted designs of one graph on one platform; what was fitted once is not fitted again."""

    graph: Graph
    platform: str
    clock_mhz: float
    library: OperatorLibrary
    weights: Stores
    fixed: Mapping[str, KernelDesign]
    most_lanes: int | None
    _known: KnownLanes = field(default_factory=KnownLanes, compare=False, repr=False)
    _fitters: dict[Hashable, Fitter] = field(default_factory=dict[Hashable, Fitter], compare=False, repr=False)
    _latest: dict[Hashable, dict[str, KernelDesign]] = field(
        default_factory=dict[Hashable, dict[str, KernelDesign]], compare=False, repr=False
    )
    _quickest: dict[Hashable, int] = field(default_factory=dict[Hashable, int], compare=False, repr=False)

    @cached_property
    def fitter(self) -> Fitter:
        return self._fitter({}, None)

    def _fitter(self, settings: FittedSetting, one: Resources | None, spills: bool = False) -> Fitter:
        multipliers, in_turn = str(settings.get(MULTIPLIERS, "")), bool(settings.get(IN_TURN, False))
        rows = int(settings.get(ROWS, NOT_BLOCKED))
        key = (multipliers, in_turn, rows, one, spills)
        if key not in self._fitters:
            self._fitters[key] = Fitter(
                self.graph, self.platform, self.clock_mhz, self.library, self.weights, multipliers, self.fixed,
                self.most_lanes, None, one, self._known, in_turn, rows, spills,
            )  # fmt: skip
        return self._fitters[key]

    @cached_property
    def leading(self) -> tuple[TensorOp, ...]:
        """The kernels that have a walk of their own to decide."""
        return tuple(op for op in self.fitter.heavy if op.layer not in self.fixed)

    @cached_property
    def choices(self) -> dict[str, FittedValues]:
        """Every parameter with its values, the simplest first."""
        if not self.leading:
            return {}
        table: dict[str, FittedValues] = {SHARE: SHARES}
        if len(self.graph.operations) > 1:
            table[IN_TURN] = (False, True)
        if self.fitter.has_rows:
            table[ROWS] = BLOCKS_OF_ROWS
        if len(self.graph.operations) > MOST_FITTED:
            return table
        led = {leader.layer for op in self.graph.operations if (leader := self.fitter.leader(op)) is not None}
        for op in self.leading:
            table[f"{WALK}.{op.layer}"] = tuple(dict.fromkeys(walk_name(walk) for walk in self._walks(op)))
            if len(self.leading) > 1:
                table[f"{FAVOUR}.{op.layer}"] = FAVOURS
            if kinds := self.adders(op):
                table[f"{BUILT}.{op.layer}"] = (*kinds, *(_MIXED + kind for kind in kinds))
            if op.layer in led:
                table[f"{BURST}.{op.layer}"] = BURSTS
            if op.reductions:
                table[f"{COMPACT}.{op.layer}"] = (False, True)
        return table | {name: sizes for name, _, sizes in self._padded}

    def adders(self, op: TensorOp) -> tuple[str, ...]:
        """What a kernel's adders can be built of, where there is a choice."""
        kinds = [implementations(self.library, o, operand_bits(op)) for o in bindable(op) if PARAMETERS[o] == ADDERS]
        return next((found for found in kinds if len(found) > 1), ())

    @cached_property
    def _padded(self) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
        """The dims that may be padded: a name after the first kernel that walks one, and by how much each may be."""
        dims, found = self.fitter.dims, list[tuple[str, int, tuple[int, ...]]]()
        names: dict[int, str] = {}
        for op in self.graph.operations:
            for d in range(len(op.trips)):
                names.setdefault(dims.of_loop(op, d), f"{PADDED}.{op.layer}.{d}")
        for number in dims.paddable:
            size = dims.sizes[number]
            most = int(size * MOST_PADDING)
            if number not in self.fitter.held and most > size:
                found.append((names[number], number, tuple(range(most - size + 1))))
        return tuple(found)

    @cached_property
    def smooth(self) -> dict[str, int]:
        """The paddings with which dims have the most divisors: for lanes of any number, as far as there are such."""
        return {name: self._most_divisible(number, more)[0] for name, number, more in self._padded}

    @cached_property
    def even(self) -> dict[str, tuple[int, ...]]:
        """By dim, the few paddings with the most divisors: of two dims along which a kernel has lanes, seldom both are
        best with the most, and no one of them alone makes anything faster."""
        return {name: tuple(self._most_divisible(number, more)[:_EVEN]) for name, number, more in self._padded}

    def _most_divisible(self, number: int, more: Sequence[int]) -> list[int]:
        """Paddings of a dim: first those that leave it the most divisors, and of these the smallest."""
        size = self.fitter.dims.sizes[number]
        return sorted(more, key=lambda by: (-len(useful_factors(size + by)), by))

    @cached_property
    def defaults(self) -> dict[str, int | str | bool]:
        """What a parameter is where a setting does not say: everything plain, and all of the limits."""
        table = {name: values[0] for name, values in self.choices.items()}
        table |= {name: 100 for name in table if name == SHARE or name.startswith(f"{FAVOUR}.")}
        return table

    def kernels(self, settings: FittedSetting, allowance: Allowance) -> dict[str, KernelDesign]:
        """The kernels of the fastest design within an allowance, as far as operators say; one lane each if none is."""
        key = (allowance, *settings.items())
        found = self._latest.get(key)
        if found is None:  # a search looks at the first design, and makes it fit after that, or once more
            fitter = self._fitter(settings, allowance.one, allowance.spilled)
            found = fitter.kernels(self.walks(settings), allowance.whole, self.sizes(settings), allowance.changed)
            if len(self._latest) >= _AT_HAND:
                self._latest.pop(next(iter(self._latest)))
            self._latest[key] = found
        return dict(found)

    def quickest(self, settings: FittedSetting, limits: Resources) -> int:
        """The cycles of the slowest kernel of a setting's fastest design, as operators say: with less for these than
        all of the limits, none is faster."""
        meant = {name: value for name, value in settings.items() if name in self.choices or name == MULTIPLIERS}
        key = (limits, *meant.items())
        if key not in self._quickest:
            sizes, kernels = (
                self.sizes(settings),
                self.kernels(settings, Allowance(limits, spilled=self.spills(settings))),
            )
            lanes = {op.layer: prod(kernels[op.layer].unroll) for op in self.graph.operations}
            works = {op.layer: prod(self.fitter.trips(op, sizes)) for op in self.graph.operations}
            self._quickest[key] = max(works[layer] // lanes[layer] for layer in lanes)
        return self._quickest[key]

    def spills(self, settings: FittedSetting) -> bool:
        """Whether products of a few kernels may be built of LUTs: of pairs, and where no operators are mixed anyway."""
        mixed = any(walk.mixed for walk in self.walks(settings).values())
        return settings.get(MULTIPLIERS) in PAIRINGS and not mixed

    def padding(self, settings: FittedSetting, allowance: Allowance, most: int | None = None) -> dict[str, int]:
        """The paddings with which lanes can be shared out most evenly."""
        fitter, walks = self._fitter(settings, allowance.one), self.walks(settings)
        found = fitter.padding(walks, allowance.whole, most) if fitter.fits(walks, allowance.whole) else NO_PADDING
        sizes = self.fitter.dims.sizes
        return {name: found.get(number, sizes[number]) - sizes[number] for name, number, _ in self._padded}

    def sizes(self, settings: FittedSetting) -> Sizes:
        more = {number: int(settings.get(name, 0)) for name, number, _ in self._padded}
        return {number: self.fitter.dims.sizes[number] + by for number, by in more.items() if by}

    def walks(self, settings: FittedSetting) -> dict[str, KernelWalk]:
        """Those that somebody decided have some walk, which means nothing."""
        return {op.layer: KernelWalk(()) for op in self.fitter.heavy} | {
            op.layer: self._walk(op, settings) for op in self.leading
        }

    def _walk(self, op: TensorOp, settings: FittedSetting) -> KernelWalk:
        walks = self._by_name[op.layer]
        named = walks[str(settings.get(f"{WALK}.{op.layer}", next(reversed(walks))))]
        built, burst = str(settings.get(f"{BUILT}.{op.layer}", "")), settings.get(f"{BURST}.{op.layer}", BURSTS[0])
        return replace(
            named,
            slowness=int(settings.get(f"{FAVOUR}.{op.layer}", 100)) / 100,
            adders=built.removeprefix(_MIXED),
            mixed=built.startswith(_MIXED),
            whole_tokens=burst == BURSTS[-1],
            hurry=1 << BURSTS.index(str(burst)) if burst != BURSTS[-1] else 1,
            compact=bool(settings.get(f"{COMPACT}.{op.layer}", False)),
        )

    @cached_property
    def _by_name(self) -> Mapping[str, dict[str, KernelWalk]]:
        """The first of a name is meant by it."""
        return {op.layer: {walk_name(walk): walk for walk in reversed(self._walks(op))} for op in self.leading}

    def _walks(self, op: TensorOp) -> list[KernelWalk]:
        """A kernel with nothing to walk has one walk as well."""
        return self.fitter.walks(op)

    def named(self, walks: Mapping[str, KernelWalk]) -> dict[str, str]:
        """The parameters that say which dims each kernel walks slowly."""
        found: dict[str, str] = {}
        for layer, walk in walks.items():
            names = (walk_name(walk), walk_name(replace(walk, in_parts=False)))  # not every kernel meets what is joined
            named = [one for one in names if one in self.choices.get(f"{WALK}.{layer}", ())]
            found |= {f"{WALK}.{layer}": one for one in named[:1]}
        return found

    def flowing(self, settings: FittedSetting) -> dict[str, str]:
        """The parameters of walks with which what is made is taken in as it comes, and weights pass once.

        None where external memory brings no large tensor: then nothing has to pass evenly, or while others compute.
        """
        if not self.fitter.streamed:
            return {}
        return self.named(flowing(self.walks(settings), self.fitter.large, self.graph))

    @cached_property
    def by_parts(self) -> tuple[dict[str, str], ...]:
        """The parameters with which all kernels that walk what is joined walk another dim outermost, head by head, say,
        and take it part by part; first with few of these lanes, with which the least waits.

        None where nothing is joined, or kernels of the same join have no other dim in common.
        """
        shared = beside_joined(self.leading, self.fitter.dims, self.fitter.joined)
        ways: list[dict[str, str]] = []
        for place in range(max(map(len, shared.values()), default=0)):
            outer = {layer: dims[min(place, len(dims) - 1)] for layer, dims in shared.items()}
            for most in (*FEW, None):
                ways.append(self.named({one: KernelWalk((d,), most=most, in_parts=True) for one, d in outer.items()}))
        return tuple([way for way in ways if way])

    def streamed_first(self) -> dict[str, int]:
        """The parameters that favour all kernels of large weights from outside: of several rows, whose lanes are many,
        these double together where the others leave enough for it."""
        names = [f"{FAVOUR}.{op.layer}" for op in self.leading if op.layer in self.fitter.streamed]
        return {name: _FAVOURED for name in names if name in self.choices}

    def mixed(self) -> dict[str, str]:
        """The parameters that let every kernel have adders of both kinds; none where kernels have none of their own."""
        built = {f"{BUILT}.{op.layer}": self.adders(op) for op in self.leading}
        return {name: _MIXED + kinds[-1] for name, kinds in built.items() if kinds and name in self.choices}


def worth_saying(params: FittedSetting) -> dict[str, int | str | bool]:
    """A setting without what is as plain as it can be: a model of many kernels has a hundred parameters."""
    return {name: value for name, value in params.items() if (name.partition(".")[0], value) not in _PLAIN}


def walk_name(walk: KernelWalk) -> str:
    """`01`: dims 0 and 1 are walked slowly, in this order; `01-fine`: and the first of them has no lanes; `01-by4`: at
    most 4; `0-by4-parts`: and those along a joined dim divide each part of it."""
    return "".join(map(_letter, walk.outer)) + CAPPED[walk.most] + (IN_PARTS if walk.in_parts else "")


def outer_of(walk: int | str | bool) -> str:
    """Of a walk's name, the dims that are walked slowly."""
    return str(walk).partition("-")[0]


def cap_of(walk: int | str | bool) -> str:
    """Of a walk's name, what it says of its lanes."""
    return str(walk)[len(outer_of(walk)) :]


def caps_like(walk: int | str | bool) -> list[str]:
    """What else may be said of the lanes of its outermost dim, and what is."""
    parts = IN_PARTS if cap_of(walk).endswith(IN_PARTS) else ""
    return [cap + parts for cap in CAPPED.values()]


def _letter(dim: int) -> str:
    return "0123456789abcdefghijklmnopqrstuvwxyz"[dim]
