"""Every arithmetic core against the host: random, special and directed operands, with stalls, one executable."""

from __future__ import annotations

import pytest

from penstock.compiler.backend.rtl.primitives import find_primitive
from penstock.compiler.backend.rtl.scalar_sv import SPELLINGS
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.schedule import load_library
from tests.rtl.primitive_bench import Case, Outcome, build, measure
from tests.rtl.primitive_cases import CASES, WORST_ULP

LIBRARY = load_library("open-ecp5", 130.0)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return measure(build(CASES, tmp_path_factory.mktemp("bench")), vectors=300_000, seed=1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_core_against_the_host(outcomes: dict[str, Outcome], case: Case):
    outcome = outcomes[case.name]
    assert outcome.checked > 270_000
    allowed = WORST_ULP.get(case.name, 0)
    assert outcome.error <= allowed, outcome
    if allowed == 0:
        assert outcome.inexact == 0, outcome


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_latency_is_the_one_that_schedules_use(case: Case):
    assert LIBRARY.find(case.op, max(case.core.inputs)).latency == case.core.latency


def test_every_operator_of_the_library_has_a_core_or_is_an_expression():
    """No schedule may count on an operation that nothing computes, nor on a latency that its core has not."""
    cored = {case.op for case in CASES} | {"mac"}
    for row in LIBRARY.operators:
        for op in row.ops:
            if op in cored:
                continue
            assert op in SPELLINGS or op in ("shift", LookUpOp.name), op  # a table is a module of its own


def test_what_no_core_computes_is_refused_by_name():
    with pytest.raises(PenstockError, match=r"math\.atan"):
        find_primitive("math.atan", ("f32",), "f32")
    with pytest.raises(PenstockError, match="it takes 2 f32"):
        find_primitive("arith.addf", ("i32", "i32"), "f32")
    with pytest.raises(PenstockError, match="i128 is not an integer of up to 64 bits"):
        find_primitive("arith.sitofp", ("i128",), "f32")
    with pytest.raises(PenstockError, match="a number from 0 to 15"):
        find_primitive("arith.cmpf", ("f32", "f32"), "i1")
    with pytest.raises(PenstockError, match="f16 is neither"):
        find_primitive("arith.addf", ("f16", "f16"), "f16")
    with pytest.raises(PenstockError, match=r"no core computes arith\.addi"):
        find_primitive("arith.addi", ("i8", "i8"), "i8")
