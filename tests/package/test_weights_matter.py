"""A package's self-test notices a weight that is not what it was, whichever layer it is of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.package import collect_package, write_folder
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.probes import LEAST, gentle, make_probes
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.jobs.check import check_design
from penstock.services.jobs.package import make_report
from penstock.services.jobs.scheduled import Scheduled
from tests.package.weight_flips import flip

MLP = "zoo:mlp?inputs=12&hidden=16&outputs=4"
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, at its first import


def packaged(reference: str, quantize: str | None, folder: Path) -> Path:
    """An unpacked package of a model under the default design."""
    program = prepare(import_model(reference), quantize)
    plain = default_design(read_graph(program.module), "zcu104", 200.0, quantize)
    evaluator = Evaluator.create(program, "zcu104", clock_mhz=200.0, quantize=quantize)
    design = evaluator.evaluate_design(plain).design  # with FIFOs deep enough
    scheduled, emitted = Scheduled.of(program, design), folder / "emitted"
    emit(scheduled.lowered, emitted, part=load_platform("zcu104").part, clock_mhz=200.0)
    checked = check_design(scheduled.lowered, emitted, ToolRunner())
    assert checked.passed
    report = make_report(scheduled, checked, None)
    write_folder(collect_package(program, design, emitted, report, checked.expected), folder / "package")
    return folder / "package"


def default_of(program: Program) -> Design:
    return default_design(read_graph(program.module), "zcu104", 200.0)


def test_a_changed_weight_is_noticed(tmp_path: Path) -> None:
    found = flip(packaged(MLP, None, tmp_path), 60)
    assert len(found.tried) >= 4, "weights and biases of every layer"
    assert found.noticed >= 0.95, found.places


@pytest.mark.slow
def test_of_900_changed_weights_99_in_100_are_noticed(tmp_path: Path) -> None:
    models = [
        ("examples/digits_mlp.py:model", None, 225), ("examples/digits_mlp.py:model", "w8a8", 225),
        ("zoo:attention?size=small", None, 150), (MLP, "w8a8", 150), ("examples/residual_mlp.py:model", None, 150),
    ]  # fmt: skip
    missed = tried = 0
    for number, (reference, quantize, count) in enumerate(models):
        found = flip(packaged(reference, quantize, tmp_path / str(number)), count, seed=number)
        missed, tried = missed + found.missed.total(), tried + found.tried.total()
    assert tried == 900
    assert 1 - missed / tried >= 0.99


def test_probes_are_the_same_again_and_keep_what_the_examples_promise() -> None:
    program = prepare(import_model(MLP))
    lowered = lower(program, default_of(program))
    once, again = make_probes(lowered), make_probes(lowered)
    assert len(once) >= LEAST
    for one, other in zip(once, again, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == np.float32
            assert np.isfinite(a).all()
    assert 0 < gentle(len(once)) <= len(once)
