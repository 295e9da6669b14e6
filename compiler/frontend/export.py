"""torch.export with its failures explained, and the checks on what it gives."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.decompositions import decomposition_table
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import describe
from penstock.compiler.frontend.origins import origin_of
from penstock.compiler.frontend.quiet import quiet_torch
from penstock.compiler.frontend.results import tensors_of

_TORCH = Path(torch.__file__).parent
_ONE_SCHEDULE = (
    "an accelerator has one fixed schedule, so the way through the model must not depend on the numbers in its "
    "tensors; here Python needs such a number: an `if`, a loop bound, float(), int(), .item() or an index made "
    "from a tensor"
)
_STATIC_CHOICE = "choose with torch.where, mask with a multiplication, or decide outside of the model"


SayStage = Callable[[str], None]
"""Is told the name of each stage of an import as it begins."""


def ignore_stage(_name: str) -> None:
    pass


def run_eagerly(model: LoadedModel, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """PyTorch's own answer, which every later level is held against."""
    shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
    try:
        with torch.no_grad(), quiet_torch():
            outputs: Any = model.module(*inputs)
    except Exception as error:
        raise PenstockError(
            code="example-inputs",
            what=f"the model does not run on its example inputs of shape {shapes}: {describe(error)}",
            where=_user_frame(error) or model.reference,
            hint="return example inputs of the shapes that the model's forward takes",
        ) from error
    return tensors_of(outputs, model.reference)


def export(model: LoadedModel, begin: SayStage = ignore_stage) -> ExportedProgram:
    """The model as a graph of core ATen operations with static shapes."""
    begin("export")
    _check_tensors(model)
    try:
        with torch.no_grad(), quiet_torch():
            exported: Any = torch.export.export(model.module, model.example_inputs, strict=False)
            begin("decompose")
            program: ExportedProgram = exported.run_decompositions(decomposition_table())
            _drop_what_is_known(program)
    except GuardOnDataDependentSymNode as error:
        raise PenstockError(
            code="data-dependent",
            what="the control flow depends on the values of a tensor",
            where=_user_frame(error) or model.reference,
            limit=_ONE_SCHEDULE,
            hint=_STATIC_CHOICE,
        ) from error
    except Exception as error:
        raise PenstockError(
            code="export-failed",
            what=f"torch.export cannot trace the model: {describe(error)}",
            where=_user_frame(error) or model.reference,
            hint="forward must be built from PyTorch operations on its arguments (no numpy, no side effects)",
        ) from error
    _check_static(program, model)
    return program


def _drop_what_is_known(program: ExportedProgram) -> None:
    """A model's assertions about types held while it was traced; with fixed shapes they hold for good."""
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            program.graph.erase_node(node)
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


def _user_frame(error: BaseException) -> str:
    """The innermost line of the user's code in an exception's trace; a library's where there is none."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", str(_TORCH))) and Path(frame.filename) != Path(__file__)
    ]
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _check_tensors(model: LoadedModel) -> None:
    inputs = [(f"example input {i}", x) for i, x in enumerate(model.example_inputs)]
    state: list[tuple[str, torch.Tensor]] = [
        *((f"parameter {name!r}", x) for name, x in model.module.named_parameters()),
        *((f"buffer {name!r}", x) for name, x in model.module.named_buffers() if x.dim() > 0),
    ]
    for name, tensor in (*inputs, *state):
        if 0 in tensor.shape:
            raise PenstockError(
                code="empty-tensor",
                what=f"{name} has shape {tuple(tensor.shape)}",
                where=model.reference,
                limit="every dimension has at least one element",
                hint="remove the layer or input that has no elements",
            )
        if tensor.device.type != "cpu":
            raise PenstockError(
                code="unsupported-device",
                what=f"{name} is on {tensor.device}",
                where=model.reference,
                hint="move the model and its inputs with .cpu()",
            )
    for name, tensor in (*inputs, *state):
        if tensor.dtype not in (torch.float32, torch.int64, torch.int32, torch.bool):
            raise PenstockError(
                code="unsupported-dtype",
                what=f"{name} is {str(tensor.dtype).removeprefix('torch.')}",
                where=model.reference,
                limit="models are float32, with int64, int32 and bool for what runs on the host; quantisation is "
                "Penstock's own step",
                hint="use module.float() and inputs.float()",
            )


def _check_static(program: ExportedProgram, model: LoadedModel) -> None:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not all(type(size) is int for size in value.shape):
            origin = origin_of(node)
            raise PenstockError(
                code="dynamic-shape",
                what=f"the size of the result of {origin.op} depends on the values of a tensor",
                where=origin.describe(model.name),
                limit="all shapes are known at compile time",
                hint="use a mask (torch.where) instead of selecting elements",
            )
        if isinstance(value, torch.Tensor) and 0 in value.shape and node.users:
            origin = origin_of(node)
            raise PenstockError(
                code="empty-tensor",
                what=f"{origin.op} gives a tensor of shape {tuple(value.shape)}",
                where=origin.describe(model.name),
                limit="every dimension has at least one element",
                hint="remove the operation, it has nothing to compute",
            )
