"""From a PyTorch module to a named linalg program, and the refusals on that way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import make_context
from penstock.compiler.frontend.loaded import LoadedEvaluation
from penstock.compiler.interpreter.linalg import argument_names, main_function, run, run_rows
from penstock.compiler.program import Program
from penstock.compiler.transforms.editor import layer_of
from tests.frontend.models import Lambda, import_module, seeded


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 6)
        self.act = nn.ReLU()
        self.down = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(self.act(self.up(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(Block(), Block())
        self.head = nn.Linear(4, 3)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(pixels)))


def test_layers_carry_their_place_in_the_model() -> None:
    program = import_module(Net(), seeded((1, 4)))
    names = [layer_of(op) for op in program.module.walk() if isinstance(op, linalg.GenericOp) and op.inputs]
    block = ["up.weight", "up", "up.bias", "act.relu", "down.weight", "down", "down.bias", "add"]
    assert names == [
        *(f"body.0.{name}" for name in block),
        *(f"body.1.{name}" for name in block),
        "relu",
        "head.weight",
        "head",
        "head.bias",
    ]


def test_weights_are_arguments_by_their_names() -> None:
    module = Net()
    program = import_module(module, seeded((1, 4)))
    state = {name: value.numpy() for name, value in module.state_dict().items()}
    assert {name: value.tolist() for name, value in program.params.items()} == {n: v.tolist() for n, v in state.items()}
    kinds = argument_names(main_function(program))
    assert ("pixels", "input") in kinds
    assert {name for name, kind in kinds if kind == "param"} == set(state)
    assert "dense<" not in str(program.module)


def test_the_program_answers_as_pytorch_and_survives_a_save(tmp_path: Path) -> None:
    module, rows = Net(), seeded((7, 4), 1)
    evaluation = LoadedEvaluation("held out", rows, torch.arange(7) % 3, calibration=rows[:3])
    program = import_module(module, seeded((2, 4)), evaluation=evaluation)
    program.save(tmp_path)
    loaded = Program.load(tmp_path, make_context())
    assert str(loaded.module) == str(program.module)
    assert loaded.signature == program.signature
    assert loaded.samples is not None
    np.testing.assert_allclose(run(loaded, loaded.samples.inputs)[0], loaded.samples.outputs[0], rtol=1e-5, atol=1e-6)
    assert loaded.evaluation is not None
    assert loaded.evaluation.outputs.shape == (7, 3)
    np.testing.assert_allclose(
        run_rows(loaded, loaded.evaluation.inputs), module(rows).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert [rows.shape for rows in loaded.calibration] == [(2, 2, 4)]


def branch(m: Lambda, x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 1
    return x - 1


Build = Callable[[], nn.Module]
REFUSED: dict[str, tuple[Build, tuple[int, ...], str, str, str]] = {
    "control flow": (lambda: Lambda(branch), (2, 8), "data-dependent", "values of a tensor", "test_import.py:"),
    "a number from a tensor": (
        lambda: Lambda(lambda m, x: x * float(x.sum())),
        (2, 8), "data-dependent", "values of a tensor", "test_import.py:",
    ),
    "selected elements": (lambda: Lambda(lambda m, x: x[x > 0]), (2, 8), "dynamic-shape", "size of the result", "net"),
    "numpy": (
        lambda: Lambda(lambda m, x: torch.from_numpy(x.numpy())),
        (2, 8), "export-failed", "cannot trace", "test_import.py:",
    ),
    "wrong shape": (lambda: nn.Linear(8, 4), (2, 9), "example-inputs", "shape (2, 9)", "net.py:model"),
    "empty input": (lambda: nn.Linear(8, 4), (0, 8), "empty-tensor", "shape (0, 8)", "net.py:model"),
    "an operation of another kind": (
        lambda: nn.Sequential(nn.Linear(8, 4), Lambda(lambda m, x: torch.erfinv(x))),
        (2, 8), "unsupported-op", "aten.erfinv", "layer '1' of net (models.py:",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_is_explained(name: str) -> None:
    build, shape, code, what, where = REFUSED[name]
    with pytest.raises(PenstockError) as caught:
        import_module(build(), seeded(shape))
    assert caught.value.code == code
    assert what in caught.value.what
    assert where in caught.value.where
    assert caught.value.hint
    assert "\n" not in caught.value.one_line()


def test_an_evaluation_needs_rows_of_the_input() -> None:
    evaluation = LoadedEvaluation("d", seeded((5, 3)), torch.zeros(5, dtype=torch.int64))
    with pytest.raises(PenstockError, match=r"evaluation inputs have shape \(5, 3\)"):
        import_module(nn.Linear(4, 2), seeded((1, 4)), evaluation=evaluation)
