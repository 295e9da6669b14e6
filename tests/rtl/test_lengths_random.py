"""Random designs for all lengths: one schedule, the same values, and in Verilator the same cycles."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.lengths import Length
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.program import Program
from penstock.profiling.network import network_of
from tests.compiler.designs import Dense, divisors
from tests.rtl.length_batch import LengthCore, check, dense
from tests.rtl.rtl_batch import LIBRARY, bits_of


def draw_core(seed: int) -> LengthCore | None:
    """Any tiles, lanes, orders and groups; None where the design does one length only."""
    pick = random.Random(seed)
    step = pick.choice([1, 1, 2, 4])
    rows = Length("rows", step * pick.randint(1, 2), step * pick.randint(3, 5), step)
    layers = tuple(
        Dense(pick.choice([2, 4, 6]), pick.random() < 0.5, pick.random() < 0.5) for _ in range(pick.randint(1, 2))
    )
    program = dense(pick.choice(["int8", "int8", "float32"]), rows, layers)
    try:
        return LengthCore(program, _drawn(program, rows, pick), f"seed {seed}")
    except PenstockError as error:
        if error.code not in ("length-unsupported", "unsupported-memory"):
            raise
        return None


def _drawn(program: Program, rows: Length, pick: random.Random) -> Design:
    kernels, groups, group = dict[str, KernelDesign](), dict[str, int](), 0
    for operation in read_graph(program.module).operations:
        many = pick.choice([*divisors(rows.step), rows.high])
        tile = (many, *(pick.choice(divisors(trip)) for trip in operation.trips[1:]))
        lanes = pick.choice([n for n in divisors(rows.step) if many % n == 0])
        unroll = (lanes, *(pick.choice(divisors(extent)) for extent in tile[1:]))
        order = tuple(pick.sample(range(len(tile)), len(tile)))
        kernels[operation.layer] = KernelDesign(tile, unroll, order, pick.choice(["rom", "stream"]))
        group += pick.choice([0, 0, 1])
        groups[operation.layer] = group
    return Design("ecp5-85k", 100.0, kernels, groups=groups, port_bits=pick.choice([32, 64]))


@given(st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_a_design_is_scheduled_once_and_computes_at_every_length(seed: int) -> None:
    core = draw_core(seed)
    if core is None:
        return
    whole = network_of(core.lowered.top, LIBRARY)
    for one in core.ones:
        inputs = make_inputs(one, random_sets=1)[-1]
        for got, wanted in zip(one.run_stream(inputs), one.run_itensor(inputs), strict=True):
            assert np.array_equal(bits_of(got), bits_of(wanted))
        here = network_of(one.top, LIBRARY)
        for task, same in zip(whole.tasks, here.tasks, strict=True):
            for a, b in zip(task.nests, same.nests, strict=True):
                assert (a.ii, a.depth, a.stages) == (b.ii, b.depth, b.stages)


def check_drawn(seeds: range) -> int:
    cores = [core for seed in seeds if (core := draw_core(seed)) is not None]
    check(cores)
    return len(cores)


def test_random_designs_at_every_length() -> None:
    assert check_drawn(range(6)) >= 4


@pytest.mark.slow
def test_many_more_random_designs() -> None:
    assert check_drawn(range(100, 150)) >= 20
