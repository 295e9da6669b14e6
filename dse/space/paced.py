"""Lanes fitted to a common pace, as one of the ways to share out lanes: its parameters, and the kernels they mean."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.design import KernelDesign
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.platforms.routing import routing_of
from penstock.compiler.schedule import OperatorLibrary
from penstock.dse.lanes.binding import ADDERS, binding_choices
from penstock.dse.lanes.costs import KnownLanes
from penstock.dse.lanes.neighbours import follow
from penstock.dse.lanes.pacing import NO_PADDING, Fitter, Sizes
from penstock.dse.lanes.stores import Stores, walked_frames
from penstock.dse.lanes.walks import KernelWalk
from penstock.dse.space.orders import AS_OTHERS, ORDER_CONNECTED, ORDER_PARALLEL, named_order, order_of

PACED = "paced"
OPERATOR_LUTS, SLOW_DIMS, LANES_ON_SLOWEST, WHOLE_TOKENS = "operator_luts", "slow_dims", "slowest_lanes", "whole_tokens"
MIXED_ADDERS = "mixed_adders"
HALF_OF_LUTS = 50
MOST_PACED = 48
"""Kernels up to which lanes are fitted to a pace: it takes milliseconds for a dozen, and grows with their square."""
_MOST_PADDINGS = 64
_BOOST = 2**0.5

Setting = Mapping[str, int | str | bool]


def paced_choices(operations: Sequence[TensorOp], library: OperatorLibrary) -> dict[str, tuple[int | bool, ...]]:
    """What is to be decided of a paced design beside what other designs have too."""
    if len(operations) > MOST_PACED:
        return {}
    choices: dict[str, tuple[int | bool, ...]] = {
        OPERATOR_LUTS: tuple(range(5, 101, 5)),
        SLOW_DIMS: (1, 2),
        LANES_ON_SLOWEST: (True, False),
        WHOLE_TOKENS: (False, True),
    }
    return choices | ({MIXED_ADDERS: (False, True)} if ADDERS in binding_choices(operations, library) else {})


@dataclass(frozen=True)
class Pacing:
    """The paced designs of one graph on one platform; what was fitted once is not fitted again."""

    graph: Graph
    platform: str
    limits: Resources
    clock_mhz: float
    library: OperatorLibrary
    weights: Stores
    fixed: Mapping[str, KernelDesign]
    most_lanes: int
    _known: KnownLanes = field(default_factory=KnownLanes, compare=False, repr=False)
    _fitters: dict[Hashable, Fitter] = field(default_factory=dict[Hashable, Fitter], compare=False, repr=False)
    _found: dict[Hashable, Mapping[str, KernelDesign]] = field(
        default_factory=dict[Hashable, Mapping[str, KernelDesign]], compare=False, repr=False
    )

    def kernels(self, settings: Setting) -> Mapping[str, KernelDesign]:
        """The kernels of the fastest design that a setting allows, as far as operators alone say."""
        fitter, walks = self._fitter(settings), self._walks(settings)
        share, padded = int(settings[OPERATOR_LUTS]), bool(settings.get("padding", False))
        key = (fitter.most_lanes, fitter.largest_tile, fitter.multipliers, tuple(walks.items()), share, padded)
        if key not in self._found:
            limits = replace(self.limits, lut=self.limits.lut * share // 100)
            self._found[key] = fitter.kernels(walks, limits, self._sizes(fitter, walks, limits, padded))
        return self._found[key]

    def _sizes(self, fitter: Fitter, walks: Mapping[str, KernelWalk], limits: Resources, padded: bool) -> Sizes:
        if not padded or not fitter.fits(walks, limits):
            return NO_PADDING
        return fitter.padding(walks, limits, _MOST_PADDINGS)

    def _fitter(self, settings: Setting) -> Fitter:
        lanes = min(int(settings["overall_unroll_size"]), self.most_lanes)
        tile, multipliers = int(settings["default_tile_size"]), str(settings.get("multipliers", ""))
        key = (lanes, tile, multipliers)
        if key not in self._fitters:
            self._fitters[key] = Fitter(
                self.graph, self.platform, self.clock_mhz, self.library, self.weights, multipliers, self.fixed,
                lanes, tile, self._one, self._known,
            )  # fmt: skip
        return self._fitters[key]

    @cached_property
    def _one(self) -> Resources | None:
        """What operators of one kernel may take: of a larger pipeline nobody knows that it routes."""
        known = routing_of(load_platform(self.platform))
        return None if known is None else Resources(lut=known.pipeline_lut, dsp=known.pipeline_dsp)

    def _walks(self, settings: Setting) -> dict[str, KernelWalk]:
        """Every kernel's slowest dims: the outermost of its order, or what falls in with the largest kernel's."""
        plain = {op.layer: self._walk(op, settings) for op in self._leading}
        if settings["order"] != ORDER_CONNECTED:
            return plain
        largest = max(self._leading, key=lambda op: op.work)
        return follow(plain, largest, self.graph)

    def _walk(self, op: TensorOp, settings: Setting) -> KernelWalk:
        own, scheme = str(settings.get(f"order.{op.layer}", AS_OTHERS)), str(settings["order"])
        scheme = ORDER_PARALLEL if scheme == ORDER_CONNECTED else scheme
        order = order_of(op, scheme) if own == AS_OTHERS else named_order(own)
        moving = [d for d in order if op.trips[d] > 1]
        frame = self._frames.get(op.layer, ())
        return KernelWalk(
            frame or tuple(moving[: int(settings[SLOW_DIMS])]),
            frame=frame,
            slowness=_BOOST ** int(settings.get(f"boost.{op.layer}", 0)),
            adders=str(settings.get("adders", "")),
            most=None if settings[LANES_ON_SLOWEST] else 1,
            whole_tokens=bool(settings[WHOLE_TOKENS]),
            mixed=bool(settings.get(MIXED_ADDERS, False)),
            compact=bool(settings.get(MIXED_ADDERS, False)),
        )

    @cached_property
    def _frames(self) -> Mapping[str, tuple[int, ...]]:
        return walked_frames(self.graph, self.weights)

    @cached_property
    def _leading(self) -> tuple[TensorOp, ...]:
        return Fitter(self.graph, self.platform, self.clock_mhz, self.library).heavy
