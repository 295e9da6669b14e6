"""ONNX files whose operators take integers: bit for bit what the ONNX project's evaluator or written-out rules give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node as node
from onnx.reference.op_run import OpRun

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from tests.frontend.onnx_files import evaluated, graph, save

DRAW = np.random.default_rng(11)
STEP = {"s": np.float32(2**-5), "z": np.uint8(120)}
"""Of the values on their way; powers of two, so that every order of adding gives the same bits."""
WIDE = {"o": np.float32(2**-4), "p": np.int8(-3)}
FIRST, LAST = node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["r", "o", "p"], ["y"])


def whole(*shape: int) -> Any:
    return DRAW.integers(-127, 128, shape, dtype=np.int8)


def as_evaluated(model: onnx.ModelProto, folder: Path, *private: type[OpRun]) -> None:
    path = save(model, folder / "net.onnx")
    program = prepare(import_model(str(path)))
    assert program.samples is not None
    wanted = evaluated(model, {"x": program.samples.inputs[0]}, *private)
    for ours, theirs in zip(program.samples.outputs, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(run(program, program.samples.inputs), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("columns", [False, True])
def test_products_of_integers(columns: bool, tmp_path: Path) -> None:
    scale = np.asarray([2**-7, 2**-6, 2**-8], np.float32) if columns else np.float32(2**-7)
    zero = np.asarray([1, -2, 0], np.int8) if columns else np.int8(4)
    made = node("QLinearMatMul", ["q", "s", "z", "w", "v", "u", "o", "p"], ["r"])
    constants = {**STEP, **WIDE, "w": whole(6, 3), "v": scale, "u": zero}
    as_evaluated(graph([FIRST, made, LAST], {"x": (2, 6)}, ["y"], constants, opset=21), tmp_path)


def test_convolutions_of_integers(tmp_path: Path) -> None:
    made = node("QLinearConv", ["q", "s", "z", "w", "v", "u", "o", "p", "b"], ["r"], pads=[1, 1, 1, 1])
    constants = {**STEP, **WIDE, "w": whole(3, 2, 3, 3), "v": np.float32(2**-8), "u": np.int8(0),
                 "b": np.asarray([90, -400, 7], np.int32)}  # fmt: skip
    as_evaluated(graph([FIRST, made, LAST], {"x": (1, 2, 4, 4)}, ["y"], constants, opset=21), tmp_path)


def test_channels_of_a_convolution_have_scales_of_their_own(tmp_path: Path) -> None:
    """The same numbers in as many convolutions of one channel."""
    weights, scales = whole(3, 2, 3, 3), np.asarray([2**-8, 2**-7, 2**-9], np.float32)

    def model(w: Any, v: Any) -> onnx.ModelProto:
        made = node("QLinearConv", ["q", "s", "z", "w", "v", "u", "o", "p"], ["r"])
        zeros = np.zeros(np.shape(v), np.int8)
        constants = {**STEP, **WIDE, "w": w, "v": v, "u": zeros}
        return graph([FIRST, made, LAST], {"x": (1, 2, 4, 4)}, ["y"], constants, opset=21)

    together = import_model(str(save(model(weights, scales), tmp_path / "net.onnx"))).samples
    assert together is not None
    for channel in range(3):
        alone = model(weights[channel : channel + 1], scales[channel])
        (wanted,) = evaluated(alone, {"x": together.inputs[0]})
        np.testing.assert_array_equal(together.outputs[0][:, channel : channel + 1], wanted)


@pytest.mark.parametrize("kind", ["MatMulInteger", "ConvInteger"])
def test_values_that_are_quantised_as_they_come(kind: str, tmp_path: Path) -> None:
    convolves = kind == "ConvInteger"
    weights = whole(3, 2, 3, 3) if convolves else whole(6, 3)
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node(kind, ["q", "w", "z", "u"], ["r"]),
        node("Cast", ["r"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["s", "v"], ["scale"]),
        node("Mul", ["f", "scale"], ["y"]),
    ]
    constants = {"w": weights, "u": np.int8(0), "v": np.float32(2**-7)}
    shape = (1, 2, 4, 4) if convolves else (2, 6)
    as_evaluated(graph(nodes, {"x": shape}, ["y"], constants, opset=21), tmp_path)


class QGemm(OpRun):
    op_domain = "com.microsoft"

    def _run(self, a: Any, s: Any, z: Any, b: Any, v: Any, u: Any, c: Any, o: Any = None, p: Any = None,
             transB: int = 0, alpha: float = 1.0, transA: int = 0) -> tuple[Any]:  # fmt: skip
        b = (b.astype(np.int32) - u).T if transB else b.astype(np.int32) - u
        steps = (a.astype(np.int32) - z) @ b + c
        if o is None:
            return ((steps * (alpha * s * v)).astype(np.float32),)
        info = np.iinfo(p.dtype)
        return (np.clip(np.rint(steps * (alpha * s * v / o)) + p, info.min, info.max).astype(p.dtype),)


class QLinearAdd(OpRun):
    op_domain = "com.microsoft"

    def _run(self, a: Any, s: Any, z: Any, b: Any, v: Any, u: Any, o: Any, p: Any) -> tuple[Any]:
        made = (a.astype(np.float32) - z) * s + (b.astype(np.float32) - u) * v
        info = np.iinfo(p.dtype)
        return (np.clip(np.rint(made / o) + p, info.min, info.max).astype(p.dtype),)


def private(kind: str, inputs: str, **attributes: Any) -> onnx.NodeProto:
    return node(kind, inputs.split(), ["r"], domain="com.microsoft", **attributes)


def with_private(nodes: list[onnx.NodeProto], constants: dict[str, Any]) -> onnx.ModelProto:
    """graph() infers types, which it cannot of operators that ONNX does not know: here results are named by hand."""
    model = graph([node("Relu", ["x"], ["y"])], {"x": (2, 6)}, ["y"], constants, opset=21)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [None, None]))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.mark.parametrize("floats", [False, True])
def test_the_product_that_onnxruntime_writes(floats: bool, tmp_path: Path) -> None:
    constants = {**STEP, **WIDE, "w": whole(3, 6), "v": np.float32(2**-7), "u": np.int8(2),
                 "b": np.asarray([90, -400, 7], np.int32)}  # fmt: skip
    made = private("QGemm", "q s z w v u b" + ("" if floats else " o p"), transB=1, alpha=0.5)
    nodes = [FIRST, made, node("Identity", ["r"], ["y"]) if floats else LAST]
    as_evaluated(with_private(nodes, constants), tmp_path, QGemm)


def test_the_sum_that_onnxruntime_writes(tmp_path: Path) -> None:
    constants = {**STEP, **WIDE, "k": whole(6), "v": np.float32(2**-4), "u": np.int8(2)}
    nodes = [FIRST, private("QLinearAdd", "q s z k v u o p"), LAST]
    as_evaluated(with_private(nodes, constants), tmp_path, QLinearAdd)


def test_sixteen_bits_are_kept(tmp_path: Path) -> None:
    constants = {"s": np.float32(2**-12), "z": np.int16(-5), "w": whole(6, 3).astype(np.float32)}
    nodes = [
        FIRST, node("DequantizeLinear", ["q", "s", "z"], ["d"]), node("MatMul", ["d", "w"], ["y"]),
    ]  # fmt: skip
    as_evaluated(graph(nodes, {"x": (2, 6)}, ["y"], constants, opset=21), tmp_path)


def test_a_scale_that_is_none_is_refused(tmp_path: Path) -> None:
    made = node("QLinearMatMul", ["q", "s", "z", "w", "v", "u", "o", "p"], ["r"])
    constants = {**STEP, **WIDE, "w": whole(6, 3), "v": np.float32(0), "u": np.int8(0)}
    path = save(graph([FIRST, made, LAST], {"x": (2, 6)}, ["y"], constants, opset=21), tmp_path / "net.onnx")
    with pytest.raises(PenstockError, match="QLinearMatMul is not supported with scales that are not finite"):
        import_model(str(path))
