"""Takes the weights out of an exported graph and makes them arguments, so that they never enter the IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.loaded import LoadedModel

_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(frozen=True)
class Argument:
    name: str
    kind: str  # "input" or "param"


def lift_weights(program: ExportedProgram, model: LoadedModel) -> tuple[list[Argument], dict[str, Array]]:
    """Turn state into user inputs, in place: the arguments in order, and the lifted values by name.

    Scalars (0-d tensors) stay inline, where they fold into the operations that use them. A tensor that several
    names share is kept once; the graph's arguments then repeat the first name, until they are made one.
    """
    refuse_mutation(program, model)
    arguments: list[Argument] = []
    params: dict[str, Array] = {}
    first_name: dict[tuple[Any, ...], str] = {}
    specs: list[InputSpec] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind in (*_STATE, InputKind.CUSTOM_OBJ):
            name = str(spec.target)
            value = state_value(program, name)  # which refuses what is no tensor
            if value.dim() == 0:
                specs.append(spec)
                continue
            name = first_name.setdefault(_identity(value), name)
            params[name] = numbers_of(value)
            arguments.append(Argument(name, "param"))
            specs.append(InputSpec(InputKind.USER_INPUT, spec.arg, None))
        else:
            specs.append(spec)
            if not isinstance(spec.arg, ConstantArgument):
                arguments.append(Argument(spec.arg.name, "input"))
    program.graph_signature.input_specs[:] = specs
    _refuse_clashes(arguments, model)
    return arguments, params


def state_value(program: ExportedProgram, name: str) -> torch.Tensor:
    value: Any = program.state_dict.get(name)
    value = program.constants[name] if value is None else value
    if not isinstance(value, torch.Tensor):
        raise PenstockError(
            code="unsupported-constant", what=f"forward uses a {type(value).__name__}", where=name,
            limit="a model computes with tensors", hint="make what it is used for once, outside of forward",
        )  # fmt: skip
    return value


def _identity(value: torch.Tensor) -> tuple[Any, ...]:
    """Equal for tensors that are the same part of the same memory."""
    storage: Any = value.untyped_storage()
    memory = (storage._cdata, value.storage_offset()) if isinstance(value, FakeTensor) else value.data_ptr()
    return (memory, value.dtype, tuple(value.shape), value.stride())


def numbers_of(value: torch.Tensor) -> Array:
    """A parameter without numbers is one zero, seen everywhere: it has a shape and takes no memory."""
    if isinstance(value, FakeTensor):
        return np.broadcast_to(np.float32(0), tuple(value.shape))
    return np.asarray(value.detach().numpy(), order="C")


def refuse_mutation(program: ExportedProgram, model: LoadedModel) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise PenstockError(
                code="mutation",
                what=f"forward changes {spec.target or spec.arg.name!r}",
                where=model.reference,
                limit="a model keeps between calls what its buffers hold, and changes nothing else",
                hint="write to a copy of it, or keep it in a buffer (register_buffer)",
            )


def _refuse_clashes(arguments: list[Argument], model: LoadedModel) -> None:
    params = {a.name for a in arguments if a.kind == "param"}
    for argument in arguments:
        if argument.kind == "input" and argument.name in params:
            raise PenstockError(
                code="name-clash",
                what=f"the input {argument.name!r} has the name of a parameter",
                where=model.reference,
                hint="rename the argument of forward",
            )
