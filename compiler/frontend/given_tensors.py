"""The tensors that a model comes with: other floats become float32, what cannot be computed with is refused by name."""

# some of torch's functions come without types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.exported_quantisation import WHOLE
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.reference import ModelReference, around

_TAKEN = (torch.float32, torch.int64, torch.int32, torch.bool)
_CONVERTED = {
    torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float64: torch.float32,
    torch.complex128: torch.complex64, torch.complex32: torch.complex64,
}  # fmt: skip


def in_float32(model: LoadedModel) -> LoadedModel:
    """With half and double precision converted, in place, and a note that says so."""
    inputs = tuple(_converted(x) for x in model.example_inputs)
    found = Counter(_name(x.dtype) for _, x in _given(model) if x.dtype in _CONVERTED)
    if not found:
        return model
    for part in model.module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):  # neither parameter nor buffer, and used all the same
                setattr(part, name, _converted(value))
    kinds = " and ".join(f"{count} as {name}" for name, count in sorted(found.items()))
    note = f"{kinds} of the model's tensors were converted: it runs in float32, and so do PyTorch's answers"
    return replace(
        model, module=_in_float32(model.module), example_inputs=inputs, notes=(*model.notes, note),
        typical=tuple(_converted(x) for x in model.typical),
    )  # fmt: skip


def check_tensors(model: LoadedModel) -> None:
    """Refuses the first tensor that no model can be computed with."""
    for place, tensor in enumerate(model.example_inputs):
        if 0 in tensor.shape:  # weights without elements may still be read by joins alone
            raise PenstockError(
                code="empty-tensor", what=f"example input {place} has shape {tuple(tensor.shape)}",
                where=model.reference, limit="every dimension has at least one element",
                hint="give an example with elements",
            )  # fmt: skip
    for name, tensor in _given(model):
        _check_tensor(name, tensor, model.reference)
        if model.has_weights and tensor.is_floating_point():
            _check_numbers(name, tensor, model.reference)


def _in_float32(module: nn.Module) -> nn.Module:
    return module._apply(_converted)  # pyright: ignore[reportPrivateUsage]  # as module.float() does, which shares what is shared, but not for float8


def _converted(value: torch.Tensor) -> torch.Tensor:
    return value.to(_CONVERTED.get(value.dtype, value.dtype))


def check_given(reference: ModelReference) -> None:
    """The same of a model that has been looked at by its shapes alone, without importing it anew."""
    check_tensors(in_float32(load_model(around(reference))))


def _given(model: LoadedModel) -> Iterator[tuple[str, torch.Tensor]]:
    yield from ((f"example input {i}", x) for i, x in enumerate(model.example_inputs))
    yield from ((f"parameter {name!r}", x) for name, x in model.module.named_parameters())
    yield from ((f"buffer {name!r}", x) for name, x in model.module.named_buffers() if x.dim() > 0)


def _check_tensor(name: str, tensor: torch.Tensor, where: str) -> None:
    if is_lazy(tensor):
        raise PenstockError(
            code="uninitialised", what=f"{name} has no shape yet", where=where,
            hint="run the module once on its example inputs before returning it",
        )  # fmt: skip
    if tensor.device.type != "cpu":
        meta = tensor.device.type == "meta"
        raise PenstockError(
            code="unsupported-device", what=f"{name} is on {'meta: it has no numbers' if meta else tensor.device}",
            where=where,
            hint="load the weights with load_state_dict(..., assign=True)" if meta
            else "move the model and its inputs with .cpu()",
        )  # fmt: skip
    if tensor.layout is not torch.strided:
        raise PenstockError(
            code="unsupported-layout", what=f"{name} is {_name(tensor.layout)}", where=where,
            limit="tensors are dense", hint="use .to_dense()",
        )  # fmt: skip
    if tensor.dtype in WHOLE and name.startswith("buffer"):
        return
    if tensor.dtype not in _TAKEN and (tensor.dtype != torch.complex64 or name.startswith("example input")):
        integral = not (tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized)
        raise PenstockError(
            code="unsupported-dtype", what=f"{name} is {_name(tensor.dtype)}", where=where,
            limit="models are float32, with int64, int32 and bool for what runs on the host; half and double precision "
            "are converted; quantisation is Penstock's own step",
            hint="use .long() if it counts or indexes, .float() if it is computed with" if integral
            else "give real numbers, as float32",
        )  # fmt: skip


def _check_numbers(name: str, tensor: torch.Tensor, where: str) -> None:
    """Answers of such a model would equal PyTorch's, and mean nothing. Constants may hold the infinities of a mask."""
    with torch.no_grad():
        if bool(torch.isfinite(tensor.sum(dtype=torch.float64))):
            return
        odd = ~torch.isfinite(tensor) if tensor.requires_grad else torch.isnan(tensor)
        count = int(odd.sum())
    if count:
        raise PenstockError(
            code="not-finite", what=f"{name} holds NaN or infinity in {count} of its {tensor.numel()} places",
            where=where, limit="weights and inputs are finite numbers", hint="train, convert or load the weights anew",
        )  # fmt: skip


def _name(kind: torch.dtype | torch.layout) -> str:
    return str(kind).removeprefix("torch.")
