"""Every arithmetic core against the host: random, special and directed operands, with stalls, one executable."""

from __future__ import annotations

import pytest

from compiler.backend.rtl.primitives import find_primitive
from compiler.errors import PenstockError
from compiler.schedule import load_library
from tests.rtl.primitive_bench import Case, Outcome, build, measure
from tests.rtl.primitive_cases import CASES, WORST_ULP

LIBRARY = load_library("open-ecp5", 130.0)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return measure(build(CASES, tmp_path_factory.mktemp("bench")), vectors=1_000_000, seed=1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_core_against_the_host(outcomes: dict[str, Outcome], case: Case):
    outcome = outcomes[case.name]
    assert outcome.checked > 900_000
    allowed = WORST_ULP.get(case.name, 0)
    assert outcome.error <= allowed, outcome
    if allowed == 0:
        assert outcome.inexact == 0, outcome


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_latency_is_the_one_that_schedules_use(case: Case):
    assert LIBRARY.find(case.op, max(case.core.inputs)).latency == case.core.latency


def test_what_no_core_computes_is_refused_by_name():
    with pytest.raises(PenstockError, match=r"math\.atan"):
        find_primitive("math.atan", ("f32",), "f32")
    with pytest.raises(PenstockError, match="f16 is neither"):
        find_primitive("arith.addf", ("f16", "f16"), "f16")
    assert find_primitive("arith.addi", ("i8", "i8"), "i8") is None
