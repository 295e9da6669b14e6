"""From a setting of the space's parameters to figures: design, network, FIFO depths, time, area, constraints."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform, Resources, load_platform
from penstock.compiler.platforms.routing import routing_of
from penstock.compiler.program import Program
from penstock.compiler.transforms.passes import level_of
from penstock.dse.evaluation.assemble import Assembler
from penstock.dse.evaluation.assemble_tasks import TaskAssembler
from penstock.dse.evaluation.assumed_depths import assumed_depths
from penstock.dse.evaluation.caps import allowed_by
from penstock.dse.evaluation.energy import operations_uj, run_cost
from penstock.dse.evaluation.evaluation import Equalised, Evaluation, briefly
from penstock.dse.evaluation.fitting import fitted, may_fit_otherwise
from penstock.dse.evaluation.given_depths import given_depths
from penstock.dse.evaluation.objectives import DEFAULT_GOAL, Goal
from penstock.dse.evaluation.remembered import Remembered
from penstock.dse.evaluation.routing import routing_use
from penstock.dse.fifo import (
    DesignSizing,
    SizingProgress,
    large_single_blocks,
    prefetched,
    runs_through,
    safe_depths,
    single_blocks,
    single_blocks_held,
    size_design,
    slower_tasks,
    two_slots,
)
from penstock.dse.memory import allocate_whole, memory_luts
from penstock.dse.memory.items import WHOLE_CHIP
from penstock.dse.memory.result import Allocation
from penstock.dse.partition.quick import DieCheck
from penstock.dse.space.fitted import FITTED, SHARE, Allowance
from penstock.dse.space.tasks import TaskSpace, written
from penstock.dse.space.tiling import Params, TilingOptions, TilingSpace, Value
from penstock.dse.support.budgets import SIMULATIONS
from penstock.profiling.model import ChannelFigures, DesignModel
from penstock.profiling.network import TaskNetwork
from penstock.profiling.protocol import ProfilingError

_IN_MEMORIES = "with memories built otherwise"
_SO_NEAR, _LEAST = 0.01, 1e-6
"""To the least memories: what is chosen has them built anew, by the least."""
_TIMES = "with times"
NO_MEMORY = ("memory-short", "memory-too-large")
"""Codes of errors that say that there are not enough memories to build a design's."""


