"""From a setting of the space's parameters to figures: design, network, FIFO depths, time, area, constraints."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.analysis.graph import read_graph
from compiler.design import Design
from compiler.errors import PenstockError
from compiler.platforms import Platform, Resources, load_platform
from compiler.program import Program
from dse.assemble import Assembler
from dse.fifo import SIMULATIONS, check_depths, runs_through, safe_depths, size_design
from dse.tiling import Params, TilingOptions, TilingSpace, Value
from profiling.evidence import Evidence
from profiling.model import DesignFigures, model_design, with_depths
from profiling.network import Network

OBJECTIVES = ("latency_cycles", "resource_share")
"""What the search minimises: cycles of one run, and the largest share of any resource's limit."""


@dataclass(frozen=True)
class Evaluation:
    """One point of the search. Constraints are shares of the limits less one: feasible means none above 0."""

    params: Mapping[str, Value]
    design: Design
    figures: DesignFigures
    shares: Mapping[str, float]
    evidence: Evidence = "modelled"

    @property
    def values(self) -> tuple[float, float]:
        """The objectives, in the order of `OBJECTIVES`."""
        return float(self.figures.latency), max(self.shares.values())

    @property
    def constraints(self) -> dict[str, float]:
        return {name: min(share, _UNBOUNDED) - 1.0 for name, share in self.shares.items()}

    @property
    def feasible(self) -> bool:
        return all(violation <= 0 for violation in self.constraints.values())

    @property
    def latency_ms(self) -> float:
        return self.figures.latency / (self.design.clock_mhz * 1e3)

    @property
    def binding_resource(self) -> str:
        """The resource that is nearest to its limit, or farthest beyond it."""
        return max(self.shares, key=lambda name: self.shares[name])

    @property
    def explanation(self) -> str:
        """Why this design is as fast and as large as it is, in one sentence or two."""
        slowest = next(t for t in self.figures.tasks if t.name == self.figures.bottleneck)
        text = (
            f"{slowest.name} sets the pace: {slowest.iterations} iterations, {slowest.ii_reason}. "
            f"{self.binding_resource} is at {self.shares[self.binding_resource]:.0%} of its limit."
        )
        return text if self.feasible else f"{text} Over the limit: {', '.join(self._exceeded())}."

    def _exceeded(self) -> list[str]:
        return [name for name, violation in self.constraints.items() if violation > 0]


_UNBOUNDED = 1e6  # Optuna stores constraints as finite numbers; what a device lacks altogether counts as this


_REMEMBERED = 1024


@dataclass(frozen=True)
class Evaluator:
    """Evaluates designs of one canonical program on one platform. Pieces that were seen before cost nothing."""

    program: Program
    platform: Platform
    clock_mhz: float
    quantize: str | None = None
    options: TilingOptions = field(default_factory=TilingOptions)

    @staticmethod
    def create(
        program: Program,
        platform: str,
        *,
        clock_mhz: float | None = None,
        quantize: str | None = None,
        options: TilingOptions | None = None,
    ) -> Evaluator:
        """`program` is what `pipeline.prepare` returned; the clock defaults to the platform's."""
        board = load_platform(platform)
        clock = board.check_clock(board.clock_mhz if clock_mhz is None else clock_mhz)
        return Evaluator(program, board, clock, quantize, options or TilingOptions())

    def __post_init__(self) -> None:
        graph = read_graph(self.program.module)
        if not graph.operations:
            raise PenstockError(
                code="empty-model", what="the model computes nothing", where=self.program.name,
                hint="submit a model with at least one operation on its inputs",
            )  # fmt: skip
        space = TilingSpace(graph, self.platform, self.clock_mhz, self.quantize, self.options)
        object.__setattr__(self, "_space", space)
        object.__setattr__(self, "_assembler", Assembler(self.program, self.platform, self.clock_mhz))
        object.__setattr__(self, "_seen", OrderedDict[str, Evaluation]())

    @property
    def space(self) -> TilingSpace:
        return self.__dict__["_space"]

    @property
    def assembler(self) -> Assembler:
        return self.__dict__["_assembler"]

    def evaluate(self, params: Params) -> Evaluation:
        """Model the design that a setting means, with FIFO depths that let it run at its own pace.

        Many settings mean the same design; one that was modelled lately is not modelled again.
        """
        design = self.space.design(params)
        seen: OrderedDict[str, Evaluation] = self.__dict__["_seen"]
        digest = design.digest()
        if digest not in seen:
            seen[digest] = self._model(design, dict(params))
            if len(seen) > _REMEMBERED:
                seen.popitem(last=False)
        return replace(seen[digest], params=dict(params))

    def evaluate_design(self, design: Design) -> Evaluation:
        """Model a design given by hand. Depths that it names are kept, the others are found."""
        if design.platform != self.platform.name:
            raise PenstockError(
                code="bad-design", what=f"the design is for platform {design.platform}", where="platform",
                limit=f"it is evaluated for {self.platform.name}", hint="change the record or the option",
            )  # fmt: skip
        return self._model(replace(design, clock_mhz=self.clock_mhz), {})

    def tightened(self, evaluation: Evaluation, *, simulations: int = SIMULATIONS) -> Evaluation:
        """The same design with the fewest bits of FIFO that cost no time, found and shown by simulation."""
        network = self.assembler.network(evaluation.design)
        sizing = size_design(network, self.platform, self.clock_mhz, simulations=simulations)
        design = evaluation.design.with_fifo_depths(sizing.depths)
        return replace(self._model(design, {}), params=evaluation.params)

    def _check_depths(self, network: Network, free: DesignFigures, depths: Mapping[str, int]) -> None:
        """Depths that are not safe whatever the times are must be seen to run through."""
        try:
            check_depths(free.channels, depths)
        except PenstockError:
            if not runs_through(network, self.platform, self.clock_mhz, depths):
                raise

    def _model(self, design: Design, params: dict[str, Value]) -> Evaluation:
        network = self.assembler.network(design)
        free = model_design(network, self.platform, self.clock_mhz, bounded=False)
        depths = safe_depths(free.channels)
        if design.fifo_depths:
            depths |= {name: d for name, d in design.fifo_depths.items() if name in depths}
            self._check_depths(network, free, depths)
        design = design.with_fifo_depths(depths)
        figures = with_depths(free, network, depths, self.platform, self.clock_mhz)
        limits: Resources = self.platform.limits
        return Evaluation(params, design, figures, figures.resources.share_of(limits))
