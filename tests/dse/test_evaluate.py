"""Evaluation: the pieced-together network is the lowered one, depths are safe, constraints and reasons are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.parser import Parser

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design
from penstock.compiler.dialects import nest
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower
from penstock.compiler.plan.planner import Planner
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.schedule import load_library
from penstock.dse.evaluation.assemble import Assembler
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo import bridges, check_depths, safe_depths
from penstock.dse.search.descent import descend
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.model import ChannelFigures, DesignFigures, DesignModel
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.timeline import FreeTimeline
from tests.compiler.designs import Dense, build_network, designs, networks
from tests.profiling.model_profiler import model_design
from tests.profiling.steppers import flushed
from tests.schedule.gemms import gemm_program
from tests.transforms.test_pad_dims import lanes, of_body, tiled


def shape_of(network: TaskNetwork) -> object:
    """All that timing and area look at, without the names that nests keep for people."""
    tasks = {
        (task.name, task.group): [
            (n.iterations, n.block_iterations, n.ii, n.depth, n.memories, n.logic,
             [(b.kind, b.ii) for b in n.bounds], [(s.start, s.end) for s in n.stages],
             [(p.kind, p.direction, p.bits, p.stage, p.pattern,
               task.channel(p.channel) if p.kind != "external" else "") for p in n.ports])
            for n in task.nests
        ]
        for task in network.tasks
    }  # fmt: skip
    return tasks, dict(network.channels)


@given(st.data())
@settings(max_examples=10)
def test_the_pieces_make_the_network_that_lowering_makes(data: st.DataObject):
    program = data.draw(networks())
    platform = load_platform(data.draw(st.sampled_from(["u55c", "ecp5-85k"])))
    assembler = Assembler(program, platform, platform.clock_mhz)
    library = load_library(platform.operators, platform.clock_mhz)
    for _ in range(2):
        drawn = data.draw(designs(program.module, wide=platform.name == "u55c"))
        design = replace(drawn, platform=platform.name, clock_mhz=platform.clock_mhz)
        whole = network_of(lower(program, design).top, library)
        assert shape_of(assembler.network(design)) == shape_of(whole)


def test_the_pieces_of_a_padded_reduction_have_its_masks():
    program, platform = of_body("%t = math.exp %a : f32", "arith.addf", "0.0"), load_platform("u55c")
    assembler = Assembler(program, platform, 100.0)
    for count in (1, 2, 4):
        design = lanes(tiled(program, body=(3, 8), sum=(3, 8)), count)
        lowered = lower(program, design)
        assert any(isinstance(op, nest.WithinOp) for _, one in lowered.nests for op in one.body.block.ops)
        whole = network_of(lowered.top, assembler.library)
        assert shape_of(assembler.network(design)) == shape_of(whole)


def test_layers_that_are_spelled_alike_keep_their_own_channels():
    """`fc0.relu` and `fc0_relu` would be one name in C++."""
    program, platform = build_network("int8", 2, 4, (Dense(4, False, False),) * 2, seed=1), load_platform("u55c")
    text = str(program.module).replace('penstock.layer = "fc1"', 'penstock.layer = "fc0_relu"')
    alike = replace(program, module=Parser(make_context(), text).parse_module())
    design = default_design(read_graph(alike.module), platform.name, 300.0)
    assembled = Assembler(alike, platform, 300.0)
    whole = network_of(lower(alike, design).top, assembled.library)
    assert shape_of(assembled.network(design)) == shape_of(whole)
    assert {"fc0_relu", "fc0_relu_2"} <= {task.name for task in whole.tasks}


@given(st.data())
@settings(max_examples=8)
def test_a_model_that_remembers_other_designs_says_the_same(data: st.DataObject):
    program = data.draw(networks())
    platform = load_platform(data.draw(st.sampled_from(["u55c", "ecp5-85k"])))
    assembler, model = Assembler(program, platform, 100.0), DesignModel(platform, 100.0)
    for _ in range(3):
        network = assembler.network(data.draw(designs(program.module)))
        for bounded in (False, True):
            known = partial(model.figures, network, bounded=bounded)
            anew = partial(model_design, network, platform, 100.0, bounded=bounded)
            assert figures_or_deadlock(known) == figures_or_deadlock(anew)


@pytest.mark.parametrize("allocation", ["slowest-first", "paced"])
def test_a_network_that_was_just_made_is_not_made_again_for_its_depths(
    allocation: str, monkeypatch: pytest.MonkeyPatch
):
    """It is the one that the design with its depths has, and gives the same figures to the bit."""
    program = build_network("int8", 4, 12, (Dense(8, False, True), Dense(5, False, False)), seed=1)
    evaluator = Evaluator.create(program, "u55c")
    assert isinstance(evaluator.assembler, Assembler)
    made, whole = list[Design](), evaluator.assembler.planner

    def planner(design: Design) -> Planner:
        made.append(design)
        return whole(design)

    monkeypatch.setattr(evaluator.assembler, "planner", planner)
    params = {**evaluator.space.default_params(), "allocation": allocation}
    found = evaluator.assume(params)
    assert found.design.fifo_depths
    assert evaluator.evaluate_design(found.design).figures == found.figures, "with its depths given"
    assert len(made) == 1


def figures_or_deadlock(model: Callable[[], DesignFigures]) -> DesignFigures | str:
    """Depths that were drawn may be too shallow where paths meet again."""
    try:
        return model()
    except ProfilingError as stuck:
        if stuck.kind != "deadlock":
            raise
        return stuck.what


@given(st.data())
@settings(max_examples=10)
def test_chosen_depths_never_deadlock_and_cost_no_time(data: st.DataObject):
    """At the chosen depths the design runs, and as fast as if only blocks held it back."""
    program = data.draw(networks())
    evaluator = Evaluator.create(program, "u55c")
    evaluation = evaluator.evaluate_design(replace(data.draw(designs(program.module)), fifo_depths={}))
    network = evaluator.assembler.network(evaluation.design)
    endless = {n: 10**6 for n, c in network.channels.items() if c.kind == "stream"}
    board, clock = evaluator.platform, 250.0
    free = FreeTimeline(network, read_stage=1, platform=board, clock_mhz=clock)
    chosen, unbounded = free.bounded(network), free.bounded(network.with_depths(endless))
    assert chosen.latency == unbounded.latency
    figures = model_design(network, evaluator.platform, 250.0)
    assert (evaluation.figures.latency, evaluation.figures.resources) == (figures.latency, figures.resources)


@given(st.data())
@settings(max_examples=15)
def test_chosen_depths_never_deadlock_whatever_the_real_times_are(data: st.DataObject):
    """Every nest at another pace than was modelled, under both kinds of pipelines."""
    program = data.draw(networks())
    evaluator = Evaluator.create(program, "u55c")
    design = evaluator.evaluate_design(data.draw(designs(program.module))).design
    network = evaluator.assembler.network(design)
    tasks = [
        replace(task, nests=tuple(replace(n, ii=data.draw(st.integers(1, 9)), depth=n.depth) for n in task.nests))
        for task in network.tasks
    ]
    drawn = replace(network, tasks=tuple(tasks))
    for other in (drawn, flushed(drawn)):
        free = FreeTimeline(other, read_stage=1, platform=evaluator.platform, clock_mhz=250.0)
        timeline = free.bounded(other)
        assert timeline.latency >= max(timeline.busy.values())


def residual() -> Program:
    return build_network("int8", None, 8, (Dense(8, False, True), Dense(8, False, False)), seed=3)


@given(st.data())
@settings(max_examples=3)
def test_an_outlook_is_the_design_and_no_slower_than_it(data: st.DataObject):
    """What a setting takes is known before it is timed; what leaves out what cannot win finds a design as good."""
    program = data.draw(networks())
    limit = data.draw(st.sampled_from(["lut<=2000", "lut<=0.5", "bram18<=8"]))
    quick = Evaluator.create(program, "ecp5-85k", goal=Goal.of(limits=[limit]))
    for params in quick.space.first_settings():
        ahead, timed = quick.outlook(params), quick.assume(params)
        assert timed.timed
        assert ahead.figures.latency <= timed.figures.latency
        if ahead.design.fifo_depths == timed.design.fifo_depths:
            assert (ahead.design, ahead.figures.resources) == (timed.design, timed.figures.resources)
    # a limit that none misses, but which a slower design might keep better
    patient = Evaluator.create(program, "ecp5-85k", goal=Goal.of(limits=[limit, "power_w<=1000"]))
    assert quick.goal.time_only_costs
    assert not patient.goal.time_only_costs
    one, other = descend(quick), descend(patient)
    assert one is not None
    assert other is not None
    assert one.best.values == other.best.values  # of designs that are as good, either may be met first


def test_a_skipped_connection_has_room_for_all_of_its_tokens():
    evaluation = Evaluator.create(residual(), "u55c").evaluate({})
    alone = bridges(evaluation.figures.channels)
    around = [c for c in evaluation.figures.channels if c.name not in alone and c.kind == "stream"]
    assert len(around) >= 3
    for channel in around:
        assert evaluation.design.fifo_depths[channel.name] == max(2, channel.tokens)


def test_depths_by_hand_that_deadlock_are_refused_and_others_simulated():
    """Too little on a path that parts and meets again is refused, unless a simulation runs through."""
    evaluator = Evaluator.create(residual(), "u55c")
    design = evaluator.evaluate({}).design
    alone = bridges(evaluator.evaluate({}).figures.channels)
    with pytest.raises(PenstockError, match=r"waits for .* is full") as caught:
        evaluator.evaluate_design(design.with_fifo_depths(dict.fromkeys(design.fifo_depths, 1)))
    assert caught.value.where.removeprefix("fifo_depths.") not in alone
    risky = next(name for name, depth in design.fifo_depths.items() if name not in alone and depth > 2)
    assert evaluator.evaluate_design(design.with_fifo_depths({risky: 1})).design.fifo_depths[risky] == 1
    safe = next(name for name in design.fifo_depths if name in alone)
    assert evaluator.evaluate_design(design.with_fifo_depths({safe: 9})).design.fifo_depths[safe] == 9


def channel(name: str, writer: str, reader: str, tokens: int = 8, high_water: int = 3, kind: str = "stream"):
    return ChannelFigures(name, kind, writer, reader, 2, 8, tokens, high_water, 2, Resources())


def test_bridges_are_what_holds_the_network_together():
    diamond = [channel("a", "s", "f"), channel("b", "f", "g"), channel("c", "f", "h"),
               channel("d", "g", "j"), channel("e", "h", "j"), channel("o", "j", "t")]  # fmt: skip
    assert bridges(diamond) == {"a", "o"}
    assert safe_depths(diamond) == {"a": 2, "b": 8, "c": 8, "d": 8, "e": 8, "o": 2}
    branch = [channel("a", "f", "g", high_water=5), channel("b", "f", "h", high_water=5)]
    assert safe_depths(branch) == {"a": 5, "b": 5}
    twins = [channel("a", "s", "t"), channel("b", "s", "t")]
    assert bridges(twins) == set()
    with pytest.raises(PenstockError):
        check_depths(twins, {"a": 2})
    check_depths(twins, {"a": 8})


def test_two_sources_for_two_readers_are_a_cycle_too():
    """No path meets another's start here, and still each reader may wait for the source that the other blocks."""
    crossed = [channel(w + r, w, r) for w in "ab" for r in "cd"]
    assert bridges(crossed) == set()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=16))
