"""Designs of a model whose sizes each call says: lanes and tiles for any size, one accelerator, FIFOs that hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.lengths import Length, parse_lengths
from penstock.compiler.pipeline.lower import Lowered, lower
from penstock.compiler.pipeline.prepare import prepare
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing import finish as finishing
from penstock.dse.finishing.finish import finish, finish_first
from penstock.dse.finishing.lengths import hold_at_lengths, networks_of, sizes_to_simulate
from penstock.dse.rungs import RUNGS, Bench, Ranked
from penstock.dse.space.tiling import Value
from penstock.profiling.simulated import simulate_design

MODEL = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.o = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        scores = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2), -1)
        return x + self.o(scores @ x)

def model(rows=8):
    torch.manual_seed(0)
    return Attention(), torch.randn(rows, 8)
"""
STEP = 4


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("net") / "net.py"
    path.write_text(MODEL)
    return prepare(import_model(f"{path}:model", dims=parse_lengths([f"rows={STEP}..16/{STEP}"])))


@pytest.fixture(scope="module")
def evaluator(program: Program) -> Evaluator:
    return Evaluator.create(program, "u55c")


def settings_of(evaluator: Evaluator, count: int) -> Iterator[dict[str, Value]]:
    drawn, space = random.Random(1), evaluator.space
    yield from (space.default_params(), space.fitted_setting(), *space.first_settings(), *space.paced_settings())
    for _ in range(count):
        yield {name: drawn.choice(values) for name, values in space.choices.items()}


def test_lanes_and_tiles_hold_for_any_size(evaluator: Evaluator) -> None:
    sized = evaluator.space.dims.sized
    seen = set[int]()
    for setting in settings_of(evaluator, 16):
        design = evaluator.space.design(setting)
        for op in evaluator.space.graph.operations:
            kernel = design.kernels[op.layer]
            for tile, lanes, trip, grain in zip(kernel.tile, kernel.unroll, op.trips, sized.grains_of(op), strict=True):
                if grain:
                    assert grain == STEP
                    assert STEP % lanes == 0, op.layer
                    assert tile == trip or STEP % tile == 0, op.layer
                    seen |= {tile, lanes}
    assert {1, 2, STEP, 16} <= seen  # of what there is to choose, nothing is left out


def test_no_dim_is_padded_whose_size_each_call_says(evaluator: Evaluator) -> None:
    dims, sized = evaluator.space.dims, evaluator.space.dims.sized
    varying = {dims.of_loop(op, d) for op in evaluator.space.graph.operations
               for d, size in enumerate(sized.of_loops(op)) if size is not None}  # fmt: skip
    assert varying
    assert not varying & set(dims.paddable)


@pytest.mark.parametrize(("change", "words"), [
    ({"tile": 3}, "cannot tile dim|a tile of 3 along dim"), ({"tile": 8}, "a tile of 8 along dim"),
    ({"tile": 16, "lanes": 8}, "8 lanes along dim"), ({"tile": 16, "lanes": 3}, "3 lanes along dim"),
])  # fmt: skip
def test_a_record_that_some_size_would_not_fit_is_refused_by_name(
    evaluator: Evaluator, change: dict[str, int], words: str
) -> None:
    design = evaluator.space.design(evaluator.space.default_params())
    op = evaluator.space.graph.operations[0]
    [dim] = [d for d, grain in enumerate(evaluator.space.dims.sized.grains_of(op)) if grain]
    kernel = design.kernels[op.layer]
    tile = tuple(change["tile"] if d == dim else n for d, n in enumerate(kernel.tile))
    unroll = tuple(change.get("lanes", 1) if d == dim else n for d, n in enumerate(kernel.unroll))
    odd = replace(design, kernels={**design.kernels, op.layer: replace(kernel, tile=tile, unroll=unroll)})
    with pytest.raises(PenstockError, match=words) as refused:
        evaluator.evaluate_design(odd)
    assert refused.value.where == op.layer


def test_fifos_hold_at_every_size(program: Program, evaluator: Evaluator) -> None:
    evaluation = evaluator.evaluate(evaluator.space.fitted_setting())
    found = finish(evaluator, evaluation, bench=Bench(fifo_simulations=8)).at_lengths
    assert found is not None
    assert found.said == "simulated at all 4 lengths"
    assert [dict(run.sizes) for run in found.runs] == [{"rows": n} for n in range(STEP, 17, STEP)]
    assert all(run.latency <= run.unbounded for run in found.runs)
    latencies = [run.latency for run in found.runs]
    assert latencies == sorted(set(latencies))


def test_a_fifo_that_is_short_at_some_size_is_deepened(program: Program, evaluator: Evaluator) -> None:
    evaluation = evaluator.evaluate(evaluator.space.fitted_setting())
    lowered, clock = lower(program, evaluation.design), evaluation.design.clock_mhz
    shallow = dict.fromkeys(evaluation.design.fifo_depths, 2)
    least = networks_of(lowered, evaluator.platform)({"rows": STEP})
    stops = simulate_design(least, evaluator.platform, clock, depths=shallow)
    free = simulate_design(least, evaluator.platform, clock, bounded=False)
    assert stops.deadlock is not None or stops.latency > free.latency
    found = hold_at_lengths(lowered, evaluator.platform, shallow, simulations=40)
    assert found.deepened
    assert all(found.depths[name] > 2 for name in found.deepened)
    assert all(run.latency <= run.unbounded for run in found.runs)
    kept = set(found.deepened)
    with pytest.raises(PenstockError, match="stops for ever"):
        hold_at_lengths(lowered, evaluator.platform, shallow, keep=kept)


def test_a_design_that_is_not_one_accelerator_is_passed_over(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (
        evaluator.evaluate(s) for s in (evaluator.space.fitted_setting(), evaluator.space.default_params())
    )
    assert first.design.digest() != second.design.digest()

    def refuse(program: Program, design: Design) -> Lowered:
        if design.digest() == first.design.digest():
            raise PenstockError(code="length-unsupported", what="one accelerator does not do all lengths of rows")
        return lower(program, design)

    monkeypatch.setattr(finishing, "lower", refuse)
    bench = Bench(fifo_simulations=10)
    ranked = [Ranked(one, RUNGS["modelled"](evaluator, one, bench)) for one in (first, second)]
    done, taken, passed = finish_first(evaluator, ranked, bench=bench)
    assert taken is ranked[1]
    assert done.design.kernels == second.design.kernels
    assert "one accelerator does not do all lengths" in passed[0]


@pytest.mark.parametrize(
    ("texts", "events", "count", "simulated"),
    [
        (["seq=1..32"], 1000, 32, 32), (["seq=1..1024"], 1000, 1024, 9), (["seq=16..64/16"], 1000, 4, 4),
        (["seq=1..32"], 10**8, 32, 9), (["seq=1..8", "rows=1..8"], 1000, 64, 64),
        (["seq=1..8", "rows=1..9"], 1000, 72, 11),
    ],
)  # fmt: skip
def test_which_sizes_are_simulated(texts: list[str], events: int, count: int, simulated: int) -> None:
    lengths: tuple[Length, ...] = parse_lengths(texts)
    chosen, found = sizes_to_simulate(lengths, events)
    assert (found, len(chosen)) == (count, simulated)
    assert chosen[0] == {one.name: one.low for one in lengths}
    assert chosen[-1] == {one.name: one.high for one in lengths}
    assert len({tuple(one.items()) for one in chosen}) == len(chosen)
