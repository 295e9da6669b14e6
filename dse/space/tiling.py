"""The tiling and unrolling space of a model, and how its few parameters become a design for every kernel.

One default tile size for every dim, and one overall number of lanes. Lanes are handed out by a max-heap to whichever
kernel takes longest (StreamTensor's scheme), or in proportion to the work with factors that connected kernels agree on
(HIDA's), or for one pace; `dse/lanes` has all three. On top of it: elementwise kernels walk like their producer,
and a consumer may take its operand with as many lanes as it is made with where that costs nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from penstock.compiler.analysis.default_design import weights_placement
from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.design import Design, KernelDesign, WeightStore
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform, Resources
from penstock.compiler.schedule import OperatorLibrary, load_library
from penstock.compiler.transforms.pad_dims import Dims
from penstock.dse.lanes.binding import PARAMETERS, binding_choices, bindings_of
from penstock.dse.lanes.steps import (
    DIMS_BALANCED,
    DIMS_PARALLEL,
    DIMS_REDUCTION,
    lane_cost,
    powers_of_two,
    with_halfway,
)
from penstock.dse.lanes.stores import Stores, walked_frames
from penstock.dse.space.equalising import EQUALISATION, equalisation_choices, equalised
from penstock.dse.space.external import external_choices, external_defaults, with_external
from penstock.dse.space.fitted import FITTED, Allowance, Fitting
from penstock.dse.space.grouping import FUSED, GROUPED_BY, MOST_GROUPS, Grouping, KnownGroups, grouping_choices
from penstock.dse.space.handing_out import HandingOut
from penstock.dse.space.options import TilingOptions, widest_port
from penstock.dse.space.orders import (
    AS_OTHERS,
    ORDER_CONNECTED,
    ORDER_PARALLEL,
    ORDER_REDUCTION,
    LoopOrder,
    connected_order,
    follow_producer,
    made_in,
    named_order,
    order_choices,
    order_of,
    tiles_of,
)
from penstock.dse.space.paced import HALF_OF_LUTS, OPERATOR_LUTS, PACED, Pacing, paced_choices
from penstock.dse.space.padding import can_pad, padded_sizes

Value = int | str | bool
Params = Mapping[str, Value]
Choices = Mapping[str, tuple[Value, ...]]
Conditions = Mapping[str, Mapping[str, tuple[Value, ...]]]
"""Parameters that mean something only where others, by name, have one of some values."""

SLOWEST_FIRST, ALIGNED = "slowest-first", "aligned"
_MOST_BOOSTED_KERNELS = 8
_MOST_ORDERED_KERNELS = 3
_REMEMBERED = 256
_GOOD_TILE = 16  # small enough for short buffers, large enough for sums to take turns


@dataclass(frozen=True)
class TilingSpace:
    """The parameters of one model on one platform, and the design that each setting of them means.

    Lanes are fitted to `limits`, where the user leaves less than the platform does; the parameters and their values are
    the same whatever it is.
    """

    graph: Graph
    platform: Platform
    clock_mhz: float
    quantize: str | None = None
    options: TilingOptions = field(default_factory=TilingOptions)
    limits: Resources | None = None

    @cached_property
    def may_use(self) -> Resources:
        return self.platform.limits if self.limits is None else self.limits

    @cached_property
    def choices(self) -> Choices:
        """Every parameter with its values. Numbers are in order; the search may rely on it."""
        longest = max((trip for op in self.graph.operations for trip in op.trips), default=1)
        tiles = powers_of_two(self.options.smallest_tile, longest)
        table: dict[str, tuple[Value, ...]] = {
            "default_tile_size": tuple(tiles),
            "overall_unroll_size": with_halfway(powers_of_two(max(len(self.graph.operations), 2), self.max_lanes)),
            "allocation": (SLOWEST_FIRST, ALIGNED),
            "unroll_along": (DIMS_BALANCED, DIMS_PARALLEL, DIMS_REDUCTION),
            "order": (ORDER_PARALLEL, ORDER_REDUCTION, ORDER_CONNECTED),
            "connect": (True, False),
        }
        if can_pad(self.dims, tiles, self.options.kernels):
            table["padding"] = (False, True)
        table |= binding_choices([op for op in self.graph.operations if op.layer in self._free], self.library)
        table |= grouping_choices(self.graph, self.platform)
        table |= {**self._external, **equalisation_choices(self.options)}
        if self._of_paced:
            table |= {"allocation": (SLOWEST_FIRST, ALIGNED, PACED), **self._of_paced}
        if self.options.per_kernel and 1 < len(self.heavy) <= _MOST_BOOSTED_KERNELS:
            table |= {f"boost.{op.layer}": (0, 1, 2) for op in self.heavy}
        if self.options.per_kernel and len(self.heavy) <= _MOST_ORDERED_KERNELS:
            orders = {f"order.{op.layer}": order_choices(op) for op in self.heavy if op.layer not in self.spatial}
            table |= {name: values for name, values in orders.items() if len(values) > 2}
        if self._of_fitted:
            table |= {"allocation": (*table["allocation"], FITTED), **self._of_fitted}
        return table

    @cached_property
    def conditions(self) -> Conditions:
        """What each way to share out lanes leaves to decide: see `dse/README.md`.

        A budget for converters matters where kernels are put into groups at all.
        """
        ways = self.choices["allocation"]
        shared = tuple(way for way in ways if way != FITTED)
        of_all = {"allocation", "multipliers", "fusion", EQUALISATION, *GROUPED_BY, *self._external}
        table: dict[str, Mapping[str, tuple[Value, ...]]] = {}
        if self._of_fitted:
            table |= {name: {"allocation": shared} for name in self.choices if name not in of_all}
            table |= {name: {"allocation": (FITTED,)} for name in self._of_fitted}
        table |= {"connect": {"allocation": (SLOWEST_FIRST,)}}
        boosted = {"allocation": tuple(way for way in shared if way != ALIGNED)}
        table |= {name: boosted for name in self.choices if name.startswith("boost.")}
        if self._of_paced:
            table |= {"unroll_along": {"allocation": (SLOWEST_FIRST, ALIGNED)}}
            table |= {name: {"allocation": (PACED,)} for name in self._of_paced}
        return table | {name: needs for name, needs in GROUPED_BY.items() if name in self.choices}

    @property
    def max_lanes(self) -> int:
        """More lanes than the DSPs and LUTs could ever hold are not worth asking about."""
        work = sum(prod(op.trips) for op in self.heavy) or max((op.work for op in self.graph.operations), default=1)
        limits = self.platform.limits
        fits = max(limits.dsp, limits.lut // 60, 1)
        return max(2, min(work, fits, self.options.max_lanes or fits))

    @cached_property
    def heavy(self) -> tuple[TensorOp, ...]:
        """The kernels that lanes are handed out to: the reductions, or everything where there is none."""
        free = [op for op in self.graph.operations if op.layer in self._free]
        return tuple(op for op in free if op.reductions) or tuple(free)

    @cached_property
    def _free(self) -> frozenset[str]:
        """The layers that nobody decided by hand."""
        return frozenset(op.layer for op in self.graph.operations) - set(self.options.kernels)

    @cached_property
    def library(self) -> OperatorLibrary:
        return load_library(self.platform.operators, self.clock_mhz)

    @cached_property
    def port_bits(self) -> int:
        return widest_port(self.platform, self.clock_mhz)

    @cached_property
    def weights(self) -> WeightStore:
        return self.options.weights or weights_placement(self.graph, self.platform)

    @cached_property
    def stores(self) -> Stores:
        return self.options.stores(self.graph, self.weights, self.may_use)

    def default_params(self) -> dict[str, Value]:
        """A good first guess: lanes along the reductions, as many as the device's multipliers and LUTs allow."""
        apart = {*self._of_paced, *self._of_fitted}
        guess = {name: value for name, value in self._unsaid.items() if name not in apart}
        tiles = [t for t in self.choices["default_tile_size"] if int(t) <= _GOOD_TILE]
        sizes = self.choices["overall_unroll_size"]
        fitting = [n for n in sizes if int(n) <= self.lanes_that_fit]
        return guess | {
            "default_tile_size": tiles[-1],
            "overall_unroll_size": fitting[-1] if fitting else sizes[0],
            "unroll_along": DIMS_REDUCTION,
            "connect": False,
        }

    def first_settings(self) -> tuple[dict[str, Value], ...]:
        """What a search should try before it proposes anything itself: the first guess, and bolder ones."""
        guess, sizes = self.default_params(), self.choices["overall_unroll_size"]
        bolder = sizes[sizes.index(guess["overall_unroll_size"]) + 1 :][:1]
        settings = [guess, *({**guess, "overall_unroll_size": n} for n in bolder)]
        settings += [{**guess, "unroll_along": DIMS_BALANCED, "connect": True}, {**guess, "allocation": ALIGNED}]
        other_operators = {name: self.choices[name][1] for name in self.choices if name in PARAMETERS.values()}
        settings += [{**guess, "padding": True}] if "padding" in self.choices else []
        settings += [{**setting, **other_operators} for setting in settings[:2] if other_operators]
        return tuple(settings)

    def paced_settings(self) -> tuple[dict[str, Value], ...]:
        """Lanes fitted to a pace with half of the LUTs: each kernel for itself, and in step with the largest.

        There are none where lanes cannot be fitted.
        """
        if not self._of_paced:
            return ()
        most = {name: self.choices[name][-1] for name in ("overall_unroll_size", "default_tile_size")}
        own = {name: self._unsaid[name] for name in self._of_paced}
        paced = {**own, **self.default_params(), **most, "allocation": PACED}
        return paced, {**paced, "order": ORDER_CONNECTED}

    def fitted_setting(self) -> dict[str, Value]:
        """The plainest walk for every kernel, fitted to all that may be used; nothing where walks are not fitted."""
        if not self._of_fitted:
            return {}
        others = {name: value for name, value in self._unsaid.items() if name not in self.conditions}
        return {**others, **self.fitting.defaults, "allocation": FITTED}

    @cached_property
    def lanes_that_fit(self) -> int:
        """A cautious estimate of how many lanes of the dearest reduction the device holds."""
        costs = [lane_cost(op, self.library) for op in self.heavy]
        limits = self.may_use
        fit = [limits.dsp // c.dsp for c in costs if c.dsp] + [limits.lut // (2 * c.lut) for c in costs if c.lut]
        return max(1, min(fit, default=self.max_lanes))

    def design(self, params: Params) -> Design:
        """The design that a setting means. The same setting always means the same design."""
        settings = self.settings(params)
        key = tuple(settings.values())
        if key not in self._designs:
            self._designs[key] = self._design(settings)
            if len(self._designs) > _REMEMBERED:
                self._designs.popitem(last=False)
        return self._designs[key]

    @cached_property
    def _designs(self) -> OrderedDict[tuple[Value, ...], Design]:
        """The latest: who looks whether a setting means something new mostly has its design modelled then."""
        return OrderedDict()

    def _design(self, settings: Mapping[str, Value]) -> Design:
        if settings["allocation"] == PACED:
            return self._paced(settings)
        if settings["allocation"] == FITTED:
            return self._fitted(settings, Allowance(self.may_use))
        aligned, connect = (one := settings["allocation"]) == ALIGNED, one != ALIGNED and bool(settings["connect"])
        size = int(settings["default_tile_size"])
        sizes = padded_sizes(self.dims, size, self.options.kernels) if settings.get("padding") else dict[int, int]()
        tiles, handing = {op.layer: self._tiles(op, size, sizes) for op in self.graph.operations}, self._handing_out
        unrolls = handing.aligned(tiles, settings) if aligned else handing.slowest_first(tiles, settings)
        kernels: dict[str, KernelDesign] = {}
        for op in self.graph.operations:
            if op.layer in self.options.kernels:
                kernels[op.layer] = self.options.kernels[op.layer]
                continue
            bindings = self._bindings(op, settings)
            order = order_of(op, str(settings["order"]), self.spatial.get(op.layer, ()))
            kernel = KernelDesign(tiles[op.layer], unrolls[op.layer], order, self.stores.at(op.layer), bindings)
            kernel = follow_producer(self.graph, op, kernel, kernels, handing.grain[op.layer], connect=connect)
            kernels[op.layer] = self._ordered(op, kernel, kernels, sizes, settings)
        design = self._record(kernels, settings)
        return self._grouped(design, sizes, settings)

    def _paced(self, settings: Mapping[str, Value]) -> Design:
        """Every kernel with the lanes that a common pace asks of it."""
        kernels = dict(self._pacing.kernels(settings))
        design = self._record(kernels, settings)
        return self._grouped(design, self.dims.padded(design) if settings.get("padding") else {}, settings)

    @cached_property
    def _pacing(self) -> Pacing:
        fixed, most = self.options.kernels, self.options.max_lanes or self.max_lanes
        return Pacing(
            self.graph, self.platform.name, self.may_use, self.clock_mhz, self.library, self.stores, fixed, most
        )

    def fitted(self, params: Params, allowance: Allowance) -> Design:
        """The design that a fitted setting means where operators may take so much."""
        return self._fitted(self.settings(params), allowance)

    def _fitted(self, settings: Mapping[str, Value], allowance: Allowance) -> Design:
        kernels = self.fitting.kernels(settings, allowance)
        design = self._record(kernels, settings)
        return self._grouped(design, self.dims.padded(design), settings)

    @cached_property
    def fitting(self) -> Fitting:
        return Fitting(
            self.graph, self.platform.name, self.clock_mhz, self.library, self.stores, self.options.kernels,
            self.options.max_lanes,
        )  # fmt: skip

    @cached_property
    def _handing_out(self) -> HandingOut:
        return HandingOut(self.graph, self.heavy, self.options)

    def _ordered(
        self,
        op: TensorOp,
        kernel: KernelDesign,
        kernels: Mapping[str, KernelDesign],
        sizes: Mapping[int, int],
        settings: Mapping[str, Value],
    ) -> KernelDesign:
        """With tile loops in an order of its own, or in the one that fits the kernels before it."""
        own = str(settings.get(f"order.{op.layer}", AS_OTHERS))
        if own != AS_OTHERS:
            return replace(kernel, order=named_order(own))
        if settings["order"] != ORDER_CONNECTED or not op.reductions or op.layer in self.spatial:
            return kernel
        producers = [(m, p) for v, m in zip(op.inputs, op.operand_maps, strict=True) if (p := self.graph.makers.get(v))]
        streams = tuple((m, made_in(p, self._trips(p, sizes), kernels[p.layer])) for m, p in producers)
        return replace(kernel, order=connected_order(op, self._trips(op, sizes), kernel, streams))

    def _record(self, kernels: Mapping[str, KernelDesign], settings: Mapping[str, Value]) -> Design:
        made = Design(self.platform.name, self.clock_mhz, kernels, self.quantize, port_bits=self.port_bits)
        return equalised(with_external(made, settings, self.graph), settings, self.options)

    def _grouped(self, design: Design, sizes: Mapping[int, int], settings: Mapping[str, Value]) -> Design:
        if settings.get("fusion", FUSED) == FUSED:
            return design
        grouping = Grouping(str(settings["fusion"]), int(settings["converter_kib"]), int(settings.get(MOST_GROUPS, 1)))
        return replace(design, groups=self._groups.of(grouping, design, self.dims.padded_graph(sizes)))

    @cached_property
    def _groups(self) -> KnownGroups:
        return KnownGroups()

    @cached_property
    def _unsaid(self) -> dict[str, Value]:
        """What a parameter is where a setting does not say."""
        table = {name: values[0] for name, values in self.choices.items()}
        table |= {OPERATOR_LUTS: HALF_OF_LUTS} if self._of_paced else {}
        return table | external_defaults(self._external) | (self.fitting.defaults if self._of_fitted else {})

    @cached_property
    def _external(self) -> Mapping[str, tuple[int, ...]]:
        return external_choices(self.graph, self.platform, self.weights, self.options, self.clock_mhz)

    @cached_property
    def _of_paced(self) -> Mapping[str, tuple[Value, ...]]:
        """Parameters that paced designs alone have."""
        return paced_choices(self.graph.operations, self.library) if self.options.per_kernel and self.heavy else {}

    @cached_property
    def _of_fitted(self) -> Mapping[str, tuple[Value, ...]]:
        """The same of fitted ones."""
        return self.fitting.choices if self.options.per_kernel else {}

    def settings(self, params: Params) -> dict[str, Value]:
        """Every parameter's value: what a setting does not say is as usual."""
        settings = {**self._unsaid, **params}
        for name, value in settings.items():
            if name not in self.choices:
                raise PenstockError(
                    code="unknown-parameter", what=f"the space has no parameter {name!r}",
                    limit="parameters: " + ", ".join(self.choices), hint="correct its name",
                )  # fmt: skip
            if value not in self.choices[name]:
                raise PenstockError(
                    code="bad-parameter", what=f"{name} cannot be {value!r}",
                    limit="choices: " + ", ".join(map(str, self.choices[name])), hint="take one of the choices",
                )  # fmt: skip
        return settings

    @cached_property
    def dims(self) -> Dims:
        """Which dims are walked together, and so padded together."""
        return Dims(self.graph)

    def _tiles(self, op: TensorOp, size: int, sizes: Mapping[int, int]) -> tuple[int, ...]:
        return tiles_of(self._trips(op, sizes), size, self.spatial.get(op.layer, ()), self._handing_out.grain[op.layer])

    @cached_property
    def spatial(self) -> Mapping[str, LoopOrder]:
        """The loops along a frame's rows and columns, where these are walked one step at a time."""
        return walked_frames(self.graph, self.stores)

    def _trips(self, op: TensorOp, sizes: Mapping[int, int]) -> LoopOrder:
        return tuple(sizes.get(self.dims.of_loop(op, d), trip) for d, trip in enumerate(op.trips))

    @cached_property
    def _bindings_before(self) -> dict[Hashable, dict[str, str]]:
        return {}

    def _bindings(self, op: TensorOp, settings: Mapping[str, Value]) -> dict[str, str]:
        key = (op.layer, *(settings.get(name) for name in PARAMETERS.values()))
        if key not in self._bindings_before:
            self._bindings_before[key] = bindings_of(op, self.library, settings)
        return self._bindings_before[key]
