"""A model of which each call says some sizes: `seq=1..64`.

It is imported at the largest. What its tensors have of each length is learnt from an import at a smaller one: a size
grows with the length by a whole number, or not at all.
"""

# torch's functions have few types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.export import SayStage, run_eagerly
from penstock.compiler.frontend.given_tensors import in_float32
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.lengths import Count, Length, LengthSample, ModelLengths
from penstock.compiler.program import Program
from penstock.compiler.reference import ModelReference, with_sizes
from penstock.compiler.transforms.canonicalise import simplify

_SAMPLES = 3
"""Lengths besides the largest at which PyTorch is asked for answers."""


def import_lengths(
    reference: ModelReference, lengths: Sequence[Length], begin: SayStage, *, weights: bool = True
) -> Program:
    """The model at the largest lengths, with what follows from them."""
    most = {length.name: length.high for length in lengths}
    largest = load_model(with_sizes(reference, most), weights=weights)
    program = import_loaded(largest, begin)
    _refuse_other_parts(program)
    begin("import at other lengths")
    shapes = _shapes(program)
    factors: dict[tuple[str, str], list[dict[str, int]]] = {
        key: [{} for _ in shape] for key, shape in shapes.items()
    }  # fmt: skip
    for length in lengths:
        less = length.low if length.low > 1 else min(length.high - length.step, 2 * length.step)
        smaller = import_loaded(_like(largest, reference, {**most, length.name: less}, weights=weights))
        _learn(program, shapes, _shapes(smaller), length, less, factors)
    sizes = {
        key: tuple(_count(n, one, most) for n, one in zip(shape, factors[key], strict=True))
        for key, shape in shapes.items()
    }
    known = ModelLengths(
        tuple(lengths),
        tuple(sizes["input", port.name] for port in program.signature.inputs),
        tuple(sizes["output", port.name] for port in program.signature.outputs),
        {name: one for (side, name), one in sizes.items() if side == "param" and any(one)},
        tuple(_samples(largest, reference, lengths)) if weights else (),
    )
    if not any(any(one) for one in known.inputs):
        raise PenstockError(
            code="bad-length", what=f"no input's size follows from {', '.join(most)}", where=str(reference),
            hint="name a parameter of the model that sizes its example inputs",
        )  # fmt: skip
    return replace(program, lengths=known)


def _refuse_other_parts(program: Program) -> None:
    """What the host does before and after was exported for one size."""
    reasons = {
        "the host computes a part of it": program.host is not None,
        "it keeps state from call to call": bool(program.states),
        "it writes text": program.text is not None,
    }
    for reason, holds in reasons.items():
        if holds:
            raise PenstockError(
                code="length-unsupported", what=f"its sizes cannot be said at each call: {reason}", where=program.name,
                limit="all of a model with lengths runs on the accelerator",
                hint="compile the block that computes, or leave --dim out",
            )  # fmt: skip


def _shapes(program: Program) -> dict[tuple[str, str], tuple[int, ...]]:
    """Of inputs and outputs as the signature has them, and of parameters as canonical linalg has them."""
    graph = read_graph(simplify(program).module)
    params = {
        ("param", graph.name(a)): tuple(tensor_type(a).get_shape()) for a in graph.arguments if graph.is_param(a)
    }
    inputs = {("input", port.name): port.shape for port in program.signature.inputs}
    return {**inputs, **{("output", port.name): port.shape for port in program.signature.outputs}, **params}


def _learn(
    program: Program,
    shapes: Mapping[tuple[str, str], tuple[int, ...]],
    smaller: Mapping[tuple[str, str], tuple[int, ...]],
    length: Length,
    less: int,
    factors: Mapping[tuple[str, str], list[dict[str, int]]],
) -> None:
    """How much of each dim a length accounts for."""
    if shapes.keys() != smaller.keys():
        odd = sorted(shapes.keys() ^ smaller.keys())[0]
        raise _refused(program.name, f"{odd[0]} {odd[1]!r} is there at one {length.name} and not at another")
    for key, shape in shapes.items():
        if len(shape) != len(smaller[key]):
            raise _refused(key[1], f"it has shape {shape} at {length.name}={length.high}, {smaller[key]} at {less}")
        for dim, (n, m) in enumerate(zip(shape, smaller[key], strict=True)):
            factor, rest = divmod(n - m, length.high - less)
            if rest:
                raise _refused(key[1], f"dim {dim} grows by {n - m} where {length.name} grows by {length.high - less}")
            if factor:
                factors[key][dim][length.name] = factor


def _count(n: int, factors: Mapping[str, int], most: Mapping[str, int]) -> Count | None:
    return Count.of(factors, n - sum(factor * most[name] for name, factor in factors.items())) if factors else None


def _like(largest: LoadedModel, reference: ModelReference, sizes: Mapping[str, int], *, weights: bool) -> LoadedModel:
    """The model at other lengths, with the numbers of the largest: a function may draw new ones each time."""
    model = load_model(with_sizes(reference, sizes), weights=weights)
    held = largest.module.state_dict()
    same = {name: held[name] for name, value in model.module.state_dict().items()
            if name in held and held[name].shape == value.shape}  # fmt: skip
    model.module.load_state_dict(same, strict=False)
    return model


def _samples(largest: LoadedModel, reference: ModelReference, lengths: Sequence[Length]) -> list[LengthSample]:
    """PyTorch's answers at the least lengths, and at some between."""
    found: dict[tuple[int, ...], LengthSample] = {}
    for number in range(_SAMPLES):
        sizes = {one.name: (one.least + number * (one.most - one.least) // _SAMPLES) * one.step for one in lengths}
        if tuple(sizes.values()) not in found:
            model = in_float32(_like(largest, reference, sizes, weights=True))
            answers = run_eagerly(model, model.example_inputs)
            found[tuple(sizes.values())] = LengthSample(sizes, _arrays(model.example_inputs), _arrays(answers))
    return list(found.values())


def _arrays(tensors: Sequence[torch.Tensor]) -> tuple[Array, ...]:
    return tuple(tensor.detach().cpu().numpy() for tensor in tensors)


def _refused(where: str, why: str) -> PenstockError:
    return PenstockError(
        code="length-unsupported", what=f"its size cannot be said at each call: {why}", where=where,
        limit="sizes grow with a length by whole numbers, and the model is otherwise the same", hint="leave --dim out",
    )  # fmt: skip