def test_without_a_bridge_there_are_more_parts_and_without_another_channel_there_are_not(ends: list[tuple[int, int]]):
    listed = [channel(f"c{n}", f"t{writer}", f"t{reader}") for n, (writer, reader) in enumerate(ends)]

    def parts(without: int | None = None) -> int:
        graph = nx.Graph(one for n, one in enumerate(ends) if n != without)
        graph.add_nodes_from(task for one in ends for task in one)
        return nx.number_connected_components(graph)

    assert bridges(listed) == {f"c{n}" for n in range(len(ends)) if parts(n) > parts()}


def test_constraints_are_shares_of_the_safe_limits():
    program = build_network("float32", None, 8, (Dense(8, False, False),), seed=1)
    evaluator = Evaluator.create(program, "u55c")
    evaluation = evaluator.evaluate({})
    limits = evaluator.platform.limits.as_dict()
    for name, used in evaluation.figures.resources.items():
        assert evaluation.constraints[name] == pytest.approx(used / limits[name] - 1)
    assert evaluation.feasible
    assert evaluation.values == (evaluation.figures.latency, max(evaluation.shares.values()))
    assert evaluation.evidence == "modelled"
    assert evaluation.binding_resource in evaluation.explanation


def test_a_design_that_is_too_large_says_of_what():
    program = build_network("float32", None, 64, (Dense(64, False, False),), seed=1)
    evaluator = Evaluator.create(program, "ecp5-25k", options=TilingOptions(max_lanes=64))
    evaluation = evaluator.evaluate({"overall_unroll_size": 64, "default_tile_size": 64})
    assert not evaluation.feasible
    assert evaluation.constraints["lut"] > 0
    assert "Over the limit" in evaluation.explanation


