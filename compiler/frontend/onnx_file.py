"""Reads an ONNX file whose author is not trusted, and refuses what could not be compiled before anything is built."""

# protobuf's messages come with partial types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper, shape_inference, version_converter

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.frontend.onnx_external import with_external_data
from penstock.compiler.frontend.onnx_floats import in_float32
from penstock.compiler.frontend.onnx_quantised import QONNX_DOMAINS, QONNX_VERSIONS
from penstock.compiler.frontend.onnx_walk import all_nodes, all_tensors
from penstock.compiler.frontend.onnx_written_out import DEFAULT_DOMAINS
from penstock.compiler.reference import OnnxReference, check_file

MOST_BYTES = 2 << 30
"""What protobuf can hold in one message."""
MOST_ELEMENTS = 1 << 28
"""Of one tensor: a gibibyte in float32."""
OLDEST_OPSET, CONVERTED_TO = 7, 17
_INPUT_TYPES: dict[int, np.dtype[Any]] = {
    onnx.TensorProto.FLOAT: np.dtype(np.float32),
    onnx.TensorProto.INT64: np.dtype(np.int64),
    onnx.TensorProto.INT32: np.dtype(np.int32),
    onnx.TensorProto.BOOL: np.dtype(np.bool_),
}
_TYPE_NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}


@dataclass(frozen=True)
class OnnxInput:
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class OnnxFile:
    """A checked graph: inputs of known shape, constants by name, nodes in an order in which they can run."""

    inputs: tuple[OnnxInput, ...]
    outputs: tuple[str, ...]
    nodes: tuple[onnx.NodeProto, ...]
    constants: dict[str, Array]
    functions: Mapping[tuple[str, str], onnx.FunctionProto] = field(
        default_factory=dict[tuple[str, str], onnx.FunctionProto]
    )
    """Of the file's own, by domain and name."""
    notes: tuple[str, ...] = ()


def read_onnx(reference: OnnxReference) -> OnnxFile:
    where = str(reference.path)
    model = _parse(reference.path)
    with_external_data(all_tensors(model), reference.path, MOST_ELEMENTS, MOST_BYTES)
    model = _at_a_known_version(model, where)
    graph = model.graph
    for tensor in all_tensors(model):
        _check_tensor(tensor, where)
    _check_model(model, where)
    note = in_float32(model, lambda tensor: _array(tensor, where))
    if graph.sparse_initializer:
        raise _refused("unsupported-dtype", "sparse weights", where, "weights are dense arrays", "store them dense")
    constants = {tensor.name: _array(tensor, where) for tensor in graph.initializer}
    given = [entry for entry in graph.input if entry.name not in constants]
    if not given or not graph.output:
        what = "has no inputs" if not given else "has no outputs"
        raise _refused("model-file", f"the graph {what}", where, "", "export a model that computes something")
    dims, batches = _sizes(given, reference)
    return OnnxFile(
        inputs=tuple(_input(entry, dims, where) for entry in given),
        outputs=tuple(entry.name for entry in graph.output),
        nodes=tuple(graph.node),
        constants=constants,
        functions={(f.domain, f.name): f for f in model.functions},
        notes=(*([note] if note else []), *batches),
    )


def _sizes(given: Sequence[onnx.ValueInfoProto], reference: OnnxReference) -> tuple[dict[str, int], list[str]]:
    """Of dims that the file leaves open, by name: what the reference says; of first dims else 1, and a note."""
    open_dims: dict[str, str] = {}
    batches: dict[str, str] = {}
    for entry in given:
        for position, dim in enumerate(entry.type.tensor_type.shape.dim):
            if _is_open(dim):
                name = _dim_name(entry.name, position, dim)
                open_dims[name] = f"dim {position} of {entry.name!r}"
                if position == 0:
                    batches.setdefault(name, open_dims[name])
    for name, _ in reference.dims:
        if name not in open_dims:
            known = sorted(open_dims)
            limit = f"open dims: {', '.join(known)}" if known else "its inputs have no open dims"
            hint = nearest(name, known, "give a size to one of these" if known else "leave the option out")
            raise _refused("model-reference", f"no input has a dim called {name!r}", str(reference.path), limit, hint)
    said = dict(reference.dims)
    notes = [
        f"The file leaves {what} open: it is 1 here, and {reference.path.name}?{name}=8 makes it 8."
        for name, what in batches.items()
        if name not in said
    ]
    return dict.fromkeys(batches, 1) | said, notes


