"""A model whose sizes each call says: what is learnt of its tensors, what is kept on disk, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model, make_context
from penstock.compiler.frontend.__main__ import main
from penstock.compiler.lengths import ByLength, Length, parse_lengths
from penstock.compiler.program import Program
from penstock.compiler.saved_program import FILES, load_checked
from tests.frontend.onnx_files import export

MODEL = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2), -1) @ x

class Mean(nn.Module):
    def forward(self, x):
        return x.mean(0)

class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x):
        state = x[0]
        for row in x:
            state = torch.tanh(self.cell(state) + row)
        return state

class Halved(nn.Module):
    def forward(self, x):
        return torch.relu(x[: (len(x) + 1) // 2])

def model(rows=8):
    return Attention(), torch.randn(rows, 4)

def mean(rows=8):
    return Mean(), torch.randn(rows, 4)

def steps(rows=8):
    return Steps(), torch.randn(rows, 4)

def halved(rows=8):
    return Halved(), torch.randn(rows, 4)

def wide(width):
    return nn.Linear(width, 3), torch.randn(2, width)

def found(rows=8):
    return nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4)), torch.zeros(rows, dtype=torch.int64)

class Sorted(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        order = torch.argsort(self.first(x).sum(-1))
        return self.second(x[order])

class Strided(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, tokens):
        doubled = tokens * 2 if len(tokens) > 4 else tokens + 1
        return self.linear(torch.nn.functional.one_hot(doubled, 4).to(torch.float32))

class Drawn(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.linear, self.more = nn.Linear(4, 4), torch.arange(rows) % 2

    def forward(self, tokens):
        return self.linear(torch.nn.functional.one_hot(tokens + self.more, 4).to(torch.float32))

class Faded(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(rows, 4))

    def forward(self, x):
        self.seen.mul_(0.5).add_(x)
        return self.linear(self.seen)

def sorted_twice(rows=8):
    return Sorted(), torch.randn(rows, 4)

def strided(rows=8):
    return Strided(), torch.zeros(rows, dtype=torch.int64)

def drawn(rows=8):
    return Drawn(rows), torch.zeros(rows, dtype=torch.int64)

def faded(rows=8):
    return Faded(rows), torch.randn(rows, 4)

def fixed():
    return Attention(), torch.randn(8, 4)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def attention(source: Path) -> Program:
    return import_model(f"{source}:model", dims=parse_lengths(["rows=2..8/2"]))


def test_sizes_follow_from_the_length(attention: Program) -> None:
    known = attention.lengths
    assert known is not None
    assert known.lengths == (Length("rows", 2, 8, 2),)
    rows = ByLength.of({"rows": 1})
    assert known.inputs == ((rows, None),)
    assert known.outputs == ((rows, None),)
    assert attention.signature.inputs[0].shape == (8, 4)
    assert [dict(sample.lengths) for sample in known.samples] == [{"rows": 2}, {"rows": 4}, {"rows": 6}]


def test_the_examples_at_other_lengths_are_of_the_same_model(attention: Program) -> None:
    assert attention.lengths is not None
    weights = {name.rpartition(".")[0]: value for name, value in attention.params.items() if value.ndim == 2}
    assert weights
    for sample in attention.lengths.samples:
        x = torch.from_numpy(sample.inputs[0])
        keys = [torch.from_numpy(v) for v in attention.params.values()]
        assert sample.outputs[0].shape == x.shape
        assert any(torch.allclose(torch.from_numpy(sample.outputs[0]), _attend(x, *order), atol=1e-5)
                   for order in _orders(keys))  # fmt: skip


def _orders(values: list[torch.Tensor]) -> list[tuple[torch.Tensor, ...]]:
    square = [v for v in values if v.ndim == 2]
    biases = [v for v in values if v.ndim == 1]
    return [(a, b, c, d) for a in square for b in biases for c in square for d in biases]


def _attend(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    a, b, c, d = weights
    q, k = nn.functional.linear(x, a, b), nn.functional.linear(x, c, d)
    return torch.softmax(q @ k.T, -1) @ x


def test_it_is_kept_and_read_again(attention: Program, tmp_path: Path) -> None:
    attention.save(tmp_path / "out")
    files = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert files <= set(FILES)  # the fence hands over no others
    read, known = load_checked(tmp_path / "out", make_context(), 1 << 24).lengths, attention.lengths
    assert read is not None
    assert known is not None
    assert (read.lengths, read.inputs, read.outputs, dict(read.params)) == (
        known.lengths, known.inputs, known.outputs, dict(known.params),
    )  # fmt: skip
    for one, other in zip(read.samples, known.samples, strict=True):
        assert dict(one.lengths) == dict(other.lengths)
        assert all(np.array_equal(a, b) for a, b in zip((*one.inputs, *one.outputs),
                                                        (*other.inputs, *other.outputs), strict=True))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("lengths", 0, "name", "int x; //"), "no range of lengths"),
        (("lengths", 0, "high", 16), "other sizes"),
        (("inputs", 0, 0, {"factors": {"other": 1}, "offset": 0}), "does not have"),
        (("outputs", 0, 0, None), "an example has other sizes"),
        (("outputs", [[None]]), "of other ports"),
    ],
)
def test_what_was_written_by_somebody_else_is_refused(
    attention: Program, tmp_path: Path, change: tuple[object, ...], words: str
) -> None:
    folder = tmp_path / "out"
    attention.save(folder)
    document = json.loads((folder / "lengths" / "lengths.json").read_text())
    *path, last, value = change
    place = document
    for key in path:
        place = place[key]
    place[last] = value
    (folder / "lengths" / "lengths.json").write_text(json.dumps(document))
    with pytest.raises(PenstockError, match=words):
        load_checked(folder, make_context(), 1 << 24)


@pytest.mark.parametrize(
    ("reference", "dims", "words"),
    [
        ("{}:fixed", ["rows=2..8"], r"fixed\(\) has no parameter 'rows' \(it has none\) - write def fixed\(rows\)"),
        ("{}:model", ["columns=2..8"], r"has no parameter 'columns' \(its parameters: rows\)"),
        ("{}:steps", ["rows=2..6"], "it has .* operations at rows=6 and .* at rows=2"),
        ("{}:mean", ["rows=2..8"], "it computes with .* at rows=8 and with .* at rows=2"),
        ("{}:halved", ["rows=3..8"], "dim 0 is 4 at rows=8 and 2 at 3, which does not grow evenly"),
        ("{}:wide", ["width=2..8"], "sizes of trained weights cannot"),
        ("{}:sorted_twice", ["rows=2..8"], "the host computes between calls of the accelerator"),
        ("{}:strided", ["rows=2..8"], "the host computes with .* at rows=2 and with .* at 8"),
        ("{}:drawn", ["rows=2..8"], "the host computes with a tensor that has other sizes then"),
        ("{}:faded", ["rows=2..8"], "each call gives what the model keeps anew"),
        ("zoo:mlp", ["rows=2..8"], "mlp has no option 'rows' - its options: inputs=64"),
        ("zoo:mlp?batch=3", ["batch=2..8"], "'batch' is one number in the model and a range in --dim"),
        ("zoo:gpt2_text#h", ["seq=2..8"], "gpt2_text has no option 'seq'"),
        ("zoo:mlp", ["seed=1..4"], "the size of no input follows from seed|not the beginning"),
        ("model.mlir", ["rows=2..8"], "takes no lengths"),
    ],
)  # fmt: skip
def test_refusals(source: Path, reference: str, dims: list[str], words: str) -> None:
    with pytest.raises(PenstockError, match=words):
        import_model(reference.format(source), dims=parse_lengths(dims))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["seq"], "no range of lengths"),
        (["seq=4"], "no range of lengths"),
        (["seq=٣..٤"], "no range of lengths"),
        (["seq=1..9999999999"], "no range of lengths"),
        (["seq=8..4"], "8 is not below 4"),
        (["seq=0..4"], "at least 1"),
        (["seq=2..9/2"], "not both multiples of 2"),
        (["seq=1..4", "seq=1..8"], "'seq' is given twice"),
    ],
)
def test_ranges_that_are_none(texts: list[str], words: str) -> None:
    with pytest.raises(PenstockError, match=words):
        parse_lengths(texts)


def test_a_task_program_takes_no_lengths() -> None:
    program = Path(__file__).parents[2] / "examples" / "tasks" / "systolic.py"
    assert program.is_file()
    with pytest.raises(PenstockError, match="takes no lengths"):
        import_model(str(program), dims=parse_lengths(["rows=2..8"]))


def test_an_open_dim_of_an_onnx_file(tmp_path: Path) -> None:
    class Scores(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x @ x.transpose(-1, -2), -1) @ x

    path = export(
        Scores(), (torch.randn(6, 4),), tmp_path / "net.onnx", input_names=["x"], dynamic_axes={"x": {0: "rows"}}
    )
    program = import_model(str(path), dims=parse_lengths(["rows=2..6"]))
    assert program.lengths is not None
    assert program.lengths.inputs == ((ByLength.of({"rows": 1}), None),)
    with pytest.raises(PenstockError, match="no input has a dim called 'row'"):
        import_model(str(path), dims=parse_lengths(["row=2..6"]))


def test_the_fenced_import_takes_lengths(source: Path, tmp_path: Path) -> None:
    assert main([f"{source}:model", "rows=2..8/2", str(tmp_path / "out")]) == 0
    program = load_checked(tmp_path / "out", make_context(), 1 << 24)
    assert program.lengths is not None
    assert program.lengths.most == {"rows": 8}
    assert main([f"{source}:model", "rows=8..2", str(tmp_path / "refused")]) == 1
    assert json.loads((tmp_path / "refused" / "error.json").read_text())["code"] == "bad-length"
