"""Inputs that follow each other: the model's interval is one that simulation confirms, and no design ends a search."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from torch import Tensor, nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.platforms import Resources
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import STOPS, Goal
from penstock.dse.fifo import roomy_or_slower
from penstock.dse.rungs import FRAMES, simulate_inputs, steady_interval
from penstock.dse.search.descent import descend
from penstock.dse.search.explore import explore
from penstock.dse.space.external import STRIPES
from penstock.dse.space.tiling import TilingOptions, Value
from penstock.profiling.channel_times import ChannelTimes
from penstock.profiling.model import ChannelFigures, DesignModel
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.simulated import simulate_design
from penstock.profiling.waiting import most_of_all
from tests.compiler.designs import Dense, build_network
from tests.compiler.frames import imported

MARGIN, ACCESS = 0.05, 64
"""By so much of the simulated interval, and by one access to external memory, may the modelled one be better."""

CNNS = (
    ("zoo:lenet5", True),
    ("zoo:resnet8?side=16", True),
    ("zoo:resnet18?side=32&outputs=10", False),
    ("zoo:mobilenet_v2?side=32&outputs=10", True),
)
"""Networks, and whether their first guess is tried too."""


def for_frames(program: Program, platform: str, *, quantize: str | None = None, stream: bool = True) -> Evaluator:
    options = TilingOptions(weights="stream") if stream else None
    return Evaluator.create(program, platform, quantize=quantize, options=options, goal=Goal.of(("throughput",), ()))


def simulated_interval(evaluator: Evaluator, found: Evaluation) -> int:
    network = evaluator.assembler.network(found.design)
    run = simulate_design(network, evaluator.platform, evaluator.clock_mhz, frames=FRAMES)
    assert run.deadlock is None
    interval = steady_interval(run)
    assert interval is not None
    return interval


def drawn(seed: int, count: int) -> tuple[Evaluator, list[dict[str, Value]]]:
    """A random network of dense layers on a card, and some settings of its space."""
    draw = Random(seed)
    sizes = [draw.choice((32, 64, 96, 128)) for _ in range(draw.randint(3, 10))]
    dense = tuple(Dense(n, True, draw.random() < 0.5) for n in sizes[1:])
    evaluator = for_frames(build_network("int8", None, sizes[0], dense, seed=seed), draw.choice(("u55c", "kv260")))
    return evaluator, [{n: draw.choice(values) for n, values in evaluator.space.choices.items()} for _ in range(count)]


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1, 2, 3])
def test_random_designs_take_no_longer_between_inputs_than_modelled(seed: int) -> None:
    evaluator, settings = drawn(seed, 3)
    for choices in settings:
        found = evaluator.evaluate(choices)
        if not found.stops:
            assert found.figures.interval >= (1 - MARGIN) * (simulated_interval(evaluator, found) - ACCESS), choices


@pytest.mark.parametrize("prefetch", [0, 1 << 17])
def test_a_port_brings_the_first_layers_weights_when_the_last_ones_have_passed(prefetch: int) -> None:
    """Tensors lie in several banks each, so that all layers wait for all others of the input before."""
    layers = tuple(Dense(128, True, n % 3 == 0) for n in range(11))
    evaluator = for_frames(build_network("int8", None, 128, layers, seed=1), "u55c")
    design = evaluator.evaluate({"overall_unroll_size": 1024, "default_tile_size": 64}).design
    found = evaluator.evaluate_design(replace(design, prefetch_bits=prefetch, fifo_depths={}))
    simulated = simulated_interval(evaluator, found)
    assert found.figures.interval > 1.5 * max(task.latency for task in found.figures.tasks)
    assert (1 - MARGIN) * (simulated - ACCESS) <= found.figures.interval <= 1.3 * simulated


def test_a_search_for_frames_takes_a_bank_a_tensor_where_shared_ports_would_wait() -> None:
    evaluator = for_frames(
        build_network("int8", None, 128, tuple(Dense(128, True, False) for _ in range(11)), seed=1), "u55c"
    )
    found = descend(evaluator, enough=float("inf"))
    assert found is not None
    best = found.best
    shared = evaluator.evaluate({**best.params, STRIPES: evaluator.space.choices[STRIPES][-1]})
    assert best.design.stripes == 1
    assert best.figures.interval < shared.figures.interval
    assert simulated_interval(evaluator, best) < simulated_interval(evaluator, shared)


def test_layers_with_their_weights_on_the_chip_do_not_hold_each_other_up() -> None:
    """One load feeds all of them, and FIFOs behind what is computed were as shallow as its own: a frame's first rows
    had no place before a layer that was still with the frame before, and frames came half as fast as modelled."""
    body = nn.Sequential(nn.Conv2d(2, 4, 5), nn.ReLU(), nn.Conv2d(4, 8, 5), nn.ReLU(), nn.Conv2d(8, 4, 3))
    program = prepare(imported(body, (1, 2, 16, 16)), "w8a8")
    evaluator = for_frames(program, "kv260", quantize="w8a8", stream=False)
    found = evaluator.evaluate({"allocation": "paced", "overall_unroll_size": 64})
    assert {evaluator.space.stores.at(op.layer) for op in evaluator.space.graph.operations} == {"rom"}
    assert found.figures.interval >= (1 - MARGIN) * (simulated_interval(evaluator, found) - ACCESS)


def test_a_frame_waits_before_its_windows_for_a_layer_that_wants_it_all_at_once() -> None:
    """It passes while the first results of the layer behind it are made: without room for it, it was made in one
    interval and used in the next, and frames took 273,388 cycles where 196,615 were modelled."""
    body = nn.Sequential(nn.Conv2d(3, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1))
    evaluator = Evaluator.create(
        prepare(imported(body, (1, 3, 8, 8)), "w8a8"), "zu3eg", quantize="w8a8",
        options=TilingOptions(weights="stream"), goal=Goal.of(("throughput",), ["dsp<=60"]),
    )  # fmt: skip
    found = evaluator.evaluate(evaluator.space.fitted_setting())
    assert found.figures.interval >= (1 - MARGIN) * simulated_interval(evaluator, found)
    deepest = max(found.figures.channels, key=lambda channel: channel.depth * channel.bits)
    assert deepest.depth * deepest.bits <= 8 * 128 * 8 * 8  # the frame, not the nine places of its windows


class Expanding(nn.Module):
    def __init__(self, channels: int, inside: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, inside, 1), nn.ReLU(),
            nn.Conv2d(inside, inside, 3, padding=1, groups=inside), nn.ReLU(), nn.Conv2d(inside, channels, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


@pytest.mark.parametrize(("channels", "inside", "side"), [(16, 64, 12), (32, 128, 8)])
def test_frames_on_a_crowded_chip_are_as_far_apart_as_modelled(channels: int, inside: int, side: int) -> None:
    """FIFOs hold what one frame leaves waiting, and no more: layers take turns with two frames, and no task's time
    says so."""
    blocks = [Expanding(channels, inside) for _ in range(2)]
    body = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), *blocks, nn.Conv2d(channels, 32, 1))
    evaluator = Evaluator.create(
        prepare(imported(body, (1, 3, side, side)), "w8a8"), "zu3eg", quantize="w8a8",
        goal=Goal.of(("throughput",), ["bram18<=8"]),
    )  # fmt: skip
    found = evaluator.evaluate(evaluator.space.fitted_setting())
    assert found.figures.interval > 1.08 * max(task.latency for task in found.figures.tasks)
    assert found.figures.interval == pytest.approx(simulated_interval(evaluator, found), rel=0.01)


def test_what_waits_for_the_input_before_has_room_where_a_designs_own_pace_has_none() -> None:
    """A burst that costs much memory is no reason to let frames wait in front of their reader."""
    area = Resources()
    burst = ChannelFigures("burst", "stream", "a", "b", 2, 768, 9000, 5000, 20, area)
    frame = ChannelFigures("frame", "stream", "b", "c", 2, 8, 1000, 30, 30, area, waiting=900)
    safe = {"burst": 20, "frame": 30}
    found, _ = roomy_or_slower((burst, frame), lambda: (burst, frame), safe, 20_000_000)
    assert (found["burst"], found["frame"]) == (7502, 1000)
    found, _ = roomy_or_slower((burst, frame), lambda: (burst, frame), safe, 1_000_000)
    assert (found["burst"], found["frame"]) == (20, 930)
    found, _ = roomy_or_slower((burst, frame), lambda: (burst, frame), safe, 20_000)
    assert found == safe


def test_one_input_waits_in_shallower_fifos_where_a_small_chip_has_no_room_for_its_own_pace() -> None:
    """What fast layers leave before a slow one takes 36 blocks: no lanes less would change that."""
    blocks = [Expanding(8, 32) for _ in range(3)]
    program = prepare(imported(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *blocks), (1, 3, 24, 24)), "w8a8")
    found = list[Evaluation]()
    for left in (432, 8):
        goal = Goal.of(("latency",), [f"bram18<={left}"])
        evaluator = Evaluator.create(program, "zu3eg", quantize="w8a8", goal=goal)
        found.append(best := evaluator.evaluate(evaluator.space.fitted_setting()))
        network = evaluator.assembler.network(best.design)
        depths = dict(best.design.fifo_depths)
        run = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=depths)
        assert best.feasible
        assert run.latency == pytest.approx(best.values[0], rel=0.05)
    roomy, tight = found
    assert tight.values[0] <= 1.05 * roomy.values[0]


def test_fifos_of_slower_tasks_where_those_of_a_designs_own_pace_are_larger_still() -> None:
    """Rows of windows wait before a slow layer, and as many inputs as there are under way before another. Where neither
    has room, it is what one input leaves waiting if all go as slowly as the slowest."""
    area = Resources()
    rows = ChannelFigures("rows", "stream", "a", "b", 2, 72, 9000, 5000, 5000, area)
    frame = ChannelFigures("frame", "stream", "b", "c", 2, 8, 90_000, 30, 30, area, waiting=80_000)
    safe = {"rows": 5000, "frame": 30}
    slower = (replace(rows, high_water=40, least_depth=40), frame)
    asked: list[str] = []

    def slowly() -> tuple[ChannelFigures, ...]:
        asked.append("slower tasks")
        return slower

    found, doubtful = roomy_or_slower((rows, frame), slowly, safe, 100_000)
    assert (found, doubtful) == ({"rows": 40, "frame": 30}, False)
    assert len(asked) == 1, "to model slower tasks takes as long as to model the design"
    found, _ = roomy_or_slower((rows, frame), lambda: slower, safe, 400_000)
    assert found == safe, "it has room"
    found, _ = roomy_or_slower((rows, frame), lambda: slower, safe, 650_000)
    assert found == {"rows": 62, "frame": 80_030}, "each as shallow as any pace lets it be"


def test_a_fifo_beside_several_slow_tasks_holds_as_many_inputs_as_these() -> None:
    """One input alone fills it once; of inputs that follow each other three are under way at the same time."""
    tokens = np.arange(10)
    times = ChannelTimes(tokens, 10, tokens, tokens, tokens + 290)
    assert times.high_water == 10
    assert most_of_all(times, 0, 0, 0, 100) == 30
    assert most_of_all(times, 0, 0, 0, 1000) == 10
    assert most_of_all(times, 0, 0, 100, 100) == 40
    assert most_of_all(times, 280, 0, 0, 1000) == 10
    assert most_of_all(times, 295, 0, 0, 1000) == 5  # the first five are written and read in the same cycle


@pytest.mark.slow
@pytest.mark.parametrize(("model", "guess"), CNNS)
def test_small_frames_take_no_longer_than_modelled(model: str, guess: bool) -> None:
    evaluator = for_frames(prepare(import_model(model), "w8a8"), "u55c", quantize="w8a8")
    for setting in ({}, evaluator.space.fitted_setting())[not guess :]:
        found = evaluator.evaluate(setting)
        assert found.figures.interval >= (1 - MARGIN) * (simulated_interval(evaluator, found) - ACCESS), setting


def test_a_design_that_stops_is_no_choice_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise ProfilingError("deadlock", what="the network does not settle", where="one, other")

    monkeypatch.setattr(DesignModel, "with_depths", stopped)
    evaluator = for_frames(
        build_network("int8", None, 32, (Dense(32, True, True), Dense(32, True, False)), seed=1), "u55c"
    )
    found = evaluator.evaluate({})
    assert found.stops
    assert not found.feasible
    assert not found.may_be_chosen
    assert found.constraints[STOPS] > 0
    assert "stops for ever" in found.explanation
    with pytest.raises(PenstockError) as none:
        explore(evaluator, 2)
    assert none.value.code == "nothing-fits"
    assert "stops for ever" in none.value.limit


@pytest.mark.parametrize("name", ["zoo:lenet5", "zoo:resnet8?side=16"])
def test_fewer_inputs_of_long_ones_show_the_interval_that_all_do(name: str) -> None:
    evaluator = for_frames(prepare(import_model(name), "w8a8"), "u55c", stream=False)
    found = evaluator.evaluate(evaluator.space.fitted_setting())
    network = evaluator.assembler.network(found.design)
    few = simulate_inputs(network, evaluator.platform, evaluator.clock_mhz, long=0)
    assert len(few.frame_ends) < FRAMES
    assert steady_interval(few) == simulated_interval(evaluator, found)


def test_as_many_are_simulated_as_usual_where_the_first_ones_come_sooner_than_the_next() -> None:
    """FIFOs that hold whole inputs let the first ones pass faster than the slowest task can."""
    evaluator, settings = drawn(23, 6)
    runs = [
        simulate_inputs(evaluator.assembler.network(one.design), evaluator.platform, evaluator.clock_mhz, long=0)
        for one in map(evaluator.evaluate, settings) if not one.stops
    ]  # fmt: skip
    assert FRAMES in {len(run.frame_ends) for run in runs if run.deadlock is None}
