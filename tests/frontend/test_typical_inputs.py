"""`calibration=FILE`: typical inputs of any model that PyTorch runs, which the ranges of eight bits come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.lengths import Length
from penstock.compiler.pipeline.prepare import prepare
from penstock.compiler.program import Program
from penstock.compiler.reference import CALIBRATION, OnnxReference, parse_reference
from tests.frontend.onnx_files import export

MODEL = """
import torch
from torch import nn


class Two(nn.Module):
    def forward(self, left, right):
        return torch.relu(left * 2 + right)


class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.total += x.sum(0)
        return self.total * 2


def two():
    return Two(), (torch.ones(2, 3), torch.ones(2, 3))


def keeps():
    return Keeps(), torch.ones(1, 4)


def tokens():
    return nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 3)), torch.zeros(1, 6, dtype=torch.int64)


def sized(n=4):
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(n, 4)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    return path


def rows(*shape: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32) * np.float32(scale)


def test_inputs_go_by_name_and_the_first_call_is_the_example(file: Path, tmp_path: Path) -> None:
    left, right = rows(5, 2, 3, scale=30), rows(5, 2, 3)
    np.savez(tmp_path / "in.npz", right=right, left=left)
    program = import_model(f"{file}:two?calibration={tmp_path}/in.npz")
    assert program.samples is not None
    np.testing.assert_array_equal(program.samples.inputs[0], left[0])
    np.testing.assert_array_equal(program.samples.outputs[0], np.maximum(left[0] * 2 + right[0], 0))
    assert [x.shape for x in program.calibration] == [(5, 2, 3), (5, 2, 3)]
    scales = [port.quant.scale for port in prepare(program, "w8a8").signature.inputs if port.quant]
    assert scales == pytest.approx([float(np.abs(x).max()) / 127 for x in (left, right)], rel=1e-6)
    program.save(tmp_path / "kept")
    again = Program.load(tmp_path / "kept", make_context())
    for kept, own in zip(again.calibration, program.calibration, strict=True):
        np.testing.assert_array_equal(kept, own)


def test_inputs_without_names_go_by_their_order(file: Path, tmp_path: Path) -> None:
    left, right = rows(3, 2, 3), rows(3, 2, 3, scale=2)
    np.savez(tmp_path / "in.npz", left, right)
    found = import_model(f"{file}:two?calibration={tmp_path}/in.npz").calibration
    np.testing.assert_array_equal(found[1], right)


def test_rows_of_batches_and_one_call_alone(tmp_path: Path) -> None:
    for given, calls in ((rows(7, 16), 4), (rows(2, 16), 1), (rows(6, 2, 16), 6)):
        np.save(tmp_path / "in.npy", given)
        program = import_model(f"zoo:mlp?batch=2&inputs=16&calibration={tmp_path}/in.npy")
        assert program.calibration[0].shape == (calls, 2, 16)


def test_layers_and_what_is_kept_are_called_with_the_rows(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", rows(6, 1, 4, scale=3))
    program = import_model(f"{file}:keeps?calibration={tmp_path}/in.npy")
    assert program.states
    given = np.load(tmp_path / "in.npy")[:, 0]
    largest = float(np.abs(np.cumsum(given, axis=0)).max())
    (state,) = (x for x in prepare(program, "w8a8").signature.inputs if x.name.endswith("total"))
    assert state.quant is not None
    assert state.quant.scale == pytest.approx(largest / 127, rel=1e-5)


def test_the_host_computes_what_the_accelerator_is_given(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.arange(30).reshape(5, 1, 6) % 10)
    program = import_model(f"{file}:tokens?calibration={tmp_path}/in.npy")
    assert program.host is not None
    assert program.calibration[0].shape[0] == 5
    assert program.calibration[0].dtype == np.float32


def test_other_lengths_have_the_beginning_of_the_example(file: Path, tmp_path: Path) -> None:
    given = rows(3, 4, 4, scale=9)
    np.save(tmp_path / "in.npy", given)
    program = import_model(f"{file}:sized?calibration={tmp_path}/in.npy", dims=(Length("n", 1, 4),))
    assert program.lengths is not None
    for sample in program.lengths.samples:
        np.testing.assert_array_equal(sample.inputs[0], given[0][: len(sample.inputs[0])])


def test_onnx_files_name_their_inputs(tmp_path: Path) -> None:
    path = export(torch.nn.Linear(3, 2), (torch.ones(2, 3),), tmp_path / "net.onnx", input_names=["the.x"])
    given = rows(4, 2, 3, scale=5)
    named: dict[str, Any] = {"the.x": given}
    np.savez(tmp_path / "in.npz", **named)
    reference = parse_reference(f"{path}?calibration={tmp_path}/in.npz")
    assert isinstance(reference, OnnxReference)
    assert (reference.dims, reference.calibration) == ((), f"{tmp_path}/in.npz")
    np.testing.assert_array_equal(import_model(str(reference)).calibration[0], given)


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"left": rows(3, 2, 3)}, "no array 'right'"),
        ({"left": rows(3, 2, 3), "right": rows(3, 2, 3), "more": rows(1)}, "no input is called 'more'"),
        ({"left": rows(3, 2, 3), "right": rows(2, 2, 3)}, "3 of left, 2 of right"),
        ({"left": rows(3, 2, 4), "right": rows(3, 2, 3)}, "shape (3, 2, 4)"),
        ({"left": rows(3, 2, 3) * np.nan, "right": rows(3, 2, 3)}, "NaN"),
        ({"left": np.array([["a"] * 3] * 2), "right": rows(3, 2, 3)}, "values are <U1"),
        ({"left": rows(0, 2, 3), "right": rows(0, 2, 3)}, "has no rows"),
        ({"left": np.array([{}]), "right": rows(3, 2, 3)}, "no plain number"),
    ],
)
def test_what_does_not_fit_is_refused(file: Path, tmp_path: Path, arrays: dict[str, np.ndarray], what: str) -> None:
    named: dict[str, Any] = dict(arrays)
    np.savez(tmp_path / "in.npz", **named)
    with pytest.raises(PenstockError) as refused:
        import_model(f"{file}:two?calibration={tmp_path}/in.npz")
    assert refused.value.code == "calibration-values"
    assert what in refused.value.what


