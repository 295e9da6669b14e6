"""Converters of one block, where a run hands over no more and the next input may wait."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.simulator import VITIS, Channel, Network, Phase, SimulatedProcess
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo.one_block import blocks_of_one
from penstock.profiling.networks.guards import Guard
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network
from tests.compiler.test_chain import check_csim
from tests.simulator.networks import access

BLOCK = "convert.fc0.relu.block"


@cache
def evaluator(*objectives: str, first: int = 6) -> Evaluator:
    program = build_network("int8", 4, first, (Dense(8, False, False), Dense(4, False, False)), seed=3)
    return Evaluator.create(program, "u55c", goal=Goal.of(objectives or ("latency",)))


def designed(outside: int = 1, first: int = 6) -> Design:
    """A first layer by columns, or by halves of rows, and a second one by rows."""
    by_columns = (1, 0) if outside else (0, 1)
    rows = 4 if outside else 2
    kernels = {
        "fc0": KernelDesign((rows, 1, first), (1, 1, 1), (*by_columns, 2)),
        "fc0.relu": KernelDesign((rows, 1), (1, 1), by_columns),
        "fc1": KernelDesign((1, 4, 8), (1, 1, 1), (0, 1, 2)),
        "fc1.relu": KernelDesign((1, 4), (1, 1), (0, 1)),
    }
    return Design("u55c", 250.0, kernels)


def block_of(evaluation: Evaluation) -> int:
    return next(c.depth for c in evaluation.figures.channels if c.name == BLOCK)


def ends(evaluation: Evaluation, frames: int, one: Evaluator | None = None) -> tuple[int, ...]:
    one = one or evaluator()
    network = one.assembler.network(evaluation.design)
    return simulate_design(network, one.platform, one.clock_mhz, frames=frames).frame_ends


def test_one_block_where_one_input_counts_and_costs_it_nothing() -> None:
    usual = evaluator().tightened(evaluator().evaluate_design(designed()))
    asked = evaluator("latency", "fifo_bits")
    few = asked.tightened(asked.evaluate_design(designed()))
    assert (block_of(usual), block_of(few)) == (2, 1)
    assert few.design.fifo_depths[BLOCK] == 1
    assert BLOCK not in usual.design.fifo_depths
    assert ends(few, 1) == ends(usual, 1)
    assert ends(few, 3)[-1] > ends(usual, 3)[-1], "the next input waits"
    assert few.figures.resources.lut + few.figures.resources.bram18 <= (
        usual.figures.resources.lut + usual.figures.resources.bram18
    )


def test_one_block_where_the_next_input_comes_when_it_is_free() -> None:
    """The first layer takes so long that its last results are read before the first of the next input are there."""
    slow = evaluator(first=128)
    given = slow.evaluate_design(designed(first=128))
    usual = slow.tightened(given)
    assert (block_of(given), block_of(usual)) == (2, 1)
    two = replace(usual, design=usual.design.with_fifo_depths({**usual.design.fifo_depths, BLOCK: 2}))
    assert ends(usual, 6, slow) == ends(two, 6, slow)


def test_one_block_where_a_run_hands_over_several_that_are_read_in_time() -> None:
    usual = evaluator().tightened(evaluator().evaluate_design(designed(outside=0)))
    asked = evaluator("latency", "fifo_bits")
    few = asked.tightened(asked.evaluate_design(designed(outside=0)))
    assert (block_of(usual), block_of(few)) == (2, 1)
    assert ends(few, 1) == ends(usual, 1)


def test_two_blocks_where_they_are_asked_for() -> None:
    asked = evaluator("latency", "fifo_bits")
    given = asked.evaluate_design(replace(designed(outside=0), fifo_depths={BLOCK: 2}))
    assert block_of(asked.tightened(given, keep={BLOCK: 2})) == 2


@pytest.mark.parametrize(("held", "found"), [(7, {"blocks": 1}), (30, {})])
def test_two_blocks_where_one_is_read_while_the_next_is_filled(held: int, found: dict[str, int]) -> None:
    """Blocks are filled in the second half of 32 cycles each, and held for so many."""
    fill = Phase((4, 32), 1, 2, (access("blocks", "write", (4, 32), [Guard(1, "==", 16)], hold=15),))
    use = Phase((4, 32), 1, 2, (access("blocks", "read", (4, 32), [Guard(1, "==", 0)], hold=held),))
    channel = Channel("blocks", "block", depth=2, bits=8, words=16)
    network = Network("blocks", (SimulatedProcess("fill", (fill,)), SimulatedProcess("use", (use,))), (channel,))
    assert blocks_of_one(network, VITIS, {}, 1, network.channels) == found


@pytest.mark.parametrize("outside", [0, 1])
def test_the_record_decides_and_every_level_computes_the_same(outside: int, tmp_path: Path) -> None:
    design = replace(designed(outside), fifo_depths={BLOCK: 1})
    found = evaluator().evaluate_design(design)
    assert block_of(found) == 1
    assert evaluator().tightened(found, keep={BLOCK: 1}).design.fifo_depths[BLOCK] == 1
    lowered = lower(evaluator().program, found.design)
    assert "count: 1>" in str(lowered.stream)
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison
    check_csim([lowered], tmp_path)


@pytest.mark.parametrize("name", ["convert.fc1.block", "nowhere"])
def test_blocks_that_are_none_are_named(name: str) -> None:
    with pytest.raises(PenstockError, match=f"fifo_depths.{name}"):
        evaluator().evaluate_design(replace(designed(), fifo_depths={name: 1}))
