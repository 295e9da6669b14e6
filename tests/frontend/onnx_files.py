"""ONNX files for the tests: from PyTorch's exporter, and single nodes made by hand."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from torch import nn

from penstock.compiler.program import Program

TYPES = {
    "float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16, "int16": TensorProto.INT16,
}  # fmt: skip


def export(module: nn.Module, inputs: tuple[torch.Tensor, ...], path: Path, **options: Any) -> Path:
    """With the exporter that needs nothing but onnx; PyTorch warns that it will go."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), inputs, str(path), dynamo=False, **options)
    return path


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    constants: dict[str, Any] | None = None,
    *,
    opset: int = 18,
    dtype: str = "float32",
) -> onnx.ModelProto:
    made = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, TYPES[dtype], list(shape)) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.output}
    for output in model.graph.output:  # the checker wants outputs to have a type
        known = inferred[output.name].type
        complete = known.tensor_type.HasField("shape")
        output.type.CopyFrom(known if complete else helper.make_tensor_type_proto(TensorProto.FLOAT, [None] * 3))
    return model


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def evaluated(model: onnx.ModelProto, given: dict[str, Any], *private: type[OpRun]) -> list[np.ndarray]:
    """What the ONNX project's own evaluator answers; `private` are operators that it does not have."""
    answers = ReferenceEvaluator(model, new_ops=list(private)).run(None, given)
    assert isinstance(answers, list)
    return [np.asarray(answer) for answer in answers]


def reference_answers(path: Path, program: Program) -> list[np.ndarray]:
    """What the ONNX project's own evaluator answers to the program's sample inputs."""
    model = onnx.load(str(path))
    assert program.samples is not None
    names = [entry.name for entry in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, program.samples.inputs, strict=True)))  # type: ignore[return-value]
