"""A task program in the place of a model's layers: types held to those of the layers, answers to PyTorch's.

The program is the accelerator. The host computes what stands around its calls, as around layers that share one.
"""

# torch's functions have few types
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.export import SayStage
from penstock.compiler.frontend.given_tensors import check_tensors, in_float32
from penstock.compiler.frontend.lift import numbers_of
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.repeated_layers import LayerCall, RepeatedLayers, named_layers
from penstock.compiler.frontend.tasks_file import read_tasks
from penstock.compiler.frontend.whole_model import whole_of
from penstock.compiler.frontend.with_text import with_text
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.layers import Layers
from penstock.compiler.program import Port, Program, Samples, Signature
from penstock.compiler.reference import TaskReference
from penstock.compiler.runtime.penstock_runtime.host import LAYER
from penstock.compiler.tasks.interpret import MOST_SAMPLED
from penstock.compiler.tasks.network import Instances, tokens_passing

TOLERANCE = 1e-3
"""Of the largest number that PyTorch answers."""


@dataclass(frozen=True)
class Implementation:
    """A task program that says which layers it stands for."""

    network: Instances
    program: Program

    @property
    def layers(self) -> tuple[str, ...]:
        return self.network.program.implements


def read_implementation(reference: TaskReference) -> Implementation:
    network, program = read_tasks(reference)
    if not network.program.implements:
        raise PenstockError(
            code="no-layers", what=f"the program {network.program.name} does not say which layers it stands for",
            where=str(reference.path), hint='write @implements("fc1") above its @program, with the layer\'s name',
        )  # fmt: skip
    return Implementation(network, program)


def import_implemented(model: LoadedModel, ours: Implementation, begin: SayStage) -> Program:
    """The task program with each layer's weights and calls, and the model around it."""
    model = in_float32(model)
    check_tensors(model)
    begin("find the layers")
    layers, answers = named_layers(model, ours.layers)
    fitted = [_Fitted.of(ours.network, layers, number) for number in range(len(layers.names))]
    whole = whole_of(model, layers)
    calls = (
        tuple((_arrays(call.tensors), _arrays(_outputs(call))) for call in layers.calls) if model.has_weights else ()
    )
    first = fitted[0]
    program = replace(
        ours.program,
        name=model.name,
        signature=first.signature(ours.program.signature),
        has_weights=model.has_weights,
        notes=(*model.notes, *ours.program.notes, *_said(ours, layers, whole.graph["nodes"], model)),
        layers=Layers(
            "", layers.names, tuple(one.weights(model) for one in fitted), ({},) * len(fitted), whole.graph,
            whole.values, calls, _arrays(model.example_inputs) if calls else (), _arrays(answers) if calls else (),
        ),
    )  # fmt: skip
    if calls:
        program = replace(program, samples=Samples(tuple(program.all_inputs(0, calls[0][0])), calls[0][1]))
        _check_answers(ours, program)
    return with_text(program, model, begin)


@dataclass(frozen=True)
class _Fitted:
    """A layer whose tensors are those that the program takes and makes."""

    given: Mapping[str, torch.Tensor]
    """Its parameters and buffers, by the program's names."""
    inputs: Mapping[str, torch.Tensor]
    outputs: Sequence[torch.Tensor]

    @staticmethod
    def of(network: Instances, layers: RepeatedLayers, number: int) -> _Fitted:
        name, module, call = layers.names[number], layers.modules[number], layers.calls[number]
        held = {key.replace(".", "_"): value for key, value in _held(module)}
        said = _described(name, module, call, held)
        taken = [one for one in network.inputs if one in held]
        passed = [one for one in network.inputs if one not in held]
        owed = [key.replace(".", "_") for key, _ in module.named_parameters()]
        if missing := [one for one in owed if one not in taken]:
            raise _unfit(network, f"it takes no {missing[0]}, which layer {name!r} has", said)
        for ours, theirs, what in (
            (passed, call.tensors, "takes"), (network.outputs, _outputs(call), "makes"),
        ):  # fmt: skip
            if len(ours) != len(theirs):
                listed = f" ({', '.join(ours)})" if ours else ""
                beside = " beside the weights" if what == "takes" else ""
                raise _unfit(
                    network, f"it {what} {len(ours)} tensors{beside}{listed}, and layer {name!r} {len(theirs)}", said
                )
        inputs = dict(zip(passed, call.tensors, strict=True))
        given = {one: held[one] for one in taken}
        for ours, theirs in (*given.items(), *inputs.items(), *zip(network.outputs, _outputs(call), strict=True)):
            tensor = network.program.tensors[ours]
            wanted = _kind(theirs)
            if not _agree(tensor.kind.shape, tensor.kind.dtype, theirs):
                raise network.source.error(
                    tensor.node, f"{ours} is {tensor.kind} here, and {wanted} in layer {name!r}",
                    f"write {ours}: {wanted}, or name another layer in @implements", said,
                )  # fmt: skip
        return _Fitted(given, inputs, _outputs(call))

    def weights(self, model: LoadedModel) -> dict[str, Array]:
        if not model.has_weights:
            return {name: np.zeros(tuple(value.shape), _dtype(value)) for name, value in self.given.items()}
        return {name: np.ascontiguousarray(numbers_of(value)) for name, value in self.given.items()}

    def signature(self, ours: Signature) -> Signature:
        """The layer's shapes, which may have dims of one element more than the program's."""
        inputs = {**self.given, **self.inputs}
        return Signature(
            tuple(Port(port.name, tuple(inputs[port.name].shape), port.dtype) for port in ours.inputs),
            tuple(
                Port(port.name, tuple(value.shape), port.dtype)
                for port, value in zip(ours.outputs, self.outputs, strict=True)
            ),
        )


