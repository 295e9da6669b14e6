"""Random graphs under random designs as SystemVerilog: bits, cycles and high-water marks, and stalls at all streams."""

from __future__ import annotations

import random

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import Lowered
from tests.compiler.hostile import HostileCase
from tests.rtl.rtl_batch import Core, build, check_part, check_whole, draw_case, inner_tasks


def draw(seed: int, count: int, *kinds: str, steps: int = 5) -> list[tuple[str, Lowered]]:
    generator = random.Random(seed)
    found: list[tuple[str, Lowered]] = []
    for number in range(count):
        case = draw_case(generator, kinds or ("int8", "int32"), steps)
        found.append((f"case {number} of seed {seed}: {case}", case.lowered()))
    return found


def check(drawn: list[tuple[str, Lowered]], parts: int, seeds: int = 2) -> int:
    """Every design whole, and the first ones' inner tasks with stalls; returns how many nests ran."""
    whole = [Core(lowered, label) for label, lowered in drawn[parts:]]
    cut = [Core(lowered, label, inner_tasks(lowered)) for label, lowered in drawn[:parts] if inner_tasks(lowered)]
    programs = build([*whole, *cut])
    for core, program in zip(whole, programs, strict=False):
        check_whole(core, program)
    for core, program in zip(cut, programs[len(whole) :], strict=True):
        for seed in range(seeds):
            check_part(core, program, seed)
    return sum(core.nests for core in [*whole, *cut])


def test_random_integer_designs() -> None:
    assert check(draw(1, 34), parts=14) >= 200


def hostile(seed: int, count: int) -> list[tuple[str, Lowered]]:
    generator = random.Random(seed)
    found: list[tuple[str, Lowered]] = []
    for _ in range(count):
        picks = tuple(generator.randrange(generator.choice((24, 80))) for _ in range(16))
        case = HostileCase(draw_case(generator), picks)
        found.append((str(case), case.lowered()))
    return found


def test_hostile_names() -> None:
    """Layers and arguments called as keywords, as each other, and as what the core has for itself."""
    assert check(hostile(5, 10), parts=3) >= 20


@pytest.mark.slow
def test_many_more_hostile_names() -> None:
    check(hostile(6, 30), parts=10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_more_integer_designs(seed: int) -> None:
    assert check(draw(seed, 50, steps=8), parts=20, seeds=6) >= 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 22))
def test_random_float_designs(seed: int) -> None:
    check(draw(seed, 16, "float32"), parts=8)


@pytest.mark.slow
def test_frames_one_by_one() -> None:
    """A second frame meets the memories and counters as the first one did."""
    cores: list[Core] = []
    for label, lowered in draw(30, 17):
        try:
            cores.append(Core(lowered, label))
        except PenstockError as error:
            if error.code != "unsupported-memory":  # one that is not packed, and read all at once
                raise
    assert len(cores) >= 16
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program, frames=3)
