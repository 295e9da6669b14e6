"""From an ONNX graph to a PyTorch module, which then goes the way of every other model.

The way through torch-mlir's own ONNX importer would pass by our decompositions and by the split into host and
accelerator. Here each node becomes a module of the node's name, so that layers are called as in the ONNX file, and each
initialiser a parameter of its own name.
"""

# protobuf's messages come with partial types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import keyword
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import (
    onnx_attention,
    onnx_functions,
    onnx_integers,
    onnx_learners,
    onnx_quantised,
    onnx_recurrent,
    onnx_resize,
    onnx_selections,
    onnx_shapes,
    onnx_windows,
)
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.onnx_file import MOST_ELEMENTS, OnnxFile, OnnxInput, read_onnx
from penstock.compiler.frontend.onnx_operators import OPERATORS, TORCH_TYPES, Call, NotTranslatableError, OnnxOperator
from penstock.compiler.frontend.onnx_written_out import WritingOut
from penstock.compiler.reference import OnnxReference

SAMPLE_SEED = 0
_PRODUCTS = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "LSTM", "GRU", "RNN")
_NOTHING = torch.empty(())
_AS_FLOAT = ":float32"
"""Behind the name of a constant that is stored in integers."""
_SHAPE_READERS = ("Shape", "Size", "EyeLike")
assert onnx_shapes  # their operators are in the table
assert onnx_recurrent
assert onnx_attention
assert onnx_functions
assert onnx_integers
assert onnx_learners
assert onnx_resize
assert onnx_selections
assert onnx_windows
_QUANTISED = {(domain, name) for domain in onnx_quantised.QONNX_DOMAINS for name in onnx_quantised.QONNX_OPERATORS}


class OnnxNode(nn.Module):
    """One node. `results` are its outputs' names; `reads` the names of the values that it takes."""

    def __init__(self, operator: OnnxOperator, call: Call, reads: list[str], results: list[str]) -> None:
        super().__init__()
        self.operator, self.call, self.reads, self.results = operator, call, reads, results

    def forward(self, *values: Tensor) -> Any:
        return self.operator.translate(self.call, values)


