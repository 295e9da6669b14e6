"""FIFO sizing of compiled designs: fewer bits than without simulation, no later, no deadlock, kept in the record."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from penstock.compiler.design import Design
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo import runs_through, size_design, total_bits
from penstock.dse.finishing.finish import finish
from penstock.dse.rungs import Bench
from penstock.dse.search.explore import explore
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network, designs, networks


def fifo_bits(network: TaskNetwork) -> dict[str, int]:
    return {name: c.bits for name, c in network.channels.items() if c.kind == "stream"}


def residual() -> Evaluator:
    program = build_network("int8", None, 8, (Dense(8, False, True), Dense(8, False, False)), seed=3)
    return Evaluator.create(program, "u55c")


def test_a_skipped_connection_needs_less_than_room_for_all_of_its_tokens():
    evaluator = residual()
    evaluation = evaluator.evaluate({})
    network = evaluator.assembler.network(evaluation.design)
    bits = fifo_bits(network)
    tight = evaluator.tightened(evaluation)
    assert set(tight.design.fifo_depths) == set(bits)
    assert total_bits(tight.design.fifo_depths, bits) < total_bits(evaluation.design.fifo_depths, bits)
    assert tight.figures.latency == evaluation.figures.latency
    # the record can be fed back, though closed forms alone would not vouch for it
    read = Design.from_json(tight.design.to_json())
    assert evaluator.evaluate_design(read).design.fifo_depths == tight.design.fifo_depths


def test_where_few_bits_are_asked_for_and_no_pace_of_inputs_fifos_hold_one_input() -> None:
    layers = (Dense(32, True, True), Dense(16, True, False), Dense(16, False, False))
    program = build_network("int8", None, 16, layers, seed=3)
    found = dict[tuple[str, ...], tuple[int, int]]()
    for wanted in (("latency",), ("latency", "fifo_bits"), ("latency", "fifo_bits", "throughput")):
        evaluator = Evaluator.create(program, "u55c", goal=Goal.of(wanted))
        tight = evaluator.tightened(evaluator.evaluate({}))
        bits = fifo_bits(evaluator.assembler.network(tight.design))
        found[wanted] = (tight.figures.latency, total_bits(tight.design.fifo_depths, bits))
    usual, fewer, paced = found.values()
    assert fewer[0] == usual[0] == paced[0], "one input is as fast"
    assert fewer[1] < usual[1] == paced[1]


def test_slack_is_time_that_fifos_may_cost_where_limits_leave_it() -> None:
    program = build_network("int8", None, 16, (Dense(32, True, True), Dense(16, True, False)), seed=3)
    found: list[tuple[int, int]] = []
    for slack, within in ((0.0, None), (60.0, None), (60.0, 1.0)):
        limits = [f"latency_cycles<={int(found[0][0] * within)}"] if within else []
        evaluator = Evaluator.create(program, "u55c", goal=Goal.of(("latency", "fifo_bits"), limits))
        tight = finish(evaluator, evaluator.evaluate({}), bench=Bench(fifo_slack=slack)).evaluation
        network = evaluator.assembler.network(tight.design)
        bits = total_bits(tight.design.fifo_depths, fifo_bits(network))
        simulated = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=tight.design.fifo_depths)
        found.append((simulated.latency, bits))
    exact, loose, limited = found
    assert exact[0] < loose[0] <= exact[0] * 1.6
    assert loose[1] < exact[1]
    assert limited == exact


class Attention(nn.Module):
    """Queries, keys and values of one product: what is cut from it waits for each other."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(16, 2, batch_first=True), nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.attention(x, x, x, need_weights=False)[0])


def test_inputs_that_follow_come_through_where_fifos_hold_one() -> None:
    """With depths that are just enough for the first, the second one stopped for ever."""
    torch.manual_seed(0)
    program = prepare(import_loaded(LoadedModel("model", "model", Attention().eval(), (torch.randn(1, 24, 16),))))
    evaluator = Evaluator.create(program, "u55c", goal=Goal.of(("latency", "fifo_bits")))
    best = explore(evaluator, 1).tried[0].evaluation
    tight = evaluator.tightened(best)
    network, depths = evaluator.assembler.network(tight.design), tight.design.fifo_depths
    alone, several = (
        simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=depths, frames=frames).frame_ends
        for frames in (1, 6)
    )
    assert len(several) == 6
    assert several[0] == alone[0]


@given(st.data())
@settings(max_examples=6)
def test_designs_end_no_later_with_the_depths_that_simulation_finds(data: st.DataObject):
    program = data.draw(networks())
    evaluator = Evaluator.create(program, "u55c")
    design = evaluator.evaluate_design(replace(data.draw(designs(program.module)), fifo_depths={})).design
    network = evaluator.assembler.network(design)
    sizing = size_design(network, evaluator.platform, evaluator.clock_mhz, simulations=60)
    assert set(sizing.depths) == set(fifo_bits(network))
    assert sizing.latency == sizing.unbounded_latency
    assert runs_through(network, evaluator.platform, evaluator.clock_mhz, sizing.depths)
