"""Loads that share ports: what is small passes first and is held whole, no amount of running ahead stops a design."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from random import Random

import pytest

from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.plan.parts import Loading, Part
from penstock.compiler.plan.planner import Planner
from penstock.compiler.plan.port_tasks import whole_bits
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluation, Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo import safe_depths
from penstock.dse.space.fitted import IN_TURN
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network

AHEAD = (0, 1 << 12, 1 << 17, 1 << 22)


def layers(seed: int, *sizes: int) -> Program:
    """Each has weights and a bias of its own."""
    first, *others = sizes
    return build_network("int8", None, first, tuple(Dense(n, True, n % 3 == 0) for n in others), seed=seed)


def evaluator_of(program: Program, *limits: str) -> Evaluator:
    goal = Goal.of(("latency",), limits) if limits else None
    return Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"), goal=goal)


def with_ahead(evaluator: Evaluator, ahead: int) -> Evaluation:
    found = evaluator.evaluate({"overall_unroll_size": 4096, "default_tile_size": 64}).design
    assert found.stripes == 32
    return evaluator.evaluate_design(replace(found, prefetch_bits=ahead, fifo_depths={}))


def test_what_is_small_passes_before_the_weights_wanted_before_it() -> None:
    evaluator = evaluator_of(layers(1, 256, 256, 128))
    design = with_ahead(evaluator, 1 << 17).design
    (kernel,) = Planner(evaluator.space.graph, evaluator.platform).plan(design).kernels
    loads = {
        part.turn: part.does.transfer.words for part in kernel.parts if isinstance(part.does, Loading) and part.ports
    }
    sizes = [words.bits * words.kind.token_count for _, words in sorted(loads.items())]
    large = [n for n, bits in enumerate(sizes) if bits > whole_bits(1 << 17, striped=True)]
    assert large, "the first layer's weights are too large to be held"
    assert all(bits <= whole_bits(1 << 17, striped=True) for bits in sizes[: large[0]])
    assert large[0] > 0, "its bias is wanted after them, and passes before"


def shared_loads(evaluator: Evaluator, design: Design) -> list[Part]:
    """All loads that share ports, in turn."""
    (kernel,) = Planner(evaluator.space.graph, evaluator.platform).plan(design).kernels
    return sorted((part for part in kernel.parts if part.ports), key=lambda part: part.turn)


def bits_of(part: Part) -> float:
    """What each of its ports brings."""
    assert isinstance(part.does, Loading)
    words = part.does.transfer.words
    return words.bits * words.kind.token_count / len(part.ports)


@pytest.mark.parametrize("sizes", [(256, 256, 128, 512), (64, 320, 96, 256, 256), (512, 64, 512, 64, 512, 64)])
def test_a_load_takes_the_ports_that_are_done_soonest(sizes: tuple[int, ...]) -> None:
    """Small tensors before it do not push a striped one onto a port that brings another, or out of line with others.

    What lies in one half of the banks is read beside them, wherever on the chip that is: a tensor across both halves
    has its wires run to both.
    """
    evaluator = evaluator_of(layers(1, *sizes))
    filled = {f"port{n}": 0.0 for n in range(32)}
    loads = shared_loads(evaluator, with_ahead(evaluator, 1 << 17).design)
    assert len({len(part.ports) for part in loads}) > 1
    for part in loads:
        width = len(part.ports)
        sides = [tuple(f"port{n}" for n in range(first, first + width)) for first in range(0, 32, width)]
        assert part.ports in sides
        done = {side: max(filled[port] for port in side) for side in sides}
        assert done[part.ports] == min(done.values())
        for port in part.ports:
            filled[port] += bits_of(part)


def behind(part: Part) -> set[Part]:
    """All that gets something of it, in the end."""
    found, waiting = set[Part](), [part]
    while waiting:
        readers = [s.reader for s in waiting.pop().outputs if s.reader is not None and s.reader not in found]
        found.update(readers)
        waiting += readers
    return found


def test_of_two_branches_the_longer_one_is_loaded_first() -> None:
    """Scores need the keys; what they weigh, the values, is later. No load waits for one behind it on its port."""
    program = prepare(import_model("zoo:gpt2?size=small&mode=decode&cache=256"), "w8a8")
    evaluator = Evaluator.create(program, "u55c", quantize="w8a8", options=TilingOptions(weights="stream"))
    loads = shared_loads(evaluator, evaluator.space.design({}))
    turns = {part.label: part.turn for part in loads}
    assert turns["load_key_cache"] < turns["load_attn_mm_3_1"] < turns["load_value_cache"]
    first = [next(p for p in (part.outputs[0].reader,) if p is not None) for part in loads]
    for number, part in enumerate(loads):
        for later, reader in zip(loads[number + 1 :], first[number + 1 :], strict=True):
            if bits_of(part) * len(part.ports) > whole_bits(1 << 17, striped=True):
                assert first[number] not in behind(reader), (part.label, later.label)


@pytest.mark.parametrize("prefetch", [1 << 17, 1 << 22])
def test_scales_pass_before_the_weights_of_what_they_scale(prefetch: int) -> None:
    """However little is behind their reader, and though they are no small tensors, as far as they are held whole."""
    program = prepare(import_model("zoo:llama?d=768&heads=4&ffn=4608&mode=decode&cache=64"), "w8a8")
    evaluator = Evaluator.create(program, "u55c", quantize="w8a8", options=TilingOptions(weights="stream"))
    design = replace(evaluator.space.design({}), prefetch_bits=prefetch)
    loads = {part.label.removeprefix("load_"): part for part in shared_loads(evaluator, design)}
    assert loads["self_attn_v_proj_requantise_1"].turn < loads["self_attn_v_proj_1"].turn
    scales = loads["mlp_mul_1"]
    size = bits_of(scales) * len(scales.ports)
    assert whole_bits(prefetch, striped=True) < size < 1 << 22
    last = max(loads[f"mlp_{name}_proj_1"].turn for name in ("gate", "up"))
    assert (scales.turn < last) == (size <= prefetch)
    found = evaluator.evaluate_design(replace(design, fifo_depths={}))
    network = evaluator.assembler.network(found.design)
    depths = dict(found.design.fifo_depths)
    assert simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=depths).deadlock is None


@pytest.mark.parametrize("seed", range(2))
def test_no_amount_of_running_ahead_stops_a_design(seed: int) -> None:
    draw = Random(seed)
    sizes = [draw.choice((64, 96, 128, 256, 320)) for _ in range(7)]
    evaluator = evaluator_of(layers(seed, *sizes))
    latencies: list[int] = []
    for ahead in AHEAD:
        found = with_ahead(evaluator, ahead)
        network, depths = evaluator.assembler.network(found.design), dict(found.design.fifo_depths)
        simulated = simulate_design(network, load_platform("u55c"), evaluator.clock_mhz, depths=depths)
        assert simulated.deadlock is None
        latencies.append(simulated.latency)
        shared = [
            c for c in found.figures.channels if c.prefetch is not None and c.prefetch.shared and c.prefetch.depth
        ]
        assert shared
        for c in shared:
            covered = c.prefetch.depth * c.bits if c.prefetch else 0
            parts = c.prefetch.parts if c.prefetch else 1
            assert depths[c.name] * c.bits <= max(ahead / parts, covered, 2 * c.bits)
    assert latencies[-1] <= latencies[0]


def test_a_tensor_that_is_held_whole_is_held_whole() -> None:
    evaluator = evaluator_of(layers(3, *[64] * 18))
    channels = with_ahead(evaluator, 1 << 17).figures.channels
    small = [c for c in channels if c.prefetch is not None and c.prefetch.shared and c.prefetch.depth]
    assert small
    assert all(safe_depths(channels)[c.name] >= c.tokens for c in small)


def test_lanes_in_turn_take_the_least_sum_of_times() -> None:
    evaluator = evaluator_of(layers(5, 64, 1024, 64, 256))
    plain = evaluator.space.fitted_setting()

    def times(in_turn: bool) -> int:
        kernels = evaluator.space.design({**plain, IN_TURN: in_turn, "limit_share": 10}).kernels
        return sum(prod(op.trips) // kernels[op.layer].lanes for op in evaluator.space.graph.operations)

    assert times(True) < times(False)


def test_fifo_bits_can_be_limited() -> None:
    program = layers(1, *[256] * 6)
    deep, shallow = (with_ahead(evaluator_of(program), ahead).measures["fifo_bits"] for ahead in (1 << 22, 0))
    assert shallow < deep
    limited = evaluator_of(program, f"fifo_bits<={(shallow + deep) / 2}")
    assert with_ahead(limited, 1 << 22).constraints["fifo_bits"] > 0
    assert with_ahead(limited, 0).constraints["fifo_bits"] <= 0


def test_words_of_later_frames_wait_where_the_time_between_frames_matters() -> None:
    """Behind a port that others wait for: else the next frame's first layer waits for this one's last."""
    program = layers(1, *([64] * 9))
    depths: dict[str, dict[str, int]] = {}
    loaded: set[str] = set()
    for objective in ("latency", "throughput"):
        evaluator = Evaluator.create(
            program, "kv260", goal=Goal.of((objective,), ()), options=TilingOptions(weights="stream")
        )
        shared = replace(
            evaluator.evaluate({"default_tile_size": 16}).design, stripes=4, prefetch_bits=0, fifo_depths={}
        )
        found = evaluator.evaluate_design(shared)
        depths[objective] = dict(found.design.fifo_depths)
        loaded |= {c.name for c in found.figures.channels if c.prefetch is not None}
        behind = {c.name: c for c in found.figures.channels if c.prefetch is not None and c.prefetch.frames > 1}
        assert bool(behind) is (objective == "throughput")
        for name, channel in behind.items():
            assert channel.prefetch is not None
            waiting = channel.tokens * channel.prefetch.frames
            if waiting * channel.bits * channel.prefetch.parts <= 1 << 13:
                assert depths[objective][name] >= waiting
    assert any(depths["throughput"][name] > depth for name, depth in depths["latency"].items())
    assert all(depths["throughput"][name] >= depth for name, depth in depths["latency"].items() if name in loaded)


@pytest.mark.parametrize("prefetch", [pytest.param(0, marks=pytest.mark.slow), 1 << 14])
def test_of_more_tensors_than_ports_the_smallest_share_and_are_held_whole(prefetch: int) -> None:
    """Each large one has a port of its own: two of which no FIFO holds all would take turns with their readers."""
    evaluator = Evaluator.create(
        layers(1, *([64] * 9)), "kv260", goal=Goal.of(("throughput",), ()), options=TilingOptions(weights="stream")
    )
    design = replace(evaluator.evaluate({"default_tile_size": 16}).design, stripes=4, fifo_depths={})
    found = evaluator.evaluate_design(replace(design, prefetch_bits=prefetch))
    loads = shared_loads(evaluator, found.design)
    by_port: dict[str, list[Part]] = {}
    for part in loads:
        by_port.setdefault(part.ports[0], []).append(part)
    sharing = [part for parts in by_port.values() if len(parts) > 1 for part in parts]
    assert len(loads) > len(by_port) == 4
    alone = [bits_of(part) for part in loads if part not in sharing]
    assert max(map(bits_of, sharing)) <= min(alone, default=float("inf"))
    held = {c.name: c for c in found.figures.channels if c.prefetch is not None and c.prefetch.shared}
    whole = [c for c in held.values() if c.prefetch is not None and c.prefetch.depth]
    assert len(whole) == len(sharing)
    assert all(found.design.fifo_depths[c.name] >= c.tokens for c in whole)
    simulated = simulate_design(
        evaluator.assembler.network(found.design), evaluator.platform, evaluator.clock_mhz, frames=6
    )
    assert simulated.deadlock is None
