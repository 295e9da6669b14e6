"""Lanes for every kernel of tiles that are given: the slowest first, or in proportion to the work."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.lengths import SizedGraph
from penstock.dse.lanes.alignment import Along, LoopNest, divisors, unroll_factors
from penstock.dse.lanes.steps import DIMS_BALANCED, DIMS_PARALLEL, DIMS_REDUCTION, Unrolls, loop_nests, slowest_first
from penstock.dse.space.options import TilingOptions

Tiles = Mapping[str, tuple[int, ...]]
LaneSetting = Mapping[str, int | str | bool]


@dataclass(frozen=True)
class HandingOut:
    """Hands lanes to `heavy` ones of the operations; what was shared out once is remembered."""

    graph: Graph
    heavy: Sequence[TensorOp]
    options: TilingOptions = field(default_factory=TilingOptions)
    _before: dict[Hashable, Unrolls] = field(default_factory=dict[Hashable, Unrolls], compare=False, repr=False)

    def slowest_first(self, tiles: Tiles, settings: LaneSetting) -> Unrolls:
        """A boost makes a kernel look slower."""
        single = {op.layer: (1,) * len(op.trips) for op in self.graph.operations}
        lanes, along = int(settings["overall_unroll_size"]), str(settings["unroll_along"])
        boosts = {op.layer: 2.0 ** int(settings.get(f"boost.{op.layer}", 0)) for op in self.heavy}
        tiles = self._even(tiles)
        key = (lanes, along, *boosts.values(), *tiles.values())
        if key not in self._before:
            self._before[key] = slowest_first(self.heavy, single, tiles, lanes, along, lambda op: boosts[op.layer])
        return self._before[key]

    def aligned(self, tiles: Tiles, settings: LaneSetting) -> Unrolls:
        """As many as the total allows, in factors that neighbours share.

        Where lanes do not follow the work, all kernels have as many as the busiest has otherwise.
        """
        operations, by = self.graph.operations, self.options.aligned_by
        busiest = max(op.work for op in operations)
        part = int(settings["overall_unroll_size"]) * busiest // sum(op.work for op in self.heavy)
        most = part if self.options.parallel_factor is None else self.options.parallel_factor
        named: dict[object, Along] = {DIMS_PARALLEL: "parallel", DIMS_REDUCTION: "reduction"}
        along = named.get(settings["unroll_along"], DIMS_BALANCED)
        tiles = self._even(tiles)
        key = ("aligned", most, along, *tiles.values())
        if key not in self._before:
            allowed = {op.layer: [divisors(tile) for tile in tiles[op.layer]] for op in operations}
            self._before[key] = unroll_factors(
                self._nests, max(1, most), by_intensity=by in ("both", "intensity"),
                by_connection=by in ("both", "connection"), along=along, allowed=allowed,
            )  # fmt: skip
        return dict(self._before[key])

    def _even(self, tiles: Tiles) -> Tiles:
        """What lanes divide: the tiles, and along a dim whose size each call says what that is a multiple of."""
        return {layer: tuple(map(gcd, tile, self.grain[layer])) for layer, tile in tiles.items()}

    @cached_property
    def grain(self) -> Mapping[str, tuple[int, ...]]:
        sized = SizedGraph(self.graph)
        return {op.layer: sized.grains_of(op) for op in self.graph.operations}

    @cached_property
    def _nests(self) -> tuple[LoopNest, ...]:
        return loop_nests(self.graph)