def _is_open(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Some exporters write -1 for a size that each call says."""
    return not dim.HasField("dim_value") or dim.dim_value == -1


def _dim_name(entry: str, position: int, dim: onnx.TensorShapeProto.Dimension) -> str:
    """By which a reference gives it a size: its own, or the input's and its place; some exporters write ? for all."""
    return dim.dim_param if dim.dim_param.strip("?") else f"{entry}.{position}"


def _parse(path: Path) -> onnx.ModelProto:
    check_file(path)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise _refused("model-file", f"the file has {size} bytes", str(path), f"at most {MOST_BYTES}", "")
    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except (DecodeError, ValueError, RecursionError) as error:
        raise _damaged(str(path), "it cannot be read") from error
    if not model.HasField("graph") or not model.opset_import:
        raise _damaged(str(path), "it holds no graph")
    if any(isinstance(name, bytes) for name in _names(model.graph)):
        raise _damaged(str(path), "it holds a name that is not text")
    return model


def _at_a_known_version(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The operators' meaning depends on the version that a model names; old ones are brought up to a later one."""
    newest = onnx.defs.onnx_opset_version()
    versions = [entry.version for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    version = versions[0] if versions else 0
    if not OLDEST_OPSET <= version <= newest:
        raise _refused(
            "onnx-opset", f"the model uses opset {version}", where, f"opsets {OLDEST_OPSET} to {newest} are known",
            "export it again: torch.onnx.export(..., opset_version=17)",
        )  # fmt: skip
    for entry in model.opset_import:
        if entry.domain in QONNX_DOMAINS and entry.version not in QONNX_VERSIONS:
            raise _refused(
                "onnx-opset", f"the model uses version {entry.version} of {entry.domain}", where,
                f"versions {QONNX_VERSIONS[0]} to {QONNX_VERSIONS[-1]} are known", "export it for version 1",
            )  # fmt: skip
    for tensor in all_tensors(model):  # the converter is native code: it sees only what was checked
        _check_tensor(tensor, where)
    if version >= 13:
        return model
    _check_model(model, where)
    if version < 9 and any(node.op_type == "Scan" for node in all_nodes(model)):  # the converter leaves its batch in
        raise _refused(
            "onnx-opset", "the model uses Scan of opset 8, which goes over batches", where,
            "Scan as it is from opset 9 on", "export it again: torch.onnx.export(..., opset_version=17)",
        )  # fmt: skip
    try:
        return version_converter.convert_version(model, CONVERTED_TO)
    except Exception as error:
        raise _refused(
            "onnx-opset", f"opset {version} cannot be brought up to {CONVERTED_TO}: {_line(error)}", where,
            "opsets from 13 on need no conversion", "export it again: torch.onnx.export(..., opset_version=17)",
        ) from error  # fmt: skip


def _check_model(model: onnx.ModelProto, where: str) -> None:
    try:
        onnx.checker.check_model(model)
        shape_inference.infer_shapes(model, check_type=True, strict_mode=False)
    except (onnx.checker.ValidationError, shape_inference.InferenceError, ValueError, RecursionError) as error:
        raise _damaged(where, _line(error)) from error


def _names(graph: onnx.GraphProto) -> Iterator[Any]:
    """All names by which things are found; protobuf hands over bytes where they are no text."""
    yield from (entry.name for entry in (*graph.initializer, *graph.input, *graph.output))
    yield from (dim.dim_param for entry in graph.input for dim in entry.type.tensor_type.shape.dim)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)


def _check_tensor(tensor: onnx.TensorProto, where: str) -> None:
    name = tensor.name or "a constant"
    if any(size < 0 for size in tensor.dims) or math.prod(tensor.dims) > MOST_ELEMENTS:
        raise _refused(
            "onnx-tensor-size", f"{name!r} is declared with shape {tuple(tensor.dims)}", where,
            f"at most {MOST_ELEMENTS} elements", "split the layer",
        )  # fmt: skip


def _array(tensor: onnx.TensorProto, where: str) -> Array:
    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:
        raise _damaged(where, f"{tensor.name!r} of shape {tuple(tensor.dims)}: {_line(error)}") from error


def _input(entry: onnx.ValueInfoProto, dims: dict[str, int], where: str) -> OnnxInput:
    kind = entry.type.tensor_type
    where = f"input {entry.name!r} of {where}"
    if not entry.type.HasField("tensor_type") or kind.elem_type not in _INPUT_TYPES:
        held = entry.type.WhichOneof("value") or "nothing"
        name = _TYPE_NAMES.get(kind.elem_type, "of no known type") if held == "tensor_type" else held
        raise _refused(
            "unsupported-dtype", f"its values are {name}", where,
            "inputs are floats, or int64, int32 or bool for what runs on the host", "export the model in float32",
        )  # fmt: skip
    if not kind.HasField("shape"):
        raise _refused("dynamic-shape", "it has no shape", where, "all shapes are known at compile time", _FIX)
    shape: list[int] = []
    for position, dim in enumerate(kind.shape.dim):
        size = dims.get(_dim_name(entry.name, position, dim), -1) if _is_open(dim) else dim.dim_value
        if _is_open(dim) and size < 0:
            name = f"dim {position} ({dim.dim_param!r})" if dim.dim_param else f"dim {position}"
            fix = f"give it a size: model.onnx?{_dim_name(entry.name, position, dim)}=1, or {_FIX}"
            raise _refused("dynamic-shape", f"{name} is dynamic", where, "all shapes are known at compile time", fix)
        if size < 1:
            raise _refused(
                "empty-tensor", f"dim {position} has size {size}", where,
                "every dimension has at least one element", "export the model with another shape",
            )  # fmt: skip
        shape.append(size)
    if math.prod(shape) > MOST_ELEMENTS:
        limit = f"at most {MOST_ELEMENTS} elements"
        raise _refused("onnx-tensor-size", f"it has shape {tuple(shape)}", where, limit, "export a smaller shape")
    return OnnxInput(entry.name, tuple(shape), _INPUT_TYPES[kind.elem_type])


_FIX = "export the model with fixed shapes (torch.onnx.export without dynamic_axes or dynamic_shapes)"


def _damaged(where: str, reason: str) -> PenstockError:
    return _refused(
        "model-file", f"this is no valid ONNX model: {reason}", where, "",
        "export it with torch.onnx.export, or check that the download is whole",
    )  # fmt: skip


def _refused(code: str, what: str, where: str, limit: str, hint: str) -> PenstockError:
    return PenstockError(code=code, what=what, where=where, limit=limit, hint=hint)


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__