class OnnxModel(nn.Module):
    """The graph's nodes in order. Parameters are found by the path under which their name was registered."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[OnnxNode] = []
        self.parameter_paths: dict[str, str] = {}
        self.input_names: list[str] = []
        self.output_names: list[str] = []

    def run(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        values: dict[str, Tensor] = dict(zip(self.input_names, inputs, strict=True))
        values |= {name: _at_path(self, path) for name, path in self.parameter_paths.items()}
        for node in self.order:
            answer = node(*(values[name] for name in node.reads))
            answers = answer if isinstance(answer, tuple) else (answer,)
            values.update(zip(node.results, answers, strict=False))
        outputs = tuple(values[name] for name in self.output_names)
        return outputs[0] if len(outputs) == 1 else outputs


def load_onnx(reference: OnnxReference) -> LoadedModel:
    """The file as a module with random example inputs of its declared shapes."""
    file = read_onnx(reference)
    module = _Builder(file, reference.name).build()
    generator = torch.Generator().manual_seed(SAMPLE_SEED)
    inputs = tuple(_sample(entry, _most_entries(file, entry.name), generator) for entry in file.inputs)
    return LoadedModel(reference.name, str(reference), module.eval(), inputs, notes=file.notes)


@dataclass
class _Builder:
    file: OnnxFile
    model: str
    constants: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    shapes: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Values that depend on the inputs, on PyTorch's meta device: shape and type, no numbers."""
    module: OnnxModel = field(default_factory=OnnxModel)

    def build(self) -> OnnxModel:
        for name, value in self.file.constants.items():
            self.constants[name] = _tensor(value, f"{name!r} of {self.model}")
        for entry in self.file.inputs:
            dtype = TORCH_TYPES[entry.dtype.name]
            self.shapes[entry.name] = torch.empty(entry.shape, dtype=dtype, device="meta")
        inside = WritingOut(self.file.functions, self._known, self._shape, self.model)
        for position, node in enumerate(self.file.nodes):
            self._take(node, node.name or f"{node.op_type}_{position}", inside)
        self.module.input_names = [entry.name for entry in self.file.inputs]
        self.module.output_names = list(self.file.outputs)
        for name in self.file.outputs:
            if name in self.constants:
                raise PenstockError(
                    code="unsupported-op", what=f"the output {name!r} does not depend on the inputs",
                    where=self.model, hint="take it out of the model",
                )  # fmt: skip
        names = _argument_names(self.module.input_names)
        self.module.forward = _with_arguments(self.module, names)  # type: ignore[method-assign]
        return self.module

    def _known(self, name: str) -> Array | None:
        return self.constants[name].numpy() if name in self.constants else None

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple((self.constants.get(name, self.shapes.get(name, _NOTHING))).shape)

    def _take(self, node: onnx.NodeProto, name: str, inside: WritingOut) -> None:
        """Compute the node now, if all that it takes is known; else make it a module, or of what stands inside many."""
        where = f"node {name!r} of {self.model}"
        if inside.holds_nodes(node):
            for inner in inside.nodes(node, name):
                self._take(inner, inner.name, inside)
            return
        if node.op_type == "Constant":
            self.constants[node.output[0]] = _tensor(_constant(node, where), where)
            return
        domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
        quantised = (node.domain, node.op_type) in _QUANTISED
        known_here = quantised or node.op_type not in onnx_quantised.QONNX_OPERATORS
        operator = OPERATORS.get(("" if quantised else domain) + node.op_type) if known_here else None
        if operator is None:
            raise PenstockError(
                code="unsupported-op", what=f"the ONNX operator {domain}{node.op_type} is not supported", where=where,
                hint="export the model without it, or do this step before or after the model",
            )  # fmt: skip
        given = list(node.input)
        while given and not given[-1]:
            given.pop()
        known = {i: self.constants[x].numpy() for i, x in enumerate(given) if x in self.constants}
        self._check_static(node, operator, given, known, where)
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        attributes = {k: numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v
                      for k, v in attributes.items()}  # fmt: skip
        call = Call({**attributes, "op": node.op_type}, known, len(given), sum(1 for x in node.output if x),
                    frozenset(i for i, x in enumerate(given) if not x))  # fmt: skip
        reads = [x for i, x in enumerate(given) if i not in operator.static and x]
        if unknown := [x for x in reads if x not in self.constants and x not in self.shapes]:
            raise PenstockError(
                code="model-file", what=f"nothing makes {unknown[0]!r}, which {node.op_type} takes", where=where,
                hint="check the model with onnx.checker",
            )  # fmt: skip
        if operator.in_floats:
            reads = [self._in_floats(x) for x in reads]
        if node.op_type in _PRODUCTS:
            self._check_finite(reads)
        results = list(node.output)
        shapes = self._shapes(operator, call, reads, where)
        if all(x in self.constants for x in reads) or node.op_type in _SHAPE_READERS:
            values = [self.constants.get(x, self.shapes.get(x)) for x in reads]
            self.constants.update(zip(results, _run(operator, call, values, where), strict=False))
            return
        self.shapes.update(zip(results, shapes, strict=False))
        module = type(node.op_type, (OnnxNode,), {})(operator, call, reads, results)
        _place(self.module, [part for part in re.split(r"[/.]", name) if part] or [node.op_type], module)
        self.module.order.append(module)
        for x in reads:
            if x in self.constants and x not in self.module.parameter_paths:
                self.module.parameter_paths[x] = _place(self.module, x.split("."), self.constants[x])

    def _check_finite(self, names: list[str]) -> None:
        """A mask may hold infinities; of what is multiplied and added up they would make NaN."""
        for name in names:
            value = self.constants.get(name)
            if value is not None and value.is_floating_point() and (count := int((~torch.isfinite(value)).sum())):
                raise PenstockError(
                    code="not-finite", what=f"{name!r} holds NaN or infinity in {count} of its {value.numel()} places",
                    where=self.model, limit="weights are finite numbers", hint="train, convert or export them anew",
                )  # fmt: skip

    def _in_floats(self, name: str) -> str:
        """The name under which a constant is there in float32."""
        value = self.constants.get(name)
        if value is None or value.is_floating_point():
            return name
        self.constants[f"{name}{_AS_FLOAT}"] = value.to(torch.float32)
        return f"{name}{_AS_FLOAT}"

    def _check_static(
        self, node: onnx.NodeProto, operator: OnnxOperator, given: list[str], known: dict[int, Array], where: str
    ) -> None:
        for position in operator.static:
            if position < len(given) and given[position] and position not in known:
                raise PenstockError(
                    code="dynamic-shape",
                    what=f"input {position} of {node.op_type} ({given[position]!r}) depends on the model's inputs",
                    where=where, limit=operator.limit,
                    hint="export the model with fixed shapes, or do this step before or after the model",
                )  # fmt: skip

    def _shapes(self, operator: OnnxOperator, call: Call, reads: list[str], where: str) -> list[Tensor]:
        """What the node gives, without computing it: a huge result is refused before it takes memory."""
        inputs = [self.shapes[x] if x in self.shapes else self.constants[x].to("meta") for x in reads]
        with torch.device("meta"):
            results = _run(operator, call, inputs, where)
        for result in results:
            if math.prod(result.shape) > MOST_ELEMENTS:
                raise PenstockError(
                    code="onnx-tensor-size", what=f"its result has shape {tuple(result.shape)}", where=where,
                    limit=f"at most {MOST_ELEMENTS} elements", hint="split the layer",
                )  # fmt: skip
        return results


