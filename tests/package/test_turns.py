"""Packages of models with the host in their middle: the runtime calls the accelerator several times for one answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.frontend import import_model
from penstock.compiler.package.report import WholeCheck
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.runtime import penstock_runtime
from penstock.compiler.runtime.penstock_runtime.host import HostGraph
from penstock.services.jobs.check import check_whole
from tests.frontend import turn_models
from tests.frontend.models import seeded
from tests.package.test_held import packaged

MODELS = Path(turn_models.__file__)


def test_other_choices_are_told_and_judged_only_where_every_bit_is_promised() -> None:
    """A near tie may fall otherwise in int8, and leads to other numbers: that is no fault. Without int8 it is one."""
    exact, quantised = (judged_with_other_scores(quantize) for quantize in (None, "w8a8"))
    for whole in (exact, quantised):
        assert whole.choices == 4
        assert whole.choices_equal is not None
        assert whole.choices_equal < whole.choices
        assert whole.max_abs_error is not None
        assert whole.max_abs_error > 0.1, "it is another expert"
    assert not exact.ok
    assert exact.tolerance is not None
    assert quantised.ok
    assert quantised.tolerance is None


def judged_with_other_scores(quantize: str | None) -> WholeCheck:
    """What is said of an accelerator that takes the experts' scores for one another's."""
    program = prepare(import_model(f"{MODELS}:routed_rows"), quantize)
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0, quantize))
    assert program.host is not None
    graph = program.host.graph
    scores = graph["accelerator"]["outputs"].index(graph["between"][0]["outputs"][0])

    def wrong(frame: Sequence[Array]) -> list[Array]:
        answers = list(lowered.run_itensor(list(frame)))
        shape = program.signature.outputs[scores].shape
        answers[scores] = np.roll(answers[scores].reshape(shape), 1, axis=-1)
        return answers

    found = check_whole(lowered, HostGraph(graph, program.host.values), wrong)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reference", "make", "quantize"),
    [
        ("routed_rows", turn_models.routed_rows, None),
        pytest.param("two_turns", turn_models.two_turns, None, marks=pytest.mark.slow),
        pytest.param("routed_rows", turn_models.routed_rows, "w8a8", marks=pytest.mark.slow),
    ],
)
def test_a_package_answers_as_pytorch_does(
    reference: str, make: Callable[[], tuple[nn.Module, torch.Tensor]], quantize: str | None, tmp_path: Path
) -> None:
    _, checked = packaged(reference, tmp_path, quantize, MODELS)
    whole = checked.verify.whole
    assert whole is not None
    assert whole.ok
    assert whole.choices == whole.choices_equal or quantize is not None
    assert checked.verify.csim.equal
    module, _ = make()
    with penstock_runtime.load(tmp_path / "package") as accelerator:
        assert [port.shape for port in accelerator.inputs] == [(4, 8)]
        frames = [seeded((4, 8), seed) for seed in range(3)]
        answers = accelerator.run_calls([[x.numpy()] for x in frames])
        for x, (_, found) in zip(frames, answers, strict=True):
            with torch.no_grad():
                wanted = module(x)
            floats = [w.numpy() for w in (wanted if isinstance(wanted, tuple) else (wanted,)) if w.is_floating_point()]
            ours = [f for f in found if f.dtype.kind == "f"]
            if quantize is None:
                np.testing.assert_allclose(ours[0], floats[0], rtol=1e-3, atol=1e-3)
            else:  # a near tie of the router may fall otherwise
                assert np.median(np.abs(ours[0] - floats[0])) < 0.1 * np.abs(floats[0]).max()
