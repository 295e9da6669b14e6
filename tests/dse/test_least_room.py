"""What no design can do without: below what any design takes, and said before a search where it is too much."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.least_room import check_room, least_needs
from penstock.dse.evaluation.objectives import Goal
from tests.compiler.designs import Dense, build_network


def evaluator_of(platform: str, dtype: str = "int8", limits: tuple[str, ...] = ()) -> Evaluator:
    program = build_network(dtype, None, 16, (Dense(16, False, True), Dense(32, True, False)), seed=3)
    return Evaluator.create(program, platform, goal=Goal.of((), limits))


@pytest.mark.parametrize("platform", ["u55c", "ecp5-25k", "xcu280"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_no_design_takes_less(platform: str, dtype: str) -> None:
    evaluator = evaluator_of(platform, dtype)
    needs = {need.what: need for need in least_needs(evaluator)}
    draw = random.Random(0)
    for number in range(12):
        table = evaluator.space.choices
        params = {} if number == 0 else {name: draw.choice(values) for name, values in table.items()}
        evaluation = evaluator.evaluate({**evaluator.space.default_params(), **params})
        takes = evaluation.figures.resources.as_dict()
        for name in ("dsp", "lut", "ff"):
            assert needs[name].needed <= takes[name], name
        shares = (evaluation.shares["dsp"], evaluation.shares["lut"])
        assert needs["% of the DSPs or of the LUTs"].needed <= 100 * max(shares) + 1e-6
    check_room(evaluator)


def test_weights_that_no_memory_of_the_chip_holds_are_named() -> None:
    evaluator = evaluator_of("ecp5-25k", "float32")
    [die] = evaluator.platform.dies
    tiny = replace(die, resources=replace(die.resources, bram18=0, uram=0, lut=40, ff=40, dsp=0))
    small = Evaluator(evaluator.program, replace(evaluator.platform, dies=(tiny,)), evaluator.clock_mhz)
    with pytest.raises(PenstockError) as refused:
        check_room(small)
    assert refused.value.code == "does-not-fit"
    assert "Lattice ECP5" in str(refused.value.limit)
    needs = {need.what: need for need in least_needs(small)}
    assert needs["KiB on the chip"].short
    assert needs["KiB on the chip"].needed == pytest.approx(sum(a.nbytes for a in small.program.params.values()) / 1024)


def test_a_limit_below_one_lane_a_kernel_is_refused() -> None:
    with pytest.raises(PenstockError, match="at least") as refused:
        check_room(evaluator_of("u55c", "float32", ("lut<=40",)))
    assert "lut" in refused.value.what
    check_room(evaluator_of("u55c", "float32", ("lut<=0.5",)))


def test_what_external_memory_cannot_hold_is_named() -> None:
    evaluator = evaluator_of("u55c")
    memory = replace(evaluator.platform.memories[0], gigabytes=1e-8)
    board = replace(load_platform("u55c"), memories=(memory,))
    with pytest.raises(PenstockError, match="inputs, weights and results"):
        check_room(Evaluator(evaluator.program, board, evaluator.clock_mhz))


def test_a_limit_of_ones_own_is_named_where_the_platform_has_enough() -> None:
    with pytest.raises(PenstockError, match=r"at least [\d,]+ lut \(asked for was lut<=40\) - relax the limit"):
        check_room(evaluator_of("u55c", limits=("lut<=40",)))
