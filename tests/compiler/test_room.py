"""Words with room behind their elements: tensors of odd sizes at every level, in C++ and in Verilator, to the cycle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings

from penstock.compiler.backend.hls.ports import ports_of
from penstock.compiler.pipeline import Lowered
from tests.compiler.graphs import Case, cases
from tests.compiler.test_chain import RELAXED, check_csim, check_levels
from tests.rtl.rtl_batch import Core, build, check_whole, draw_case


@contextmanager
def room_from(words: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.compiler.plan.kernels.MANY_WORDS", words)
        yield


def roomy(lowered: Lowered) -> list[str]:
    """The kinds of those memories whose words have room."""
    return [port.kind for port in ports_of(lowered.top) if port.layout is not None and port.layout.room]


def drawn(count: int) -> list[tuple[str, Lowered]]:
    """Designs of which some input or result has room in its words."""
    generator, found = random.Random(4), list[tuple[str, Lowered]]()
    with room_from(1):
        while len(found) < count:
            case = draw_case(generator)
            lowered = case.lowered()
            if roomy(lowered):
                found.append((str(case), lowered))
    return found


@settings(RELAXED, max_examples=30)
@given(case=cases())
def test_levels_agree(case: Case) -> None:
    with room_from(1):
        check_levels(case.lowered())


def test_the_code_leaves_the_same_room(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = drawn(8)
    assert {kind for _, lowered in found for kind in roomy(lowered)} >= {"input", "output"}
    check_csim([lowered for _, lowered in found], tmp_path_factory.mktemp("room"), [label for label, _ in found])


def test_the_hardware_leaves_the_same_room() -> None:
    cores = [Core(lowered, label) for label, lowered in drawn(8)]
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program)