def test_whole_numbers_are_whole_and_fit(file: Path, tmp_path: Path) -> None:
    for given, what in ((np.full((1, 1, 6), 1.5), "fractions"), (np.full((1, 1, 6), 2.0**70), "do not fit int64")):
        np.save(tmp_path / "in.npy", given)
        with pytest.raises(PenstockError, match=what):
            import_model(f"{file}:tokens?calibration={tmp_path}/in.npy")


def test_a_file_that_is_none_is_refused(file: Path, tmp_path: Path) -> None:
    for name, content in (("in.npz", b"PK\x03\x04 torn"), ("in.npy", b"\x93NUMPY"), ("in.npz", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PenstockError, match="no file of arrays"):
            import_model(f"{file}:two?calibration={tmp_path}/{name}")
    with pytest.raises(PenstockError, match="does not exist"):
        import_model(f"{file}:two?calibration={tmp_path}/gone.npz")
    with pytest.raises(PenstockError, match="does not exist"):
        import_model(f"{file}:two?calibration={tmp_path}/gone.npz", weights=False)
    with pytest.raises(PenstockError, match="is a folder"):
        import_model(f"{file}:two?calibration={tmp_path}")


def test_a_small_file_of_large_arrays_is_not_read(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.compiler.frontend.typical_inputs.MOST_BYTES", 1 << 16)
    np.savez_compressed(tmp_path / "in.npz", left=np.zeros((1 << 12, 2, 3), np.float32), right=rows(1, 2, 3))
    assert (tmp_path / "in.npz").stat().st_size < 1 << 12
    with pytest.raises(PenstockError, match="65536 bytes are left"):
        import_model(f"{file}:two?calibration={tmp_path}/in.npz")


def test_the_reference_says_it_again(file: Path) -> None:
    for text in (f"{file}:two?weights=w.safetensors&calibration=in.npz", f"zoo:mlp?hidden=4&{CALIBRATION}=in.npz"):
        assert str(parse_reference(text)) == text
    sized = parse_reference("a.onnx?calibration=in.npz&batch=4")
    assert isinstance(sized, OnnxReference)
    assert str(replace(sized, dims=(("batch", 8),))) == "a.onnx?batch=8&calibration=in.npz"


def test_torch_is_given_the_types_that_it_had(file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", left=np.ones((1, 2, 3), np.uint8), right=np.ones((1, 2, 3), np.float64))
    program = import_model(f"{file}:two?calibration={tmp_path}/in.npz")
    assert program.samples is not None
    assert {x.dtype for x in program.samples.inputs} == {np.dtype(np.float32)}
    assert torch.get_default_dtype() == torch.float32


def test_what_an_earlier_release_kept_is_read(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", rows(3, 4, 4))
    program = import_model(f"{file}:sized?calibration={tmp_path}/in.npy")
    program.save(tmp_path / "kept")
    np.savez(tmp_path / "kept" / "calibration.npz", inputs=program.calibration[0])
    again = Program.load(tmp_path / "kept", make_context())
    np.testing.assert_array_equal(again.calibration[0], program.calibration[0])


def test_numbers_that_float32_does_not_have_are_refused(file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", left=np.full((1, 2, 3), 1e300), right=rows(1, 2, 3))
    with pytest.raises(PenstockError, match="too large for float32"):
        import_model(f"{file}:two?calibration={tmp_path}/in.npz")