def _check_answers(ours: Implementation, program: Program) -> None:
    """The program with each layer's weights answers as PyTorch did."""
    assert program.layers is not None
    if tokens_passing(ours.network) > MOST_SAMPLED:
        return
    for number, (name, (given, wanted)) in enumerate(zip(program.layers.names, program.layers.calls, strict=True)):
        for port, found, answer in zip(
            program.signature.outputs, run(program, program.all_inputs(number, given)), wanted, strict=True
        ):
            largest = float(np.max(np.abs(answer), initial=0.0))
            apart = np.abs(found.astype(np.float64) - answer)
            if not np.all((apart <= TOLERANCE * largest) | (found == answer) | (np.isnan(found) & np.isnan(answer))):
                raise ours.network.source.error(
                    ours.network.program.tensors[port.name].node,
                    f"{port.name} is not what layer {name!r} answers: {np.nanmax(apart):.3g} apart",
                    "compute what the layer computes, with its weights as PyTorch keeps them",
                    f"at most {TOLERANCE * largest:.3g}, a thousandth of the largest number, on the example inputs",
                )


def _held(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _outputs(call: LayerCall) -> list[torch.Tensor]:
    return [one for one in call.outputs if one is not None]


def _arrays(tensors: Sequence[torch.Tensor]) -> tuple[Array, ...]:
    return tuple(np.ascontiguousarray(one.detach().numpy()) for one in tensors)


def _dtype(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _kind(value: torch.Tensor) -> str:
    """As a program writes it."""
    return f"{_dtype(value)}[{', '.join(map(str, value.shape))}]"


def _agree(shape: Sequence[int], dtype: str, value: torch.Tensor) -> bool:
    """Dims of one element come and go as the host reshapes."""
    own = {"f32": "float32"}.get(dtype, f"int{dtype[1:]}")
    return own == _dtype(value) and [x for x in shape if x != 1] == [x for x in value.shape if x != 1]


def _described(name: str, module: nn.Module, call: LayerCall, held: Mapping[str, torch.Tensor]) -> str:
    inputs = ", ".join(map(_kind, call.tensors))
    outputs = ", ".join(map(_kind, _outputs(call)))
    weights = "".join(f", {key}: {_kind(value)}" for key, value in held.items())
    return f"{name} is a {type(module).__name__}: {inputs}{weights} to {outputs}"[:400]


def _unfit(network: Instances, what: str, limit: str) -> PenstockError:
    return network.source.error(network.program.node, what, "let the program's tensors be the layer's", limit)


def _said(
    ours: Implementation, layers: RepeatedLayers, nodes: Sequence[Mapping[str, object]], model: LoadedModel
) -> list[str]:
    around = sum(node["op"] not in (LAYER, "getitem") for node in nodes)
    names = ", ".join(layers.names)
    said = [
        f"{names}: computed by the task program {ours.network.source.name}, one call each; figures are of one call. "
        f"{around} operations around it run on the host."
    ]
    if model.evaluation:
        said.append("the held-out set is left out: it is for models that are one accelerator")
    return said
