"""Rows that meet the same weights again, in blocks: what a kernel makes block by block the next one takes so."""

from __future__ import annotations

from math import prod

import pytest

from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.lanes.rows import BLOCKS_OF_ROWS, block_of
from penstock.dse.space.fitted import ROWS
from penstock.dse.space.tiling import TilingOptions
from tests.compiler.designs import Dense, build_network

TOKENS, WIDE = 32, 256


def feed_forward(tokens: int = TOKENS) -> Evaluator:
    """Two products whose weights are streamed: the first by columns, the second summed up as they come."""
    program = build_network("int8", tokens, WIDE, (Dense(2 * WIDE, True, True), Dense(WIDE, True, False)), seed=1)
    return Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))


def walked(evaluator: Evaluator, rows: int) -> dict[str, int | str | bool]:
    first, second = (op.layer for op in evaluator.space.graph.operations if op.reductions)
    walks = {f"walk.{first}": "1", f"walk.{second}": "2"}
    return {**evaluator.space.fitted_setting(), **walks, "limit_share": 10, ROWS: rows}


def test_blocks_of_rows_are_offered_where_weights_meet_many() -> None:
    assert feed_forward().space.choices[ROWS] == BLOCKS_OF_ROWS
    one_row = build_network("int8", None, WIDE, (Dense(2 * WIDE, True, True),), seed=1)
    assert ROWS not in Evaluator.create(one_row, "u55c", options=TilingOptions(weights="stream")).space.choices
    on_chip = build_network("int8", TOKENS, WIDE, (Dense(2 * WIDE, True, True),), seed=1)
    assert ROWS not in Evaluator.create(on_chip, "u55c", options=TilingOptions(weights="rom")).space.choices


@pytest.mark.parametrize(
    ("rows", "trips", "lanes", "steps"), [(8, 32, 4, 2), (16, 32, 1, 16), (8, 30, 5, 1), (8, 7, 7, 1)]
)
def test_a_block_is_whole_steps_of_lanes(rows: int, trips: int, lanes: int, steps: int) -> None:
    assert block_of(rows, trips, lanes) == steps


def test_results_come_block_after_block_and_weights_pass_once_for_each() -> None:
    evaluator = feed_forward()
    _, last = (op for op in evaluator.space.graph.operations if op.reductions)
    sent, orders = dict[int, int](), dict[int, tuple[int, ...]]()
    for rows in (0, 8):
        design = evaluator.space.design(walked(evaluator, rows))
        (reader,) = (op for op in evaluator.space.graph.operations if last.result in op.inputs)
        orders[rows] = design.kernels[reader.layer].order
        task = next(t for t in evaluator.assembler.network(design).tasks if t.name == last.layer)
        taken = [p for nest in task.nests for p in nest.ports if p.kind == "stream" and p.direction == "read"]
        sent[rows] = max(port.bits * port.tokens for port in taken)
    assert sent == {0: 8 * prod(last.trips[1:]), 8: 8 * prod(last.trips[1:]) * TOKENS // 8}
    assert orders == {0: (1, 0), 8: (0, 1)}, "column by column, or the rows of a block outside"


def test_such_designs_compute_what_the_model_does() -> None:
    evaluator = feed_forward(8)
    lowered = lower(evaluator.program, evaluator.evaluate(walked(evaluator, 8)).design)
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison
