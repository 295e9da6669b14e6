"""Every mistake in a model file is told in one line, with the place in the file."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.reference import parse_reference

HEAD = "import torch\nfrom torch import nn\n"


def load(folder: Path, text: str, function: str = "model"):
    path = folder / "net.py"
    path.write_text(text)
    return load_model(parse_reference(f"{path}:{function}"))


def test_a_model_with_an_evaluation(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "neighbour.py").write_text("WIDTH = 4\n")
    model = load(
        tmp_path,
        HEAD + "from neighbour import WIDTH\nprint('hello')\n"
        "def model():\n"
        "    data = {'name': 'd', 'inputs': torch.ones(5, 4), 'labels': [0, 1, 0, 1, 0]}\n"
        "    return nn.Dropout(), torch.ones(1, WIDTH), data\n",
    )
    assert model.name == "net"
    assert not model.module.training
    assert [tuple(x.shape) for x in model.example_inputs] == [(1, 4)]
    assert model.evaluation is not None
    assert model.evaluation.labels.tolist() == [0, 1, 0, 1, 0]
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err


BAD_FILES = {
    "syntax": ("def model(:\n", "model-file", "SyntaxError", "net.py:1"),
    "import": (HEAD + "import no_such_module\n", "model-file", "No module named 'no_such_module'", "net.py:3"),
    "exit": ("import sys\nsys.exit(3)\n", "model-file", "SystemExit: 3", "net.py:2"),
    "no function": (HEAD + "def net(): ...\n", "model-function", "it defines: net", "net.py"),
    "empty": ("", "model-function", "there is no function 'model'", "net.py"),
    "not a function": (HEAD + "model = nn.Linear(2, 2)\n", "model-function", "a Linear, not a function", "net.py"),
    "raises": (HEAD + "def model():\n    return nn.Linear(-1, 'x')\n", "model-function", "model.. failed", "net.py:4"),
    "arguments": (HEAD + "def model(x): ...\n", "model-function", "missing 1 required positional argument", "net.py"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_not_models(tmp_path: Path, name: str) -> None:
    text, code, message, place = BAD_FILES[name]
    with pytest.raises(PenstockError) as caught:
        load(tmp_path, text)
    assert caught.value.code == code
    assert place in caught.value.where
    line = caught.value.one_line()
    assert message.replace("model.. failed", "model() failed") in line
    assert "\n" not in line
    assert "Traceback" not in line


BAD_RETURNS = {
    "None": "returned None",
    "nn.Linear(2, 2)": "returned a Linear",
    "(nn.Linear(2, 2),)": "returned a tuple of 1",
    "(3, torch.ones(1, 2))": "is an int, not a torch.nn.Module",
    "(nn.Linear(2, 2), None)": "the example inputs are None",
    "(nn.Linear(2, 2), [1.0])": "example input 0 is a float, not a tensor",
    "(nn.Linear(2, 2), ())": "the example inputs are a tuple of 0",
    "(nn.Linear(2, 2), torch.ones(1, 2), 5)": "the evaluation is an int",
    "(nn.Linear(2, 2), torch.ones(1, 2), {'inputs': 1})": "a mapping of inputs, not a mapping of name",
}


@pytest.mark.parametrize("returned", BAD_RETURNS)
def test_wrong_returns(tmp_path: Path, returned: str) -> None:
    with pytest.raises(PenstockError) as caught:
        load(tmp_path, HEAD + f"def model():\n    return {returned}\n")
    assert caught.value.code == "model-return"
    assert BAD_RETURNS[returned] in caught.value.what
    assert "(module, example_inputs)" in caught.value.hint


@pytest.mark.parametrize(
    "evaluation",
    [
        "{'name': 'd', 'inputs': torch.ones(5, 2), 'labels': torch.ones(4, dtype=torch.long)}",
        "{'name': 'd', 'inputs': torch.ones(5, 2), 'labels': torch.ones(5)}",
        "{'name': 'd', 'inputs': torch.ones(5), 'labels': [0] * 5}",
        "{'name': 'd', 'inputs': torch.ones(5, 2), 'labels': [0] * 5, 'calibration': torch.ones(5, 3)}",
    ],
)
def test_evaluations_that_do_not_fit_together(tmp_path: Path, evaluation: str) -> None:
    text = HEAD + f"def model():\n    return nn.Linear(2, 2), torch.ones(1, 2), {evaluation}\n"
    with pytest.raises(PenstockError) as caught:
        load(tmp_path, text)
    assert caught.value.code == "evaluation-shape"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="does not exist"):
        load_model(parse_reference(f"{tmp_path}/none.py:model"))
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(PenstockError, match="is a folder"):
        load_model(parse_reference(f"{tmp_path}/folder.py:model"))


def test_the_zoo() -> None:
    model = load_model(parse_reference("zoo:mlp?inputs=6&hidden=5,4&outputs=3&batch=2&bias=false"))
    assert model.module(*model.example_inputs).shape == (2, 3)
    assert sorted(name for name, _ in model.module.named_parameters()) == [
        "head.weight",
        "hidden.0.weight",
        "hidden.1.weight",
    ]
    again = load_model(parse_reference("zoo:mlp?inputs=6&hidden=5,4&outputs=3&batch=2&bias=false"))
    assert torch.equal(model.example_inputs[0], again.example_inputs[0])


@pytest.mark.parametrize(
    ("reference", "code", "message"),
    [
        ("zoo:resnet", "unknown-model", "the zoo has no model 'resnet'"),
        ("zoo:mlp?width=3", "unknown-option", "mlp has no option 'width'"),
        ("zoo:mlp?inputs=many", "bad-option", "inputs='many' is not of type int"),
        ("zoo:mlp?bias=maybe", "bad-option", "bias='maybe' is not of type bool"),
        ("zoo:mlp?hidden=0", "bad-option", "at least 1"),
        ("zoo:mlp?hidden=a", "bad-option", "at least 1"),
    ],
)
def test_the_zoo_refuses_by_name(reference: str, code: str, message: str) -> None:
    with pytest.raises(PenstockError) as caught:
        load_model(parse_reference(reference))
    assert caught.value.code == code
    assert message in caught.value.one_line()


@pytest.mark.parametrize(("layer", "trains"), [("BatchNorm1d(4)", "batch_norm"), ("Dropout(0.5)", "dropout")])
def test_a_graph_that_was_exported_in_training_is_refused(layer: str, trains: str, tmp_path: Path) -> None:
    """Nothing can put it into evaluation mode, and it would train with each answer."""
    path = tmp_path / "exported.py"
    path.write_text(
        HEAD
        + f"""