def test_a_design_for_another_platform_is_refused():
    program = build_network("int8", None, 4, (Dense(4, False, False),), seed=1)
    design = Evaluator.create(program, "u55c").evaluate({}).design
    with pytest.raises(PenstockError, match="for platform u55c"):
        Evaluator.create(program, "u280").evaluate_design(design)


@pytest.mark.parametrize(("platform", "clock"), [("nowhere", None), ("u55c", 2000.0), ("u55c", 0.0)])
def test_platform_and_clock_are_checked(platform: str, clock: float | None):
    program = build_network("int8", None, 4, (Dense(4, False, False),), seed=1)
    with pytest.raises(PenstockError):
        Evaluator.create(program, platform, clock_mhz=clock)


def test_a_piece_is_lowered_once():
    program = build_network("int8", None, 8, (Dense(8, False, False), Dense(8, False, False)), seed=1)
    evaluator = Evaluator.create(program, "u55c")
    params = evaluator.space.default_params()
    first = evaluator.evaluate(params)
    pieces = evaluator.assembler.pieces
    assert evaluator.evaluate(params) == first
    assert evaluator.assembler.pieces == pieces > 0


def test_an_operator_without_figures_is_named_with_its_layer():
    text = """
func.func @main(%x: tensor<8xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>)
      attrs = {penstock.layer = "squash"} {
    ^bb0(%a: f32, %old: f32):
      %t = math.atan %a : f32
      linalg.yield %t : f32
  } -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}"""
    port = Port("x", (8,), "float32")
    program = Program("p", Parser(make_context(), text).parse_module(), {}, Signature((port,), (port,)))
    with pytest.raises(PenstockError, match=r"math\.atan") as caught:
        Evaluator.create(program, "u55c").evaluate({})
    assert caught.value.code == "unknown-operator"
    assert caught.value.where == "squash"


def test_memories_are_built_otherwise_whoever_shares_out_lanes():
    program = gemm_program(64, 512, 512, "int8")
    free, short = (Evaluator.create(program, "u55c", goal=Goal.of((), limits)) for limits in ((), ("bram18<=20",)))
    for setting in (free.space.paced_settings()[0], free.space.fitted_setting()):
        usual, other = free.evaluate(setting), short.evaluate(setting)
        assert usual.figures.resources.bram18 > 20
        assert not usual.design.memories
        assert other.feasible
        assert other.figures.latency == usual.figures.latency
