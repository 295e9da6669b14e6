"""How the numbers of an ONNX file are stored: in a file beside it, in half or double precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node as node

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from tests.frontend.onnx_files import evaluated, graph, save

WEIGHTS = np.random.default_rng(7).uniform(-1, 1, (4, 3)).astype(np.float32)


def layer() -> onnx.ModelProto:
    return graph([node("MatMul", ["x", "w"], ["y"])], {"x": (2, 4)}, ["y"], {"w": WEIGHTS})


def elsewhere(folder: Path, **told: str) -> Path:
    """The layer, with its weights beside it in `net.data`; `told` is what the file says of the place."""
    model, path = layer(), folder / "net.onnx"
    onnx.save_model(model, str(path), save_as_external_data=True, location="net.data", size_threshold=0)
    if told:
        model = onnx.load(str(path), load_external_data=False)
        entries = {entry.key: entry for entry in model.graph.initializer[0].external_data}
        for key, value in told.items():
            entry = entries.get(key) or model.graph.initializer[0].external_data.add(key=key)
            entry.value = value
        save(model, path)
    return path


def test_weights_in_a_file_beside_it_are_read(tmp_path: Path) -> None:
    program = import_model(str(elsewhere(tmp_path)))
    np.testing.assert_array_equal(next(iter(program.params.values())), WEIGHTS)


def test_weights_are_read_from_where_they_begin(tmp_path: Path) -> None:
    path = elsewhere(tmp_path, offset="8", length="48")
    (tmp_path / "net.data").write_bytes(b"in front" + WEIGHTS.tobytes() + b"behind")
    np.testing.assert_array_equal(next(iter(import_model(str(path)).params.values())), WEIGHTS)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"location": "../../etc/passwd"}, "lies in '../../etc/passwd'"),
        ({"location": "/etc/passwd"}, "lies in '/etc/passwd'"),
        ({"location": ".."}, "lies in '..'"),
        ({"location": "inner"}, "lies in 'inner', which is no file"),
        ({"location": "link"}, "lies in 'link', which is no file"),
        ({"location": "gone"}, "lies in 'gone', which is not there"),
        ({"offset": "40"}, "needs 48 bytes from byte 40 on of 'net.data', which has"),
        ({"offset": "-1"}, "is described wrongly"),
        ({"length": "8"}, "needs 48 bytes"),
    ],
)
def test_data_that_lies_where_it_must_not_is_refused(told: dict[str, str], said: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(PenstockError) as caught:
        import_model(str(elsewhere(tmp_path, **told)))
    assert (caught.value.code, said in caught.value.what) == ("onnx-external-data", True), caught.value.one_line()
    assert "'w' " in caught.value.what
    assert "\n" not in caught.value.one_line()


def test_a_huge_tensor_beside_the_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = elsewhere(tmp_path)
    model = onnx.load(str(path), load_external_data=False)
    model.graph.initializer[0].dims[:] = [1 << 20, 1 << 20]
    with pytest.raises(PenstockError, match="'w' is declared with shape"):
        import_model(str(save(model, path)))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats_become_float32_and_a_note_says_so(dtype: str, tmp_path: Path) -> None:
    half = np.dtype(dtype)
    kind: Any = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.DOUBLE
    inner = helper.make_graph(
        [node("MatMul", ["x", "w"], ["made"])], "then", [], [helper.make_tensor_value_info("made", kind, [2, 3])]
    )
    nodes = [
        node("If", ["yes"], ["a"], then_branch=inner, else_branch=inner),
        node("Cast", ["a"], ["b"], to=TensorProto.FLOAT),
        node("Cast", ["b"], ["c"], to=kind),
        node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(np.asarray(0.5, half))),
        node("Mul", ["c", "k"], ["y"]),
    ]
    constants = {"w": WEIGHTS.astype(half), "yes": np.asarray(True)}
    model = graph(nodes, {"x": (2, 4)}, ["y"], constants, dtype=dtype)
    model.graph.output[0].type.tensor_type.elem_type = kind
    program = import_model(str(save(model, tmp_path / "net.onnx")))
    assert program.notes[0].startswith(f"values of the file in {dtype} were converted")
    assert program.samples is not None
    assert program.samples.inputs[0].dtype == np.float32
    (wanted,) = evaluated(model, {"x": program.samples.inputs[0].astype(half)})
    np.testing.assert_allclose(program.samples.outputs[0], wanted, rtol=4e-3, atol=2e-3)


def test_names_that_are_keywords(tmp_path: Path) -> None:
    nodes = [node("MatMul", ["class", "def"], ["if"], "for"), node("Relu", ["if"], ["return"], "while")]
    program = import_model(
        str(save(graph(nodes, {"class": (2, 4)}, ["return"], {"def": WEIGHTS}), tmp_path / "n.onnx"))
    )
    assert program.signature.inputs[0].shape == (2, 4)
