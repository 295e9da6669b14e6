"""Quantised ONNX files compute, bit for bit, what the reference of their format does; bad parameters are named.

QDQ is held against the ONNX project's evaluator. QONNX has no evaluator there, so its published rules are written out
in NumPy here, as operators that the same evaluator calls. Scales are powers of two where sums lie between
quantisers: there every order of adding gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from tests.frontend.onnx_files import graph, save

DOMAIN = "qonnx.custom_op.general"
NUMBERS = np.random.default_rng(3)


class Quant(OpRun):
    op_domain = DOMAIN

    def _run(self, x: Any, scale: Any, zero: Any, bits: Any, signed: int = 1, narrow: int = 0,
             rounding_mode: str = "ROUND") -> tuple[Any]:  # fmt: skip
        low = -(2 ** (int(bits) - 1)) + narrow if signed else 0
        high = 2 ** (int(bits) - 1) - 1 if signed else 2 ** int(bits) - 1 - narrow
        steps = x / scale + zero
        if signed and bits == 1:
            return (((np.where(steps >= 0, 1, -1) - zero) * scale).astype(np.float32),)
        whole = np.clip(steps, low, high)
        whole = {"ROUND": np.round, "FLOOR": np.floor, "CEIL": np.ceil, "DOWN": np.fix}[rounding_mode](whole)
        return (((whole - zero) * scale).astype(np.float32),)


class BipolarQuant(OpRun):
    op_domain = DOMAIN

    def _run(self, x: Any, scale: Any) -> tuple[Any]:
        return ((np.where(x / scale >= 0, 1, -1) * scale).astype(np.float32),)


class Trunc(OpRun):
    op_domain = DOMAIN

    def _run(self, x: Any, scale: Any, zero: Any, before: Any, after: Any,
             rounding_mode: str = "FLOOR") -> tuple[Any]:  # fmt: skip
        whole = np.round(x / scale + zero) / 2.0 ** (before - after)
        return (((np.floor(whole) - zero) * scale).astype(np.float32),)


def _node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    domain = DOMAIN if kind in ("Quant", "BipolarQuant", "Trunc") else ""
    return helper.make_node(kind, inputs.split(), [output], name=f"{output}_{kind}", domain=domain, **attributes)


def _qdq(*, per_channel: bool, zero: int, scale: float, group: int = 1, residual: bool = False) -> onnx.ModelProto:
    """A convolution of int8 weights between quantisers, as PyTorch's and ONNX Runtime's tools write it."""
    axis = {"axis": 0} if per_channel else {}
    nodes = [
        _node("QuantizeLinear", "x s z", "q"), _node("DequantizeLinear", "q s z", "d"),
        _node("DequantizeLinear", "w ws wz", "wd", **axis),
        _node("Conv", "d wd", "c", pads=[1, 1, 1, 1], group=group),
        *([_node("Add", "c d", "a")] if residual else []),
        _node("Relu", "a" if residual else "c", "r"),
        _node("QuantizeLinear", "r t u", "e"), _node("DequantizeLinear", "e t u", "y"),
    ]  # fmt: skip
    channels = 4
    constants = {
        "s": np.float32(scale), "z": np.int8(zero), "t": np.float32(0.25), "u": np.uint8(0),
        "w": NUMBERS.integers(-128, 128, (channels, channels // group, 3, 3)).astype(np.int8),
        "ws": np.array([2.0**-n for n in range(5, 9)], np.float32) if per_channel else np.float32(2.0**-7),
        "wz": np.zeros(channels, np.int8) if per_channel else np.int8(0),
    }  # fmt: skip
    return graph(nodes, {"x": [1, channels, 5, 5]}, ["y"], constants, opset=21)


def _qonnx(bits: int, scale: float, zero: float = 0.0, **attributes: Any) -> onnx.ModelProto:
    """A dense layer of quantised weights between quantisers, as Brevitas writes it."""
    nodes = [
        _node("Quant", "x s z b", "q", **attributes), _node("Quant", "w ws z0 b", "wq", narrow=1),
        _node("MatMul", "q wq", "m"), _node("Quant", "m ws z0 b8", "y"),
    ]  # fmt: skip
    constants = {
        "s": np.float32(scale), "z": np.float32(zero), "z0": np.float32(0), "b": np.float32(bits), "b8": np.float32(8),
        "w": NUMBERS.standard_normal((6, 5)).astype(np.float32), "ws": np.full((1, 5), 0.125, np.float32),
    }  # fmt: skip
    return _with_domain(nodes, [2, 6], [2, 5], constants)


def _truncated(kind: str) -> onnx.ModelProto:
    if kind == "Trunc":
        nodes = [_node("Quant", "x s z b8", "q"), _node("Trunc", "q s z b8 b4", "y")]
    else:
        nodes = [_node("BipolarQuant", "x s", "q"), _node("Mul", "q q", "r"), _node("Add", "r q", "y")]
    constants = {"s": np.float32(0.25), "z": np.float32(0), "b8": np.float32(8), "b4": np.float32(4)}
    return _with_domain(nodes, [3, 7], [3, 7], constants)


def _with_domain(
    nodes: list[onnx.NodeProto], shape: list[int], result: list[int], constants: dict[str, Any], version: int = 1
) -> onnx.ModelProto:
    kind = onnx.TensorProto.FLOAT
    made = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, result)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, version)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10)


MODELS = {
    "QDQ, per tensor": lambda: _qdq(per_channel=False, zero=0, scale=2.0**-5),
    "QDQ, per channel": lambda: _qdq(per_channel=True, zero=0, scale=2.0**-5),
    "QDQ, a zero point": lambda: _qdq(per_channel=True, zero=7, scale=2.0**-4),
    "QDQ, depthwise": lambda: _qdq(per_channel=True, zero=0, scale=2.0**-5, group=4),
    "QDQ, residual": lambda: _qdq(per_channel=False, zero=-3, scale=2.0**-5, residual=True),
    "QONNX, 8 bits": lambda: _qonnx(8, 2.0**-4),
    "QONNX, 4 bits, down": lambda: _qonnx(4, 2.0**-2, rounding_mode="FLOOR"),
    "QONNX, 2 bits without sign": lambda: _qonnx(2, 0.5, signed=0),
    "QONNX, 1 bit with sign": lambda: _qonnx(1, 0.5),
    "QONNX, bipolar": lambda: _truncated("BipolarQuant"),
    "QONNX, truncated": lambda: _truncated("Trunc"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_bits_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    program = prepare(import_model(str(save(model, tmp_path / "net.onnx"))))
    assert program.samples is not None
    evaluator = ReferenceEvaluator(model, new_ops=[Quant, BipolarQuant, Trunc])
    (wanted,) = evaluator.run(None, {"x": program.samples.inputs[0]})  # pyright: ignore[reportAssignmentType]
    (found,) = run(program, program.samples.inputs)
    np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(found)) > 1, "the numbers tell something"


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"s": np.float32(0)}, "unsupported-op", "a scale of 0"),
        ({"ws": np.array([1, 1, 1], np.float32)}, "unsupported-op", "scales or zero points of shape"),
        ({"s": None}, "dynamic-shape", "depends on the model's inputs"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, Any], code: str, text: str, tmp_path: Path) -> None:
    model = _qdq(per_channel=True, zero=0, scale=0.5)
    for name, value in change.items():
        (old,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
        model.graph.initializer.remove(old)
        if value is None:
            model.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []))
        else:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    with pytest.raises(PenstockError) as error:
        import_model(str(save(model, tmp_path / "bad.onnx")))
    assert (error.value.code, text in str(error.value)) == (code, True), error.value


def _trunc_of_version_2() -> onnx.ModelProto:
    nodes = [_node("Quant", "x s z b8", "q"), _node("Trunc", "q s z b8 t b4", "y")]
    constants = {name: np.float32(x) for name, x in (("s", 0.25), ("t", 4), ("z", 0), ("b8", 8), ("b4", 4))}
    return _with_domain(nodes, [3, 7], [3, 7], constants, version=2)


def _of_a_later_version() -> onnx.ModelProto:
    constants = {name: np.float32(x) for name, x in (("s", 0.25), ("z", 0), ("b8", 8))}
    return _with_domain([_node("Quant", "x s z b8", "y")], [3, 7], [3, 7], constants, version=3)


@pytest.mark.parametrize(
    ("make", "code", "text"),
    [
        (_trunc_of_version_2, "unsupported-op", "version 2 is not read"),
        (_of_a_later_version, "onnx-opset", f"version 3 of {DOMAIN}"),
    ],
)
def test_versions_that_are_not_known_are_refused(
    make: Callable[[], onnx.ModelProto], code: str, text: str, tmp_path: Path
) -> None:
    with pytest.raises(PenstockError) as error:
        import_model(str(save(make(), tmp_path / "later.onnx")))
    assert (error.value.code, text in str(error.value)) == (code, True), error.value