def model(training):
    module, x = nn.Sequential(nn.Linear(4, 4), nn.{layer}), torch.randn(3, 4)
    return torch.export.export(module.train(training), (x,)).module(), (x,)

def for_use():
    return model(False)

def in_training():
    return model(True)
"""
    )
    assert isinstance(load_model(parse_reference(f"{path}:for_use")).module, torch.fx.GraphModule)
    with pytest.raises(PenstockError, match=f"exported in training mode: {trains} trains"):
        load_model(parse_reference(f"{path}:in_training"))


@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")  # torch's own, of an LSTM's weights
@pytest.mark.parametrize(("dropout", "refused"), [(0.0, False), (0.1, True)])
@pytest.mark.parametrize("name", ["Attention", "Recurrent"])
def test_what_drops_nothing_does_not_train(name: str, dropout: float, refused: bool, tmp_path: Path) -> None:
    """Attention is not told whether it trains, and an LSTM is told even where nothing of it is dropped."""
    path = tmp_path / "dropping.py"
    path.write_text(
        HEAD
        + f"""
class Attention(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, dropout_p={dropout})

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, num_layers=2, batch_first=True, dropout={dropout})

    def forward(self, x):
        return self.lstm(x)[0]

def model():
    x = torch.randn(1, 3, 4)
    return torch.export.export({name}().train(), (x,)).module(), (x,)
"""
    )
    reference = parse_reference(f"{path}:model")
    if refused:
        with pytest.raises(PenstockError, match=r"exported in training mode: .* trains"):
            load_model(reference)
    else:
        assert isinstance(load_model(reference).module, torch.fx.GraphModule)


_TRAINED = """
import torch
from torch import nn

def trained():
    net = nn.Linear(4, 2)
    net.load_state_dict({"weight": torch.ones(2, 4), "bias": torch.zeros(2)})
    return net, (torch.ones(1, 4),)

def gone():
    return nn.Linear(4, 2), (torch.load("/nowhere/trained.pt"),)
"""


def test_a_file_that_loads_trained_numbers_is_looked_at_in_silence(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(_TRAINED)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert load_model(parse_reference(f"{tmp_path}/net.py:trained"), weights=False).has_weights is False
    assert not said


def test_a_file_that_is_not_there_may_lie_on_another_machine(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="FileNotFoundError") as caught:
        load(tmp_path, _TRAINED, "gone")
    assert "weights=FILE.safetensors" in caught.value.hint
