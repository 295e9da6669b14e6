"""From a walk for every kernel to a design: the fastest pace at which all of them together still fit the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import gcd, inf, lcm, prod

from xdsl.ir import OpResult

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.spatial import frame_lanes, spatial_loops
from penstock.compiler.design import KernelDesign
from penstock.compiler.dialects.affine import projected_dims
from penstock.compiler.platforms import Resources, load_platform, total
from penstock.compiler.schedule import OperatorLibrary
from penstock.compiler.transforms.pad_dims import Dims
from penstock.dse.lanes.binding import paired_dims
from penstock.dse.lanes.costs import KnownLanes, LaneCosts
from penstock.dse.lanes.factors import Lanes, pareto_lanes
from penstock.dse.lanes.joined import Joined, joined_dims, walks_in_parts
from penstock.dse.lanes.keeping_up import PacedKernel, parts_in_turn
from penstock.dse.lanes.mixing import STORED, Changeable, Changes, changes_towards, row_of, slowest_running_sum
from penstock.dse.lanes.neighbours import leader_of, shared_dims
from penstock.dse.lanes.rows import NOT_BLOCKED, block_of, row_dims
from penstock.dse.lanes.spilling import FABRIC, Spillable, may_be_short, spilled
from penstock.dse.lanes.stores import Stores, large_operands, may_be_turned, passing_by, stands_still, walked_frames
from penstock.dse.lanes.walks import KernelWalk, kernel_design, tensor_dims, walks_of, walks_of_one, with_some_lanes

Sizes = Mapping[int, int]
"""What dims are padded to, by the number of a class of dims that are walked together."""
NO_PADDING: Sizes = {}
MOST_PADDING = 1.06


@dataclass(frozen=True)
class Fitter:
    """Fits designs of one graph to a device.

    Layers in `fixed` are as somebody decided; the others have at most `most_lanes` together, beside those that
    elementwise kernels take from their leaders, no tile above `largest_tile` but those with more lanes, and no more
    operators in one kernel than `one` holds. Kernels that run `in_turn`, since each needs all that the one before it
    makes, are not to keep up with each other: the sum of their times counts. With `rows`, what meets the same weights
    again does so in blocks of at most so many rows. One that `spills` builds the products of a few kernels of LUTs,
    where DSPs are short by little.
    """

    graph: Graph
    platform: str
    clock_mhz: float
    library: OperatorLibrary
    weights: Stores = field(default_factory=Stores)
    multipliers: str = ""
    fixed: Mapping[str, KernelDesign] = field(default_factory=dict[str, KernelDesign])
    most_lanes: int | None = None
    largest_tile: int | None = None
    one: Resources | None = None
    known: KnownLanes = field(default_factory=KnownLanes, compare=False, repr=False)
    in_turn: bool = False
    rows: int = NOT_BLOCKED
    spills: bool = False

    def kernels(
        self, walks: Mapping[str, KernelWalk], limits: Resources, sizes: Sizes = NO_PADDING, luts: int | None = None
    ) -> dict[str, KernelDesign]:
        """The kernels of the fastest design with these walks within `limits`, as far as operators alone say.

        Where nothing fits, those with one lane each. With `luts`, mixed operators of the same lanes take no more than
        these, as far as there are DSPs.
        """
        found = self._search(walks, limits, sizes)
        lanes = {op.layer: self._single(op, sizes) for op in self.graph.operations} if found is None else found[1]
        return self._record(walks, limits if luts is None else replace(limits, lut=luts), sizes, lanes)

    def fits(self, walks: Mapping[str, KernelWalk], limits: Resources) -> bool:
        """Whether the fewest lanes are within the limits."""
        return self._search(walks, limits, NO_PADDING) is not None

    def pace(self, walks: Mapping[str, KernelWalk], limits: Resources, sizes: Sizes) -> float:
        """How many cycles the slowest kernel of that design takes; without end where nothing fits."""
        found = self._search(walks, limits, sizes)
        return inf if found is None else found[0]

    def padding(self, walks: Mapping[str, KernelWalk], limits: Resources, most: int | None = None) -> Sizes:
        """Sizes that dims are padded to, so that lanes can be shared out more evenly: one dim after the other.

        With `most`, after so many tries dims stay as they are.
        """
        found: dict[int, int] = {}
        best = self.pace(walks, limits, found)
        sizes = ((n, self.dims.sizes[n]) for n in self.dims.paddable if n not in self.held)
        tries = ((n, padded) for n, size in sizes for padded in range(size + 1, int(size * MOST_PADDING) + 1))
        for number, padded in islice(tries, most):
            pace = self.pace(walks, limits, {**found, number: padded})
            if pace < best:
                best, found = pace, {**found, number: padded}
        return found

    @cached_property
    def costs(self) -> LaneCosts:
        return LaneCosts(self.library, self.multipliers, frozenset(self.fixed), self.known)

    @cached_property
    def held(self) -> frozenset[int]:
        """Dims that layers with a decided design walk."""
        walked = [op for op in self.graph.operations if op.layer in self.fixed]
        return frozenset(self.dims.of_loop(op, d) for op in walked for d in range(len(op.trips)))

    @cached_property
    def dims(self) -> Dims:
        return Dims(self.graph)

    @cached_property
    def frames(self) -> Mapping[str, tuple[int, ...]]:
        """The loops of each kernel along the rows and columns of a frame that it walks place by place."""
        return walked_frames(self.graph, self.weights)

    def walks(self, op: TensorOp) -> list[KernelWalk]:
        """The walks that a kernel may have, the plainest first. What meets a frame that stands still passes once."""
        if op.layer not in self.frames and stands_still(op, self.graph, self.weights):
            own = [d for d in projected_dims(op.result_map) if d is not None and d not in self._all_frames[op.layer]]
            plain, frame = KernelWalk(tuple(own[:1])), self._all_frames[op.layer]
            found = [plain] if frame else [plain, *walks_of_one(op, own[:1])]
            if frame and not self._may_be_turned:
                found = [KernelWalk((*own[:1], *frame), frame=frame), plain]
        else:
            found = list(walks_of(op, self.frames.get(op.layer, ()))) or [KernelWalk(())]
        found += with_some_lanes(op) if op.layer in self.streamed else ()
        return [*found, *walks_in_parts(op, self.joined.get(op.layer, {}))] if op.layer not in self.frames else found

    @cached_property
    def joined(self) -> Mapping[str, Joined]:
        """Of kernels that walk what is joined of several tensors: the dims along which it is."""
        return joined_dims(self.graph, self.dims)

    @cached_property
    def _may_be_turned(self) -> bool:
        return may_be_turned(self.graph, self.weights, load_platform(self.platform).limits)

    @cached_property
    def _all_frames(self) -> Mapping[str, tuple[int, ...]]:
        return {op.layer: () for op in self.graph.operations} | dict(spatial_loops(self.graph))

    def trips(self, op: TensorOp, sizes: Sizes) -> tuple[int, ...]:
        if not sizes:
            return op.trips
        return tuple(sizes.get(self.dims.of_loop(op, d), trip) for d, trip in enumerate(op.trips))

    def parts(self, op: TensorOp, sizes: Sizes) -> tuple[int, ...]:
        """What lanes divide along each dim: its trips, or what the size of each call is a multiple of."""
        return self.dims.sized.parts_of(op, self.trips(op, sizes))

    def _search(
        self, walks: Mapping[str, KernelWalk], limits: Resources, sizes: Sizes
    ) -> tuple[float, Mapping[str, Lanes]] | None:
        """The fastest pace and what it takes, by bisection; None where not even the slowest fits."""
        paced = [self._paced(op, walks, limits, sizes) for op in self.graph.operations]
        paces = sorted({o.cycles * one.slowness / one.part for one in paced for o in one.options}) or [1.0]
        low, high = 0, len(paces) - 1
        found = self._lanes(paced, paces[high], walks, limits)
        if found is None:
            return None
        while low < high:
            middle = (low + high) // 2
            lanes = self._lanes(paced, paces[middle], walks, limits)
            if lanes is None:
                low = middle + 1
            else:
                found, high = lanes, middle
        return paces[high], found

    def _paced(self, op: TensorOp, walks: Mapping[str, KernelWalk], limits: Resources, sizes: Sizes) -> PacedKernel:
        leader, walk = self.leader(op), self._walk(op, walks)
        led, fixed = leader is not None, op.layer in self.fixed
        return PacedKernel(
            op=op,
            leader=None if leader is None or fixed else leader.layer,
            shared=self._shared[op.layer] if led and not fixed else (),
            work=prod(self.trips(op, sizes)),
            slowness=walk.slowness,
            part=self._parts[op.layer],
            hurry=0 if walk.whole_tokens else walk.hurry,
            options=() if led or fixed else self._options(op, walk, limits, sizes),
            single=self._single(op, sizes) if fixed else None,
            least=self.costs.least(op, walk),
            counts=not led and not fixed,
            in_turn=self.in_turn,
        )

    @cached_property
    def _shared(self) -> Mapping[str, tuple[int, ...]]:
        """Of kernels that walk along with another, which of its dims each of theirs is."""
        found: dict[str, tuple[int, ...]] = {}
        for op in self.graph.operations:
            if (leader := self.leader(op)) is not None:
                dims = shared_dims(op, leader)
                found[op.layer] = tuple(dims[d] for d in range(len(op.trips)))
        return found

    @cached_property
    def _parts(self) -> Mapping[str, float]:
        """What part of a pace each kernel may take."""
        operations, limits = self.graph.operations, load_platform(self.platform).limits
        return parts_in_turn(operations, self.costs, limits) if self.in_turn else {op.layer: 1.0 for op in operations}

    @cached_property
    def heavy(self) -> tuple[TensorOp, ...]:
        """What has a walk of its own: the reductions, and elementwise kernels on nothing but inputs."""
        return tuple(op for op in self.graph.operations if self.leader(op) is None)

    def leader(self, op: TensorOp) -> TensorOp | None:
        """The kernel whose result an elementwise one walks along with; none for a reduction."""
        return self._leaders[op.layer]

    @cached_property
    def _leaders(self) -> Mapping[str, TensorOp | None]:
        return {op.layer: leader_of(op, self.graph) for op in self.graph.operations}

    def _walk(self, op: TensorOp, walks: Mapping[str, KernelWalk]) -> KernelWalk:
        """A kernel's own walk, or that of what it goes along with."""
        leader = self.leader(op)
        return walks[op.layer] if leader is None else self._walk(leader, walks)

    def _options(self, op: TensorOp, walk: KernelWalk, limits: Resources, sizes: Sizes) -> tuple[Lanes, ...]:
        cost = self.costs.least(op, walk) * 2 + self.costs.shared(op)  # of two lanes
        dsp, lut = (limits.dsp, limits.lut) if self.one is None else (self.one.dsp, self.one.lut)
        dsp, lut = min(dsp, limits.dsp), min(lut, limits.lut)
        most = min(2 * dsp // cost.dsp if cost.dsp else 1 << 20, 2 * lut // cost.lut if cost.lut else 1 << 20)
        trips, parts = self.trips(op, sizes), self.parts(op, sizes)
        if walk.in_parts:
            parts = tuple(gcd(part, self.joined[op.layer].get(d, 0)) for d, part in enumerate(parts))
        most = max(1, min(most, prod(trips), self.most_lanes or most))
        table = 1 << (most - 1).bit_length()  # what is more does not fit; limits that are nearly equal share a table
        tensors = tensor_dims(op) if walk.compact else ()
        only = tuple(self._frame_lanes[op.layer].items()) if walk.frame else ()
        paired = paired_dims(op) if self.costs.shared(op).dsp else ()
        paired = tuple(d for d in paired if parts[d] % 2 == 0 and dict(walk.at_most).get(d, 2) > 1)
        found = pareto_lanes(
            trips, op.reductions, table, walk.at_most, only, tensors, paired, self._brought.get(op.layer, ()), parts
        )
        return found if self.one is None else tuple(lanes for lanes in found if lanes.count <= most)

    @cached_property
    def _brought(self) -> Mapping[str, tuple[int, ...]]:
        return {} if load_platform(self.platform).has_array_arguments else passing_by(self.graph, self.weights)

    @cached_property
    def large(self) -> Mapping[str, tuple[int, ...]]:
        """Of kernels that walk no frame: the loops along a large tensor of external memory that it uses again."""
        if load_platform(self.platform).has_array_arguments:
            return {}
        found = large_operands(self.graph, self.weights)
        return {layer: dims for layer, dims in found.items() if not self._all_frames[layer]}

    @cached_property
    def streamed(self) -> frozenset[str]:
        """The kernels to which external memory brings a large tensor, whether it is used again or not."""
        return frozenset((*self.large, *self._brought))

    @cached_property
    def _frame_lanes(self) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
        """Of dims that cannot have all lanes, those that they can have."""
        return frame_lanes(self.graph)

    def _lanes(
        self, paced: Sequence[PacedKernel], pace: float, walks: Mapping[str, KernelWalk], limits: Resources
    ) -> dict[str, Lanes] | None:
        """The cheapest lanes of every kernel that keep up; None where they do not fit together."""
        found: dict[str, Lanes] = {}
        dsp = lut = count = 0
        most = limits.dsp + (may_be_short(limits.dsp) if self.spills else 0)
        for one in paced:
            chosen = one.keeping_up(pace, found)
            if chosen is None:
                return None
            found[one.op.layer] = chosen
            lanes, pairs = chosen.count, self.costs.of_pairs(one.op, chosen.unroll)
            dsp += one.least.dsp * lanes + pairs.dsp
            lut += one.least.lut * lanes + pairs.lut
            count += lanes if one.counts else 0
            if dsp > most or lut > limits.lut or (self.most_lanes and count > self.most_lanes):
                return None
        if self.spills and dsp > limits.dsp:
            return None if self._spilled(walks, limits, found) is None else found
        return found if self._changes(walks, limits, found)[1] else None

    def _spilled(
        self, walks: Mapping[str, KernelWalk], limits: Resources, lanes: Mapping[str, Lanes]
    ) -> frozenset[str] | None:
        """The layers whose products are built of LUTs, since there are too few DSPs; None where all do not fit so."""
        otherwise = replace(self.costs, multipliers=FABRIC)
        here, there = dict[str, Resources](), dict[str, Resources]()
        for op in self.graph.operations:
            for costs, areas in ((self.costs, here), (otherwise, there)):
                one = costs.of_lane(op, self._walk(op, walks).adders) * lanes[op.layer].count
                areas[op.layer] = one + costs.of_pairs(op, lanes[op.layer].unroll)
        saved = {layer: area.dsp - there[layer].dsp for layer, area in here.items() if layer not in self.fixed}
        short = total(list(here.values())).dsp - limits.dsp
        found = spilled(short, [Spillable(layer, dsp) for layer, dsp in saved.items() if dsp > 0])
        area = total([there[layer] if found and layer in found else one for layer, one in here.items()])
        return found if area.lut <= limits.lut else None

    def _changes(
        self, walks: Mapping[str, KernelWalk], limits: Resources, lanes: Mapping[str, Lanes]
    ) -> tuple[Changes, bool]:
        """Which operators are built otherwise so that all fit, and whether they do."""
        if not any(walk.mixed for walk in walks.values()):
            return {}, True
        area, candidates = Resources(), list[Changeable]()
        for op in self.graph.operations:
            walk, count = self._walk(op, walks), lanes[op.layer].count
            area = area + self.costs.of_lane(op, walk.adders) * count + self.costs.of_pairs(op, lanes[op.layer].unroll)
            candidates += [one.of_lanes(count) for one in self.costs.changeable(op, walk)]
        return changes_towards(area, limits, candidates)

    def _single(self, op: TensorOp, sizes: Sizes) -> Lanes:
        """One lane, or those that somebody decided."""
        unroll = self.fixed[op.layer].unroll if op.layer in self.fixed else (1,) * len(op.trips)
        return Lanes(-(-prod(self.trips(op, sizes)) // prod(unroll)), unroll)

    def _record(
        self, walks: Mapping[str, KernelWalk], limits: Resources, sizes: Sizes, lanes: Mapping[str, Lanes]
    ) -> dict[str, KernelDesign]:
        kernels: dict[str, KernelDesign] = {}
        changes = self._changes(walks, limits, lanes)[0]
        in_luts = (self.spills and self._spilled(walks, limits, lanes)) or frozenset[str]()
        for op in self.graph.operations:
            if op.layer in self.fixed:
                kernels[op.layer] = self.fixed[op.layer]
                continue
            leader, unroll = self.leader(op), lanes[op.layer].unroll
            walk = self._walk(op, walks)
            bindings = self._mixed(op, walk, lanes[op.layer], changes)
            if op.layer in in_luts:
                bindings |= replace(self.costs, multipliers=FABRIC).bindings(op, walk.adders)
            if leader is None:
                rest, large = self._rest(op, walk, lanes[op.layer], changes), self.large.get(op.layer, ())
                kernels[op.layer] = kernel_design(
                    op, self.trips(op, sizes), unroll, walks[op.layer], rest, self.weights.at(op.layer), bindings,
                    self.largest_tile, large, bool(large) or op.layer in self._brought,
                    self._block(op, self.parts(op, sizes), unroll, walk), self.parts(op, sizes),
                )  # fmt: skip
                continue
            made, dims = kernels[leader.layer], shared_dims(op, leader)
            rank = range(len(op.trips))
            tile = tuple(lcm(made.tile[dims[d]], unroll[d]) for d in rank)
            order = tuple(sorted(rank, key=lambda d: made.order.index(dims[d])))
            kernels[op.layer] = KernelDesign(tile, unroll, order, self.weights.at(op.layer), bindings)
        return kernels

    def _block(
        self, op: TensorOp, parts: Sequence[int], unroll: Sequence[int], walk: KernelWalk
    ) -> tuple[int, int] | None:
        """The dim of which a kernel walks blocks, and their steps. What meets no weights does if rows are outermost."""
        dim = self._rows.get(op.layer)
        if dim is None or (op.layer not in self.large and walk.outer[:1] != (dim,)):
            return None
        return dim, block_of(self.rows, parts[dim], unroll[dim])

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return row_dims(self.graph, self.dims, self.large) if self.rows else {}

    @property
    def has_rows(self) -> bool:
        """Whether any kernel meets large weights again, with rows that can pass in blocks."""
        return bool(self.large.keys() & row_dims(self.graph, self.dims, self.large))

    def _mixed(self, op: TensorOp, walk: KernelWalk, lanes: Lanes, changes: Changes) -> dict[str, str]:
        """What a kernel's record says of its operators, some of which are changed."""
        bindings = self.costs.bindings(op, walk.adders)
        for one in self.costs.changeable(op, walk):
            changed = changes.get((op.layer, one.operation), 0)
            if changed:
                bindings[one.operation] = one.of_lanes(lanes.count).binding(changed)
        return bindings

    def _rest(self, op: TensorOp, walk: KernelWalk, lanes: Lanes, changes: Changes) -> int:
        """For how many iterations a partial result must rest so that the kernel can go on every cycle."""
        combining = op.op.body.block.last_op
        assert combining is not None
        source = combining.operands[0]
        if not op.reductions or not isinstance(source, OpResult):
            return 1
        name = source.op.name
        for one in self.costs.changeable(op, walk):
            if one.operation == name:
                running = prod(n for d, n in enumerate(lanes.unroll) if d not in op.reductions)
                changed = changes.get((op.layer, name), 0)
                return slowest_running_sum(one.of_lanes(lanes.count), changed, running) + STORED
        return row_of(op, name, self.library, self.costs.bindings(op, walk.adders).get(name)).latency + STORED
