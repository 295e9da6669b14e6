"""ONNX files that cannot be compiled: each refused on one line, whatever is wrong with it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model, make_context
from penstock.compiler.frontend.onnx_graph import load_onnx
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.reference import OnnxReference
from tests.frontend.onnx_files import graph, save
from tests.frontend.test_onnx import WEIGHTS, node, numbers


def declared(*dims: int) -> onnx.ModelProto:
    model = graph([node("Add", "x c")], {"x": (2, 4)}, ["y"], {"c": WEIGHTS[:4]})
    model.graph.initializer[0].dims[:] = dims
    return model


def relu(shape: tuple[int | None, ...], **options: Any) -> onnx.ModelProto:
    return graph([node("Relu", "x")], {"x": shape}, ["y"], **options)


def opset(version: int) -> onnx.ModelProto:
    model = relu((2, 4))
    model.opset_import[0].version = version
    return model


def foreign() -> onnx.ModelProto:
    model = relu((2, 4))
    model.graph.node[0].domain, model.graph.node[0].op_type = "com.microsoft", "FusedMatMul"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def window(
    frame: tuple[int, ...], weights: tuple[int, ...], kind: str = "Conv", **options: Any
) -> tuple[onnx.ModelProto, str, str]:
    """A layer that slides weights over a frame, how it is refused, and where."""
    constants = {"c": np.ones(weights, np.float32)}
    return graph([node(kind, "x c", **options)], {"x": frame}, ["y"], constants), "model-file", f"node '/block/{kind}'"


WINDOWS: dict[str, tuple[tuple[onnx.ModelProto, str, str], str]] = {
    "rows before channels": (
        window((1, 8, 8, 3), (4, 3, 3, 3)),
        "for 3 channels, and a frame of 8 in dim 1; its last dim has 3: ONNX has channels first (NCHW)",
    ),
    "channels of other weights": (
        window((1, 4, 8, 8), (4, 3, 3, 3), group=3), "3 groups for 9 channels, and a frame of 4",
    ),
    "groups that do not divide what is made": (
        window((1, 6, 8, 8), (5, 3, 3, 3), group=2), "group=2 divides not both 6 channels and 5",
    ),
    "groups that do not divide what is taken": (
        window((1, 3, 6, 6), (3, 2, 3, 3), "ConvTranspose", group=2), "group=2 divides not both 3 channels and 3",
    ),
    "weights larger than the frame": (
        window((1, 3, 2, 2), (4, 3, 3, 3)), "Kernel size can't be greater than actual input size",
    ),
    "padding below zero": (
        window((1, 3, 9, 9), (4, 3, 3, 3), pads=[-1, -1, -1, -1]), "pads of [-1, -1, -1, -1], which are at least 0",
    ),
    "no stride": (
        window((1, 3, 9, 9), (4, 3, 3, 3), strides=[0, 1]), "strides of [0, 1], which are at least 1",
    ),
}  # fmt: skip


REFUSED: dict[str, tuple[onnx.ModelProto, str, str, str]] = {
    "a huge tensor": (declared(1 << 20, 1 << 20), "onnx-tensor-size", "'c' is declared with shape", "net.onnx"),
    "a shape that its data does not have": (declared(5), "model-file", "no valid ONNX model", "net.onnx"),
    "a negative size": (declared(-4), "onnx-tensor-size", "shape (-4,)", "net.onnx"),
    "an opset of tomorrow": (opset(999), "onnx-opset", "opset 999", "net.onnx"),
    "an opset of old": (opset(3), "onnx-opset", "opset 3", "net.onnx"),
    "an unknown domain": (foreign(), "unsupported-op", "com.microsoft.FusedMatMul", "node '/block/Relu' of net"),
    "an unknown operator": (
        graph([node("Det", "x")], {"x": (2, 2)}, ["y"]), "unsupported-op", "operator Det", "node '/block/Det' of net",
    ),
    "places of a maximum": (
        graph([helper.make_node("MaxPool", ["x"], ["y", "places"], "/block/MaxPool", kernel_shape=[2, 2])],
              {"x": (1, 1, 4, 4)}, ["y"]),
        "unsupported-op", "MaxPool is not supported with its indices as a result", "node '/block/MaxPool' of net",
    ),
    "a mirror image longer than the tensor": (
        graph([node("Pad", "x p", mode="reflect")], {"x": (2, 4)}, ["y"], {"p": numbers(0, 4, 0, 1)}),
        "unsupported-op", "Pad is not supported with mode='reflect' by 4 of 4", "node '/block/Pad' of net",
    ),
    "a dim without a name": (relu((4, None)), "dynamic-shape", "dim 1 is dynamic", "input 'x' of"),
    "an empty input": (relu((0, 4)), "empty-tensor", "dim 0 has size 0", "input 'x' of"),
    "an enormous input": (relu((1 << 20, 1 << 20)), "onnx-tensor-size", "it has shape", "input 'x' of"),
    "few bits": (relu((2, 4), dtype="int16"), "unsupported-dtype", "its values are int16", "input 'x' of"),
    "a shape from an input": (
        graph([node("Reshape", "c x")], {"x": (2,)}, ["y"], {"c": WEIGHTS}, dtype="int64"),
        "dynamic-shape", "input 1 of Reshape ('x')", "node '/block/Reshape' of net",
    ),
    "weights without bounds": (
        graph([node("MatMul", "x c")], {"x": (2, 4)}, ["y"], {"c": np.full((4, 3), np.inf, np.float32)}),
        "not-finite", "'c' holds NaN or infinity in 12 of its 12 places", "net",
    ),
    "an enormous result": (
        graph([node("Expand", "x c")], {"x": (1, 1)}, ["y"], {"c": numbers(1 << 20, 1 << 20)}),
        "onnx-tensor-size", "its result has shape", "node '/block/Expand' of net",
    ),
    "a side of a billion": (
        graph([helper.make_node("Resize", ["x", "", "", "c"], ["y"], "/block/Resize")], {"x": (1, 4)}, ["y"],
              {"c": numbers(1, 1 << 30)}),
        "unsupported-op", "a side that goes from 4 to 1,073,741,824", "node '/block/Resize' of net",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compiled_is_refused_on_one_line(name: str, tmp_path: Path) -> None:
    model, code, what, where = REFUSED[name]
    path = save(model, tmp_path / "net.onnx")
    with pytest.raises(PenstockError) as caught:
        prepare(import_model(str(path)))
    error = caught.value
    assert (error.code, what in error.what, where in error.where) == (code, True, True), error.one_line()
    assert error.hint
    assert "\n" not in error.one_line()


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_that_cannot_lie_on_a_frame_are_refused_by_node(name: str, tmp_path: Path) -> None:
    (model, code, where), what = WINDOWS[name]
    with pytest.raises(PenstockError) as caught:
        import_model(str(save(model, tmp_path / "net.onnx")))
    error = caught.value
    assert (error.code, what in error.what, where in error.where) == (code, True, True), error.one_line()
    assert "\n" not in error.one_line()


def test_shapes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    model = graph([node("MatMul", "x c")], {"x": (2, 4)}, ["y"], {"c": WEIGHTS.reshape(4, 3)})
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5
    with pytest.raises(PenstockError, match=r"no valid ONNX model|cannot be computed"):
        import_model(str(save(model, tmp_path / "net.onnx")))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x08", b"\x08\x08\x12\x07pytorch", bytes(100)])
def test_bytes_that_are_no_model(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    with pytest.raises(PenstockError, match="this is no valid ONNX model") as caught:
        import_model(str(path))
    assert caught.value.code == "model-file"


def test_any_damage_to_a_file_is_refused_or_harmless(tmp_path: Path) -> None:
    """Bytes changed, left out and put in, at random but the same on every run."""
    choose = random.Random(5)
    weights = {"w": WEIGHTS.reshape(4, 3)}
    whole = graph([node("MatMul", "x w"), helper.make_node("Relu", ["y"], ["z"], "r")], {"x": (2, 4)}, ["z"], weights)
    refused = 0
    for _ in range(150):
        data = bytearray(whole.SerializeToString())
        place = choose.randrange(len(data))
        match choose.randrange(3):
            case 0:
                data[place] = choose.randrange(256)
            case 1:
                del data[place : place + choose.randint(1, 5)]
            case _:
                data[place:place] = choose.randbytes(3)
        path = tmp_path / "net.onnx"
        path.write_bytes(data)
        try:
            load_onnx(OnnxReference(path))
        except PenstockError:
            refused += 1
    assert 50 < refused < 150


def test_names_of_a_file_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    model = graph([helper.make_node("\x1b[2JEvil\u202e", ["x"], ["y"], "\x07")], {"x": (2, 4)}, ["y"])
    with pytest.raises(PenstockError) as raised:
        import_model(str(save(model, tmp_path / "net.onnx")))
    assert raised.value.one_line().isprintable()


def test_names_that_no_file_should_have_do_no_harm(tmp_path: Path) -> None:
    strange = 'a"b\n/../%s<&\\'
    constants = {strange: WEIGHTS[:4]}
    made = helper.make_node("Add", ["x", strange], ["y"], strange)
    path = save(graph([made], {"x": (2, 4)}, ["y"], constants), tmp_path / "net.onnx")
    program = import_model(str(path))
    program.save(tmp_path / "saved")
    loaded = Program.load(tmp_path / "saved", make_context())
    assert loaded.samples is not None
    np.testing.assert_allclose(run(prepare(loaded), loaded.samples.inputs)[0], loaded.samples.outputs[0], rtol=1e-5)


def test_a_file_cut_short_is_refused_wherever_the_cut_is(tmp_path: Path) -> None:
    whole = relu((2, 4)).SerializeToString()
    for end in range(0, len(whole), 3):
        path = tmp_path / "net.onnx"
        path.write_bytes(whole[:end])
        with pytest.raises(PenstockError) as caught:
            import_model(str(path))
        assert caught.value.code in ("model-file", "onnx-opset")
