"""Buffers that forward changes: read as state, with their new values as results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.saved_program import load_checked
from tests.frontend import held_models

MODELS = Path(held_models.__file__)


def test_a_running_mean_goes_on_from_call_to_call(tmp_path: Path) -> None:
    import_model(f"{MODELS}:running").save(tmp_path)
    program = prepare(load_checked(tmp_path, make_context(), 1 << 24))
    (state,) = program.states
    assert (state.name, state.input, state.port, state.result, state.dim) == ("mean", 0, "b_mean", 0, None)
    module, (x,) = held_models.running()
    held = program.initial["mean"]
    assert np.all(held == 0.5), "importing it must not have changed it"
    for call in range(3):
        with torch.no_grad():
            wanted = module(x + call).numpy()
        held, answer = run(program, [held, (x + call).numpy()])
        np.testing.assert_allclose(answer, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(held, module.get_buffer("mean").numpy(), rtol=1e-5, atol=1e-6)


def test_a_cache_gives_its_new_rows_alone_and_the_host_says_where_they_go() -> None:
    program = import_model(f"{MODELS}:attention")
    assert program.host is not None
    graph = program.host.graph
    found = {state.name: state for state in program.states}
    keys, values, count = (found[name] for name in ("keys", "values", "count"))
    assert (keys.dim, values.dim, keys.positions) == (0, 0, values.positions)
    assert graph["positions"] == {keys.positions: held_models.PLACES}
    assert count.port is None, "an integer is the host's"
    shapes = [program.signature.outputs[s.result].shape for s in (keys, values) if s.result is not None]
    assert shapes == [(1, 2, 4)] * 2
    assert program.samples is not None
    answers = run(prepare(program), prepare(program).samples.inputs)  # pyright: ignore[reportOptionalMemberAccess]
    for answer, wanted in zip(answers, program.samples.outputs, strict=True):
        np.testing.assert_allclose(answer.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-6)


def test_state_that_grows_is_refused() -> None:
    with pytest.raises(PenstockError, match=r"'seen' another shape .*it is \(1, 8\) .* would be \(2, 8\)") as refused:
        import_model(f"{MODELS}:growing")
    assert refused.value.code == "state-changes"
