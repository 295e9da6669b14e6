"""Layers of a model that a task program computes: held to PyTorch, down to C++ and SystemVerilog; refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels, verify_pytorch
from penstock.compiler.program import Program
from penstock.compiler.reference import ImplementedReference, parse_reference
from penstock.compiler.saved_program import load_checked
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.jobs.check import check_whole
from tests.tasks.in_verilator import assert_equal_in_verilator

MODEL = """
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x, scale=None):
        return self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.inner, self.twice = nn.Linear(4, 4), nn.Linear(4, 4), Inner(), nn.Linear(4, 4)

    def forward(self, x):
        x = torch.tanh(self.fc2(torch.relu(self.fc1(x)))) + self.inner(x, scale=None)
        return self.twice(self.twice(x))


def model():
    torch.manual_seed(0)
    return Net(), (torch.randn(1, 4),)
"""
PROGRAM = """
from penstock.tasks import *

{head}
@program
def linear(x: {x}, weight: {weight}, bias: {bias}, y: {y}):
    s = Stream[float32, 4]

    @task
    def load():
        s.put(x[0:4])

    @task
    def work():
        held: float32[4] = 0
        for n in range(4):
            if n == 0:
                held = s.get()
            y[n] = {sum}
"""
TYPES = {"x": "float32[4]", "weight": "float32[4, 4]", "bias": "float32[4]", "y": "float32[4]"}
RIGHT = {**TYPES, "head": '@implements("fc1", "fc2")', "sum": "matmul(weight[n, :], held) + bias[n]"}


def imported(folder: Path, **changes: str) -> Program:
    (folder / "net.py").write_text(MODEL)
    (folder / "program.py").write_text(PROGRAM.format_map({**RIGHT, **changes}))
    return import_model(f"{folder}/net.py:model#{folder}/program.py")


def lowered_of(program: Program) -> Lowered:
    evaluator = Evaluator.create(program, "ecp5-85k")
    return lower(program, finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design)


def test_each_layer_answers_as_pytorch_does_with_its_own_weights(tmp_path: Path) -> None:
    imported(tmp_path).save(tmp_path / "saved")
    program = prepare(load_checked(tmp_path / "saved", make_context(), 1 << 24))
    layers = program.layers
    assert layers is not None
    assert layers.names == ("fc1", "fc2")
    assert [n["number"] for n in layers.graph["nodes"] if n["op"] == "penstock.layer"] == [0, 1]
    assert set(program.held_inputs(0)) == {"weight", "bias"}
    assert not np.array_equal(program.held_inputs(0)["weight"], program.held_inputs(1)["weight"])
    assert [port.shape for port in program.signature.inputs] == [(1, 4), (4, 4), (4,)]
    for number, (given, answered) in enumerate(layers.calls):
        np.testing.assert_allclose(
            run(program, program.all_inputs(number, given))[0], answered[0], rtol=1e-5, atol=1e-6
        )
    with pytest.raises(PenstockError, match="a task program says itself what numbers"):
        prepare(imported(tmp_path), "w8a8")


def test_streams_equal_the_text_and_pytorch(tmp_path: Path) -> None:
    lowered = lowered_of(imported(tmp_path))
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    compared = verify_pytorch(lowered)
    assert compared is not None
    assert compared.equal


@pytest.mark.slow
def test_the_hardware_in_the_model_answers_as_pytorch_does(tmp_path: Path) -> None:
    lowered = lowered_of(imported(tmp_path))
    inputs = make_inputs(lowered, random_sets=1)
    emit(lowered, tmp_path / "out", part="x", clock_mhz=lowered.design.clock_mhz)
    csim = build_csim(tmp_path / "out", ToolRunner())
    assert verify_csim(lowered, csim, inputs).equal
    whole = check_whole(lowered, None, csim)
    assert whole is not None
    assert whole.ok
    assert_equal_in_verilator(lowered, inputs)


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"head": '@implements("fc3")'}, "no-layers", "no layer 'fc3' .*it has fc1, fc2, inner, .*did you mean"),
        ({"head": ""}, "no-layers", "does not say which layers"),
        ({"head": "@implements()"}, "bad-task-program", "program.py:4:2: implements takes the names of layers"),
        ({"head": '@implements("fc1", "fc1")'}, "bad-task-program", "each once"),
        ({"head": "@implements(3)"}, "bad-task-program", "takes the names of layers"),
        ({"head": '@implements("inner", "inner.up")'}, "no-layers", "'inner.up' is a part of 'inner'"),
        ({"head": '@implements("twice")'}, "layers-differ", "the model calls it 2 times"),
        ({"head": '@implements("inner.up")'}, "bad-task-program",
         r"program.py:6:27: weight is float32\[4, 4\] here, and float32\[6, 4\] in layer 'inner.up' "
         r"\(inner.up is a Linear: float32\[1, 4\], weight: float32\[6, 4\], bias: float32\[6\] to float32\[1, 6\]\)"),
        ({"head": '@implements("inner")'}, "bad-task-program", "it takes no up_weight, which layer 'inner' has"),
        ({"weight": "int8[4, 4]", "sum": "float32(sum(weight[n, :])) + bias[n] + sum(held)"}, "bad-task-program",
         r"weight is int8\[4, 4\] here, and float32\[4, 4\] in layer 'fc1'"),
        ({"sum": "matmul(weight[n, :], held) - bias[n]"}, "bad-task-program", "y is not what layer 'fc1' answers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict[str, str], code: str, said: str) -> None:
    with pytest.raises(PenstockError, match=said) as refused:
        imported(tmp_path, **changes)
    assert refused.value.code == code
    assert "\n" not in refused.value.one_line()


def test_a_program_with_a_tensor_too_many_is_refused(tmp_path: Path) -> None:
    imported(tmp_path)
    text = (tmp_path / "program.py").read_text()
    more = text.replace("bias: float32[4]", "bias: float32[4], mask: float32[4]").replace(
        "+ bias[n]", "+ bias[n] + mask[n]"
    )
    (tmp_path / "program.py").write_text(more)
    with pytest.raises(PenstockError, match=r"takes 2 tensors beside the weights \(x, mask\), and layer 'fc1' 1"):
        import_model(f"{tmp_path}/net.py:model#{tmp_path}/program.py")


def test_shapes_alone_are_enough_to_look_at_it(tmp_path: Path) -> None:
    imported(tmp_path)
    program = import_model(f"{tmp_path}/net.py:model#{tmp_path}/program.py", weights=False)
    assert not program.has_weights
    assert program.layers is not None
    assert program.samples is None


def test_references_with_programs() -> None:
    found = parse_reference("zoo:mlp?hidden=8#some/linear.py:linear?N=4")
    assert isinstance(found, ImplementedReference)
    assert (str(found.model), str(found.program)) == ("zoo:mlp?hidden=8", "some/linear.py:linear?N=4")
    assert str(found) == "zoo:mlp?hidden=8#some/linear.py:linear?N=4"
    with pytest.raises(PenstockError, match="only a PyTorch module"):
        parse_reference("model.onnx#linear.py")