@dataclass(frozen=True)
class Evaluator:
    """Evaluates designs of one canonical program on one platform. Pieces that were seen before cost nothing."""

    program: Program
    platform: Platform
    clock_mhz: float
    quantize: str | None = None
    options: TilingOptions = field(default_factory=TilingOptions)
    goal: Goal = DEFAULT_GOAL

    @staticmethod
    def create(
        program: Program,
        platform: str,
        *,
        clock_mhz: float | None = None,
        quantize: str | None = None,
        options: TilingOptions | None = None,
        goal: Goal | None = None,
    ) -> Evaluator:
        """`program` is what `pipeline.prepare` returned; the clock defaults to the platform's."""
        board = load_platform(platform)
        clock = board.check_clock(board.clock_mhz if clock_mhz is None else clock_mhz)
        wanted = (goal or DEFAULT_GOAL).on(board)
        return Evaluator(program, board, clock, quantize, options or TilingOptions(), wanted)

    def __post_init__(self) -> None:
        graph, tasks = read_graph(self.program.module), level_of(self.program.module) == "tasks"
        if not graph.operations and not tasks:
            raise PenstockError(
                code="empty-model", what="the model computes nothing", where=self.program.name,
                hint="submit a model with at least one operation on its inputs",
            )  # fmt: skip
        limits = allowed_by(self.goal, self.platform)
        options = replace(self.options, weighs_fifos=self.goal.weighs_fifos)
        given = (graph, self.platform, self.clock_mhz, self.quantize, options, limits)
        if tasks:
            assembler = TaskAssembler(self.program, self.platform, self.clock_mhz)
            space: TilingSpace = TaskSpace(*given, mappings=tuple(map(written, assembler.mappings)))
        else:
            space = TilingSpace(*given)
            assembler = Assembler(self.program, self.platform, self.clock_mhz, space.dims)
        object.__setattr__(self, "_space", space)
        object.__setattr__(self, "_assembler", assembler)
        for name, paced in (("_timing", self.goal.weighs_frames), ("_slower_timing", False)):
            model = DesignModel(self.platform, self.clock_mhz, back_to_back=paced)
            object.__setattr__(self, name, model)
        object.__setattr__(self, "_dies", DieCheck(self.platform))
        object.__setattr__(self, "_seen", Remembered())
        object.__setattr__(self, "_run_through", dict[Hashable, bool]())
        object.__setattr__(self, "_arithmetic_uj", operations_uj(graph))

    @property
    def space(self) -> TilingSpace:
        return self.__dict__["_space"]

    @property
    def may_use(self) -> Resources:
        """What of the platform a design may take, by the platform and by the goal."""
        return self.space.may_use

    @property
    def arithmetic_uj(self) -> float:
        """What the model's own operations take, whatever the design."""
        return self.__dict__["_arithmetic_uj"]

    @property
    def assembler(self) -> Assembler | TaskAssembler:
        return self.__dict__["_assembler"]

    def evaluate(self, params: Params) -> Evaluation:
        """Model the design that a setting means, with FIFO depths that let it run at its own pace.

        One that may be chosen is seen to run through, by simulation where nothing else says so.
        """
        refuted: frozenset[Hashable] = frozenset()
        found = self.assume(params)
        while found.assumed and found.may_be_chosen:
            if self._runs_through(found.design):
                return replace(found, assumed=False)
            refuted |= {self.meaning(found.design)}
            found = self._modelled(params, refuted)
        if refuted and found.may_be_chosen and not runs_through(
            self.assembler.network(found.design), self.platform, self.clock_mhz, found.design.fifo_depths
        ):  # fmt: skip
            return replace(found, stops="simulated, with the safest depths too")
        return found

    def assume(self, params: Params, is_worth: Callable[[Evaluation], bool] | None = None) -> Evaluation:
        """The same, where depths that the model says suffice are believed: for searches that look at very many.

        What it says follows from the setting alone, whatever was simulated before: any process gives the same answer.
        Many settings mean the same design; one that was modelled lately is not modelled again. Where a design stands
        still and the next that fits is not worth it, that is all there is to know: it is not timed.
        """
        told = self._remembered.told(params)
        return self._modelled(params, frozenset(), is_worth) if told is None else told

    def is_told(self, found: Evaluation) -> None:
        """What another process says that a setting comes to is what `assume` says here from now on."""
        self._remembered.tell(found)

    def outlook(self, params: Params) -> Evaluation:
        """What a setting takes, and how fast it is at best: as if no FIFO were ever full. Quicker than `assume`."""
        return self._untimed(params, frozenset())

    def proven(self, evaluation: Evaluation) -> Evaluation:
        """What was modelled of a setting, once it is seen to run through; modelled anew where it does not."""
        return self.evaluate(evaluation.params) if evaluation.assumed else evaluation

    def answer(self, params: Params) -> tuple[tuple[float, ...], dict[str, float]]:
        """A setting's objectives and constraints, as its trial says."""
        found = self.assume(params)
        return found.values, found.constraints

    def _modelled(
        self,
        params: Params,
        refuted: frozenset[Hashable],
        is_worth: Callable[[Evaluation], bool] | None = None,
    ) -> Evaluation:
        """With safe depths for the designs of `refuted`, and for those that stand still with the model's."""
        while True:
            found = self._untimed(params, refuted)
            if refuted and is_worth is not None and not is_worth(found):
                return found
            key = (_TIMES, found.assumed, found.design.allocated_for, self.meaning(found.design))
            timed = self._remembered.find(key, params, lambda found=found: self._timed(found))
            if timed is not None:
                return timed
            refuted |= {self.meaning(found.design)}

    def _untimed(self, params: Params, refuted: frozenset[Hashable]) -> Evaluation:
        if params.get("allocation") == FITTED:
            key: Hashable = tuple(self.space.settings(params).items())
            return self._remembered.find((refuted, key), params, lambda: self._fitted(params, refuted))
        return self._with_memories(self.outlook_of(self.space.design(params), params, refuted), params, refuted)

    def outlook_of(self, design: Design, params: Params, refuted: frozenset[Hashable] = frozenset()) -> Evaluation:
        """The same of one of the designs that a setting may come to, whether that keeps to the limits or not."""
        safe = (meaning := self.meaning(design)) in refuted
        return self._remembered.find((safe, meaning), params, lambda: self._model(design, dict(params), safe=safe))

    def _runs_through(self, design: Design) -> bool:
        """Whether it is seen to, with the depths that were assumed."""
        verdicts: dict[Hashable, bool] = self.__dict__["_run_through"]
        if (meaning := self.meaning(design)) not in verdicts:
            network = self.assembler.network(design)
            verdicts[meaning] = runs_through(network, self.platform, self.clock_mhz, design.fifo_depths)
        return verdicts[meaning]

    @property
    def _remembered(self) -> Remembered:
        return self.__dict__["_seen"]

    def _fitted(self, params: Params, refuted: frozenset[Hashable]) -> Evaluation:
        """A design of a fitted setting that keeps to the limits, if there is one."""
        settings, fitting = self.space.settings(params), self.space.fitting
        mixed, spills = any(walk.mixed for walk in fitting.walks(settings).values()), fitting.spills(settings)

        def model(allowance: Allowance) -> Evaluation:
            design = self.space.fitted(params, allowance)
            return self._with_memories(self.outlook_of(design, params, refuted), params, refuted)

        return fitted(model, self.may_use, int(settings[SHARE]), mixed=mixed, spills=spills)

    def _with_memories(self, found: Evaluation, params: Params, refuted: frozenset[Hashable]) -> Evaluation:
        """The same design with memories built otherwise, where it may fit then and does not as it is."""

        def of_kernels() -> int:
            return memory_luts(self.assembler.network(found.design))

        if not may_fit_otherwise(found.figures, self.may_use, of_kernels):
            return found
        meaning = self.meaning(found.design)
        key = (_IN_MEMORIES, meaning in refuted, meaning)
        return self._remembered.find(key, params, lambda: self._in_memories(found))

    def _in_memories(self, evaluation: Evaluation) -> Evaluation:
        """The same design with memories and FIFOs built of what there is more of, if it fits then."""
        if (built := self._allocated(evaluation.design, {}, _SO_NEAR)) is None:
            return evaluation
        design = evaluation.design.with_placement({}, {name: use.kind for name, use in built.uses.items()}).allocated()
        return self.counted(replace(evaluation, design=design), built.used(WHOLE_CHIP))

    def _allocated(self, design: Design, kinds: Mapping[str, str], gap: float) -> Allocation | None:
        """What a design's memories are built of, those in `kinds` as these say; None where there are not enough."""
        network = self.assembler.network(design)
        try:
            return allocate_whole(network, self.assembler.library, self.may_use, kinds, gap, explain=False)
        except PenstockError as error:
            if error.code not in NO_MEMORY:
                raise
            return None

    def counted(self, evaluation: Evaluation, resources: Resources) -> Evaluation:
        """The same with another count of what it takes."""
        figures = replace(evaluation.figures, resources=resources)
        return replace(evaluation, figures=figures, shares=resources.share_of(self.platform.limits))

    def means(self, params: Params) -> Hashable:
        """What two settings have in common if they mean the same design; two of which one is fitted may have not."""
        found = self.meaning(self.space.design(params))
        if params.get("allocation") != FITTED:
            return found
        # what operators are left is found by modelling, from this design on
        return FITTED, self.space.settings(params)[SHARE], found

    @staticmethod
    def meaning(design: Design) -> Hashable:
        """What two designs of this space have in common exactly if they are the same: quicker than a digest."""
        kernels = [
            (layer, k.tile, k.unroll, k.order, k.weights, k.interval, k.reload, tuple(sorted(k.bindings.items())))
            for layer, k in design.kernels.items()
        ]
        sharing = (design.stripes, design.few_banks, design.prefetch_bits, design.equalisation, design.mapping)
        return tuple(kernels), tuple(sorted(design.groups.items())), *sharing

    def evaluate_design(self, design: Design) -> Evaluation:
        """Model a design given by hand. Depths that it names are kept, the others are found."""
        if design.platform != self.platform.name:
            raise PenstockError(
                code="bad-design", what=f"the design is for platform {design.platform}", where="platform",
                limit=f"it is evaluated for {self.platform.name}", hint="change the record or the option",
            )  # fmt: skip
        given = replace(design, clock_mhz=self.clock_mhz)
        found = self._model(given, {})
        timed = self._timed(found)
        if timed is not None and (not found.assumed or self._runs_through(found.design)):
            return replace(timed, assumed=False)
        return self._with_times(self._model(given, {}, safe=True))

    def tightened(
        self,
        evaluation: Evaluation,
        *,
        keep: Mapping[str, int] | None = None,
        simulations: int = SIMULATIONS,
        network: TaskNetwork | None = None,
        tolerance: float = 0.0,
        one_input: bool = False,
        progress: SizingProgress = lambda _: None,
    ) -> Evaluation:
        """The same design with the fewest bits of FIFO that cost no time beyond a `tolerance`, seen by simulation.

        Of several inputs in a row none ends later than with unbounded FIFOs, or than its equalisation lets it; of
        `one_input`, also where the goal `sizes_for_one`. Depths to `keep` stay. `network` is that which a tool made.
        """
        kept = {**self.assembler.declared_depths(evaluation.design), **(keep or {})}
        evaluation = replace(evaluation, design=evaluation.design.unallocated())
        planned, known = self.assembler.network(evaluation.design), evaluation.design.fifo_depths
        fifos = {name for name, channel in planned.channels.items() if channel.kind == "stream"}
        if fifos <= set(kept):
            return evaluation
        most = prefetched(evaluation.figures.channels, evaluation.design.prefetch_bits)
        singles, one_input = dict[str, int](), one_input or self.goal.sizes_for_one
        if one_input and network is None and not self.program.lengths:
            singles = large_single_blocks(planned, self.platform, self.clock_mhz, most, kept)
            planned = self.assembler.network(evaluation.design.with_fifo_depths({**known, **singles}))
        start = known if fifos <= set(known) else None

        def sized(network: TaskNetwork) -> DesignSizing:
            return size_design(
                network, self.platform, self.clock_mhz, simulations=simulations, start=start, most=most,
                progress=progress, equalisation=evaluation.design.equalisation, one_input=one_input,
                tolerance=tolerance,
            )  # fmt: skip

        found = sized(made := network or planned)
        depths, note, normal = dict(found.depths), found.note, found.normal
        if network is not None and not runs_through(planned, self.platform, self.clock_mhz, depths):
            also = sized(planned)  # deep enough for either: deeper ones never harm
            depths, note = {name: max(depth, also.depths[name]) for name, depth in depths.items()}, note or also.note
        depths |= singles | {name: depth for name, depth in kept.items() if name in planned.channels}
        if kept and not runs_through(made, self.platform, self.clock_mhz, depths):
            return evaluation
        if not self.program.lengths:
            depths |= single_blocks_held(made, self.platform, self.clock_mhz, depths, one_input)
        again = self._timed(self._model(evaluation.design.with_fifo_depths(depths), {}))
        if again is None or again.stops:  # single slots in a circle, which runs; what says its times does not see that
            again = self._with_times(self._model(evaluation.design.with_fifo_depths(two_slots(depths, kept)), {}))
        equalised = None if normal is None else Equalised(found.bits, found.latency, normal.bits, normal.latency)
        return replace(again, params=evaluation.params, sizing_note=note, equalised=equalised)

    def _timed(self, evaluation: Evaluation) -> Evaluation | None:
        """With what its FIFOs' depths cost; None where it stands still with such as are assumed to suffice.

        Where it does with any, loads that share a port hold each other up: that is a design not to choose, no error.
        """
        try:
            return self._with_times(evaluation)
        except ProfilingError as stopped:
            if stopped.kind != "deadlock":
                raise
            return None if evaluation.assumed else replace(evaluation, timed=True, stops=briefly(str(stopped.where)))

    def _with_times(self, evaluation: Evaluation) -> Evaluation:
        timing: DesignModel = self.__dict__["_timing"]
        network = self.assembler.network(evaluation.design.with_fifo_depths({}))
        free, depths = timing.figures(network, bounded=False), evaluation.design.fifo_depths
        figures = timing.with_depths(free, network, depths, seen=not evaluation.assumed)
        return replace(evaluation, figures=replace(figures, resources=evaluation.figures.resources), timed=True)

    def _model(self, design: Design, params: dict[str, Value], *, safe: bool = False) -> Evaluation:
        """With `safe` depths, or such as are assumed to suffice; its times are those of FIFOs that are never full."""
        timing: DesignModel = self.__dict__["_timing"]
        network = self.assembler.network(design)
        free = timing.figures(network, bounded=False)
        declared = self.assembler.declared_depths(design)
        given, ahead, assumed = design.fifo_depths, design.prefetch_bits, False
        if given or declared:
            known = {**safe_depths(free.channels, ahead), **declared}
            depths = given_depths(network, self.platform, self.clock_mhz, free.channels, known, given, ahead)
        elif safe:
            depths = safe_depths(free.channels, ahead)
        else:
            depths, assumed = assumed_depths(
                design, free.channels, self.goal, self.may_use, lambda slower: self._slower_channels(network, slower),
                lambda depths: timing.with_area(free, network, depths).resources, grouped=len(network.groups) > 1,
            )  # fmt: skip
        depths = {**(single_blocks(free.channels) if self.goal.sizes_for_one else {}), **depths}
        figures = timing.with_area(free, network, depths)
        design = design.with_fifo_depths(depths)
        cost = run_cost(network, self.platform, self.arithmetic_uj)
        dies: DieCheck = self.__dict__["_dies"]
        shares, fullest = figures.resources.share_of(self.platform.limits), dies.fullest(network, figures)
        use = routing_use(network, routing) if (routing := routing_of(self.platform)) is not None else None
        found = Evaluation(
            params, design, figures, shares, cost, self.goal, fullest, use, assumed=assumed, timed=False
        )  # fmt: skip
        return self._as_recorded(found) if design.memories else found

    def _slower_channels(self, network: TaskNetwork, equalisation: int) -> tuple[ChannelFigures, ...]:
        """When tokens of one input pass where tasks are as slow as an equalisation says; it is asked for no others."""
        timing: DesignModel = self.__dict__["_slower_timing"]
        return timing.figures(slower_tasks(network, equalisation), bounded=False).channels

    def _as_recorded(self, evaluation: Evaluation) -> Evaluation:
        """With memories built as the record says, where all of them can be."""
        built = self._allocated(evaluation.design, evaluation.design.memories, _LEAST)
        return evaluation if built is None else self.counted(evaluation, built.used(WHOLE_CHIP))
