"""Every pass keeps the numbers of random graphs with slices, joins, norms, reductions and new shapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import nn
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.program import Program
from penstock.compiler.transforms.canonicalise import QUANTISE, SIMPLIFY, quantise, simplify
from penstock.compiler.transforms.editor import layer_of
from penstock.compiler.transforms.rewrite import run_rewrites
from penstock.compiler.transforms.tabulate_functions import TabulateFunctions
from tests.frontend.models import import_module
from tests.transforms.random_models import models

EXPECTED = ("reshape", "unchanged", "constant")
RELAXED = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


def assert_matches_pytorch(program: Program, where: str) -> None:
    assert program.samples is not None
    for ours, theirs in zip(run(program, program.samples.inputs), program.samples.outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4, err_msg=where)


def assert_equal(one: Program, other: Program) -> None:
    assert str(one.module) == str(other.module)
    assert one.signature == other.signature
    assert list(one.params) == list(other.params)
    for name, data in one.params.items():
        np.testing.assert_array_equal(data, other.params[name])


def simplified(module: nn.Module, x: torch.Tensor) -> Program | None:
    """Canonical, checked after every pass; None for what is refused by name: reshapes that no loop can follow."""
    imported = program = import_module(module, x)
    for step in SIMPLIFY:
        before, source = str(program.module), program
        try:
            program = step.run(program)
        except PenstockError as error:
            if error.code == "unsupported-op" and any(word in error.what for word in EXPECTED):
                return None
            raise
        assert str(source.module) == before, f"{type(step).__name__} changed the program that it was given"
        assert_matches_pytorch(program, type(step).__name__)
    named = [layer_of(op) for op in program.module.walk() if isinstance(op, linalg.GenericOp)]
    assert len(set(named)) == len(named)
    assert_equal(simplify(imported), program)  # together the passes do what they do one by one
    return program


@settings(RELAXED, max_examples=8)
@given(models())
def test_every_pass_keeps_the_numbers(model: tuple[nn.Module, torch.Tensor]) -> None:
    simplified(*model)


@pytest.mark.slow
@settings(RELAXED, max_examples=60)
@given(models())
def test_every_pass_keeps_the_numbers_of_many_more(model: tuple[nn.Module, torch.Tensor]) -> None:
    simplified(*model)


def check_levels(program: Program) -> None:
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0))
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison


def check_tables(program: Program) -> bool:
    """Look-ups change no bit of a quantised model; says whether there were any."""
    without = [one for one in QUANTISE if not isinstance(one, TabulateFunctions)]
    try:
        looked_up, computed = quantise(program), run_rewrites(without, program)
    except PenstockError as error:
        if error.code == "unsupported-quantisation":
            return False
        raise
    assert looked_up.samples is not None
    numbers = [
        port.quant.quantise(x) if port.quant else x
        for x, port in zip(looked_up.samples.inputs, looked_up.signature.inputs, strict=True)
    ]
    for ours, theirs in zip(*(run(one, numbers) for one in (looked_up, computed)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return "table.look_up" in str(looked_up.module)


@settings(RELAXED, max_examples=8)
@given(models())
def test_look_ups_change_no_bit(model: tuple[nn.Module, torch.Tensor]) -> None:
    program = simplified(*model)
    if program is not None:
        check_tables(program)


@pytest.mark.slow
@settings(RELAXED, max_examples=60)
@given(models())
def test_look_ups_change_no_bit_of_many_more(model: tuple[nn.Module, torch.Tensor]) -> None:
    program = simplified(*model)
    if program is not None:
        check_tables(program)


@pytest.mark.slow
@settings(RELAXED, max_examples=32)
@given(models())
def test_every_level_agrees_in_float_and_in_integers(model: tuple[nn.Module, torch.Tensor]) -> None:
    program = simplified(*model)
    if program is None:
        return
    check_levels(program)
    try:
        quantised = quantise(program)
    except PenstockError as error:
        if error.code == "unsupported-quantisation":
            return
        raise
    check_levels(quantised)