def _run(operator: OnnxOperator, call: Call, inputs: list[Any], where: str) -> list[Tensor]:
    op = call.get("op")
    try:
        with torch.no_grad():
            answer = operator.translate(call, inputs)
    except NotTranslatableError as error:
        raise PenstockError(
            code="unsupported-op", what=f"the ONNX operator {op} is not supported with {error}", where=where,
            hint="export the model without it",
        ) from error  # fmt: skip
    except Exception as error:
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        line = next((x.strip() for x in str(error).splitlines() if x.strip()), type(error).__name__)
        raise PenstockError(
            code="model-file", what=f"{op} cannot be computed on inputs of shape {shapes}: {line}", where=where,
            hint="give dims that the file leaves open another size than 1 (model.onnx?batch=4), or check the model "
            "with onnx.reference.ReferenceEvaluator",
        ) from error  # fmt: skip
    return list(answer) if isinstance(answer, tuple) else [answer]


def _constant(node: onnx.NodeProto, where: str) -> Array:
    attribute = node.attribute[0]
    value: Any = helper.get_attribute_value(attribute)
    kinds = {"value": None, "value_float": np.float32, "value_floats": np.float32, "value_int": np.int64,
             "value_ints": np.int64}  # fmt: skip
    if attribute.name not in kinds:
        raise PenstockError(
            code="unsupported-dtype", what=f"a constant given as {attribute.name}", where=where,
            limit="constants are dense numbers", hint="export the model without it",
        )  # fmt: skip
    dtype = kinds[attribute.name]
    try:
        return numpy_helper.to_array(value) if dtype is None else np.asarray(value, dtype)
    except Exception as error:
        raise PenstockError(
            code="model-file", what=f"its constant cannot be read: {error}", where=where,
            hint="check that the download is whole",
        ) from error  # fmt: skip


def _tensor(value: Array, where: str) -> Tensor:
    if value.dtype.name not in TORCH_TYPES:
        raise PenstockError(
            code="unsupported-dtype", what=f"its values are {value.dtype}", where=where,
            limit="models are float32; quantisation to integers is Penstock's own step",
            hint="export the model in float32",
        )  # fmt: skip
    return torch.as_tensor(np.array(value))  # a copy: what the file's buffer holds cannot be written


def _place(root: nn.Module, path: list[str], value: nn.Module | Tensor) -> str:
    """Register below `root`, under a path that is free, and tell which one it was."""
    parent, taken = root, list[str]()
    for part in path[:-1]:
        children: dict[str, nn.Module] = vars(parent)["_modules"]  # named_children() goes through all, for each node
        child = children.get(part)
        if child is None:
            part = _free_name(parent, part)
            child = nn.Module()
            parent.add_module(part, child)
        parent = child
        taken.append(part)
    name = _free_name(parent, path[-1])
    if isinstance(value, nn.Module):
        parent.add_module(name, value)
    elif value.is_floating_point():
        parent.register_parameter(name, nn.Parameter(value, requires_grad=False))
    else:
        parent.register_buffer(name, value)
    return ".".join([*taken, name])


def _free_name(parent: nn.Module, name: str) -> str:
    name = re.sub(r"[^\w:+-]", "_", name) or "_"
    name = f"{name}_" if keyword.iskeyword(name) else name
    free, number = name, 2
    while hasattr(parent, free):
        free = f"{name}_{number}"
        number += 1
    return free


def _at_path(root: nn.Module, path: str) -> Tensor:
    value: Any = root
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _argument_names(names: list[str]) -> list[str]:
    """Inputs' names as Python's: they are what the accelerator's ports are called."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "input"
        plain = f"input_{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain
        while plain in found:
            plain += "_"
        found.append(plain)
    return found


def _with_arguments(module: OnnxModel, names: list[str]) -> Any:
    def forward(*inputs: Tensor) -> Any:
        return module.run(*inputs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    forward.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return forward


def _sample(entry: OnnxInput, most: int, generator: torch.Generator) -> Tensor:
    if entry.dtype == np.float32:
        return torch.randn(entry.shape, generator=generator)
    numbers = torch.randint(0, 2 if entry.dtype == np.bool_ else most, entry.shape, generator=generator)
    return numbers.to(TORCH_TYPES[entry.dtype.name])


def _most_entries(file: OnnxFile, name: str) -> int:
    """How many entries the tables have that an input of integers looks up in; without a table it may be 0 or 1."""
    sizes = [
        file.constants[node.input[0]].shape[next((a.i for a in node.attribute if a.name == "axis"), 0)]
        for node in file.nodes
        if node.op_type == "Gather" and node.input[1] == name and node.input[0] in file.constants
    ]
    return min(sizes, default=2)
