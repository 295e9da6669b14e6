"""A model of which each call says some sizes: `seq=1..64`.

It is imported at the largest. What its tensors have of each length is learnt from an import at a smaller one: a size
grows with the length by a whole number, or not at all.
"""

# torch's functions have few types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from xdsl.dialects.arith import ConstantOp

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.export import SayStage, ignore_stage, run_eagerly
from penstock.compiler.frontend.given_tensors import in_float32
from penstock.compiler.frontend.importer import import_layers, import_loaded, sample_of
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.frontend.sized_documents import AtLess, refused_size, sized_document
from penstock.compiler.frontend.typical_inputs import cut_to
from penstock.compiler.host_parts import HostParts
from penstock.compiler.layers import Layers
from penstock.compiler.lengths import ByLength, Length
from penstock.compiler.model_lengths import LengthSample, ModelLengths
from penstock.compiler.program import Program
from penstock.compiler.reference import (
    ImplementedReference,
    LayersReference,
    LinalgReference,
    ModelReference,
    TaskReference,
    with_sizes,
    without_calibration,
)
from penstock.compiler.transforms.canonicalise import simplify

P = TypeVar("P", HostParts, Layers)

_SAMPLES = 3
"""Lengths besides the largest at which PyTorch is asked for answers."""


def import_lengths(
    reference: ModelReference, lengths: Sequence[Length], begin: SayStage, *, weights: bool = True
) -> Program:
    """The model at the largest lengths, with what follows from them."""
    most = {length.name: length.high for length in lengths}
    source = _Source(reference, weights)
    largest = source.model(most)
    program = source.program(largest, begin)
    _refuse_other_parts(program)
    begin("import at other lengths")
    canonical = simplify(program)
    shapes = _shapes(program, canonical)
    factors: dict[tuple[str, str], list[dict[str, int]]] = {
        key: [{} for _ in shape] for key, shape in shapes.items()
    }  # fmt: skip
    smallest: list[tuple[Length, int, Program]] = []
    for length in lengths:
        less, smaller = _smaller(source, largest, length, most)
        own = simplify(smaller)
        _check_alike(canonical, own, length, less)
        _learn(program, shapes, _shapes(smaller, own), length, less, factors)
        _check_beginnings(canonical, own, length, less)
        smallest.append((length, less, smaller))
    sizes = {
        key: tuple(_count(n, one, most) for n, one in zip(shape, factors[key], strict=True))
        for key, shape in shapes.items()
    }
    known = ModelLengths(
        tuple(lengths),
        tuple(sizes["input", port.name] for port in program.signature.inputs),
        tuple(sizes["output", port.name] for port in program.signature.outputs),
        {name: one for (side, name), one in sizes.items() if side == "param" and any(one)},
        tuple(_samples(source, largest, lengths)) if weights else (),
    )
    host = _sized(program.host, [(length, less, one.host) for length, less, one in smallest], program.name)
    layers = _sized(program.layers, [(length, less, one.layers) for length, less, one in smallest], program.name)
    _refuse_states(program, known, host)
    if not any(any(one) for one in known.inputs):
        raise PenstockError(
            code="bad-length", what=f"the size of no input follows from {', '.join(most)}", where=str(reference),
            limit="a length is a size of the example inputs, which each call may have another of",
            hint="name an option or parameter of the model that sizes its example inputs",
        )  # fmt: skip
    return replace(program, lengths=known, host=host, layers=layers)


@dataclass(frozen=True)
class _Source:
    """The model at any sizes: all of it, or the layers of it that share the accelerator."""

    reference: ModelReference
    weights: bool

    @property
    def path(self) -> str | None:
        return self.reference.path if isinstance(self.reference, LayersReference) else None

    def model(self, sizes: Mapping[str, int], like: LoadedModel | None = None) -> LoadedModel:
        """With the numbers of another: a function may draw new ones each time. Only the first is gone through text."""
        sized = with_sizes(self.reference, sizes)
        assert not isinstance(sized, LinalgReference | TaskReference | ImplementedReference)
        whole = sized.model if isinstance(sized, LayersReference) else sized
        model = load_model(whole if like is None else without_calibration(whole)[0], weights=self.weights)
        if like is not None:
            held = like.module.state_dict()
            same = {name: held[name] for name, value in model.module.state_dict().items()
                    if name in held and held[name].shape == value.shape}  # fmt: skip
            model.module.load_state_dict(same, strict=False)
        if like is not None:
            model = cut_to(model, like)
        return replace(model, varies=True, text=None if like else model.text)

    def program(self, model: LoadedModel, begin: SayStage = ignore_stage, *, only_first: bool = False) -> Program:
        if self.path is None:
            return import_loaded(model, begin)
        return import_layers(model, self.path, begin, only_first=only_first)


def _smaller(source: _Source, largest: LoadedModel, length: Length, most: Mapping[str, int]) -> tuple[int, Program]:
    """The model where one length is less: its least, or where it does not run at that a larger one, as a cache that has
    no room for what is written."""
    least = length.low if length.low > 1 else min(length.high - length.step, 2 * length.step)
    middle = (length.least + length.most) // 2 * length.step
    *others, last = dict.fromkeys((least, max(least, middle), length.high - length.step))
    for less in others:
        with suppress(PenstockError):
            return less, _at_less(source, largest, length, less, most)
    return last, _at_less(source, largest, length, last, most)


def _at_less(source: _Source, largest: LoadedModel, length: Length, less: int, most: Mapping[str, int]) -> Program:
    with _at(f"{length.name}={less}"):
        return source.program(source.model({**most, length.name: less}, largest), only_first=True)


def _sized(part: P | None, smaller: Sequence[tuple[Length, int, P | None]], where: str) -> P | None:
    """What the host does around the accelerator or its layers, at all lengths."""
    if part is None:
        return None
    others = [AtLess(length, less, one and one.graph) for length, less, one in smaller]
    _refuse_values(part.values, [one.values if one else {} for *_, one in smaller])
    return replace(part, graph=sized_document(part.graph, others, where))


def _refuse_values(largest: Mapping[str, Array], others: Sequence[Mapping[str, Array]]) -> None:
    for name, value in largest.items():
        if any(name not in one or one[name].shape != value.shape for one in others):
            raise refused_size(name, "the host computes with a tensor that has other sizes then")


def _refuse_other_parts(program: Program) -> None:
    """Calls of the accelerator for one answer of the model."""
    if program.host is not None and program.host.graph.get("between"):
        raise PenstockError(
            code="length-unsupported", where=program.name,
            what="its sizes cannot be said at each call: the host computes between calls of the accelerator",
            limit="a model with lengths calls its accelerator once for each answer",
            hint="compile the block that computes, or leave --dim out",
        )  # fmt: skip


def _refuse_states(program: Program, known: ModelLengths, host: HostParts | None) -> None:
    """A state that a call gives anew is as large in the next one; only rows of it may be written at any size."""
    ports = [port.name for port in program.signature.inputs]
    for state in program.states:
        if state.port is not None:
            varies = any(known.inputs[ports.index(state.port)])
        else:
            assert host is not None
            varies = any(not isinstance(size, int) for size in host.graph["inputs"][state.input]["shape"])
        if varies and (state.port is None or state.dim is None):
            raise refused_size(state.name, "each call gives what the model keeps anew, as large as it then is")


@contextmanager
def _at(said: str) -> Generator[None]:
    """What only fails at another length says so."""
    try:
        yield
    except PenstockError as error:
        raise PenstockError(
            code=error.code, what=f"at {said}: {error.what}", where=error.where, limit=error.limit, hint=error.hint
        ) from error


def _check_alike(largest: Program, smaller: Program, length: Length, less: int) -> None:
    """Only sizes may differ: neither what is computed, nor the numbers in it."""
    places = (f"{length.name}={length.high}", f"{length.name}={less}")
    graphs = [read_graph(program.module) for program in (largest, smaller)]
    one, other = ([type(node).__name__ for node in graph.nodes] for graph in graphs)
    if one != other:
        counts = [len(graph.operations) for graph in graphs]
        more = f"it has {counts[0]} operations at {places[0]} and {counts[1]} at {places[1]}"
        raise refused_size(largest.name, more if counts[0] != counts[1] else f"it does something else at {places[1]}")
    for here, there in zip(*(graph.operations for graph in graphs), strict=True):
        bodies = [list(operation.op.body.block.ops) for operation in (here, there)]
        if [op.name for op in bodies[0]] != [op.name for op in bodies[1]]:
            raise refused_size(here.layer, f"it computes something else at {places[1]}")
        for x, y in zip(*bodies, strict=True):
            if isinstance(x, ConstantOp) and isinstance(y, ConstantOp) and x.value != y.value:
                raise refused_size(
                    here.layer, f"it computes with {x.value} at {places[0]} and with {y.value} at {places[1]}"
                )


def _check_beginnings(largest: Program, smaller: Program, length: Length, less: int) -> None:
    """The accelerator has the parameters of the largest length, and takes their beginnings for others."""
    sizes = f"{length.name}={less}", f"{length.name}={length.high}"
    for name, array in smaller.params.items():
        whole = largest.params[name][tuple(slice(n) for n in array.shape)]
        if not np.array_equal(whole, array, equal_nan=array.dtype.kind == "f"):
            raise PenstockError(
                code="length-unsupported", where=name,
                what=f"its numbers at {sizes[0]} are not the beginning of those at {sizes[1]}",
                limit="sizes of inputs can be said at each call, sizes of trained weights cannot",
                hint="give --dim a size of the example inputs",
            )  # fmt: skip


def _shapes(program: Program, canonical: Program) -> dict[tuple[str, str], tuple[int, ...]]:
    """Of inputs and outputs as the signature has them, and of parameters as canonical linalg has them."""
    graph = read_graph(canonical.module)
    params = {("param", graph.name(a)): tuple(tensor_type(a).get_shape()) for a in graph.arguments if graph.is_param(a)}
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
        raise refused_size(program.name, f"its {odd[0]} {odd[1]!r} is there at one {length.name} and not at another")
    for key, shape in shapes.items():
        if len(shape) != len(smaller[key]):
            raise refused_size(key[1], f"it has shape {shape} at {length.name}={length.high}, {smaller[key]} at {less}")
        for dim, (n, m) in enumerate(zip(shape, smaller[key], strict=True)):
            factor, rest = divmod(n - m, length.high - less)
            if rest:
                sizes = f"{n} at {length.name}={length.high} and {m} at {less}"
                raise refused_size(key[1], f"dim {dim} is {sizes}, which does not grow evenly")
            if factor:
                factors[key][dim][length.name] = factor


def _count(n: int, factors: Mapping[str, int], most: Mapping[str, int]) -> ByLength | None:
    return ByLength.of(factors, n - sum(factor * most[name] for name, factor in factors.items())) if factors else None


def _samples(source: _Source, largest: LoadedModel, lengths: Sequence[Length]) -> list[LengthSample]:
    """PyTorch's answers at the least lengths, and at some between."""
    found: dict[tuple[int, ...], LengthSample] = {}
    for number in range(_SAMPLES):
        sizes = {one.name: (one.least + number * (one.most - one.least) // _SAMPLES) * one.step for one in lengths}
        if tuple(sizes.values()) not in found:
            with _at(", ".join(f"{name}={size}" for name, size in sizes.items())):
                model = in_float32(source.model(sizes, largest))
                given, answers = _arrays(model.example_inputs), _arrays(run_eagerly(model, model.example_inputs))
                sample = sample_of(model, source.path)
            alone = source.path is None and len(sample.inputs) == len(given)
            whole = ((), ()) if alone else (given, answers)
            found[tuple(sizes.values())] = LengthSample(sizes, sample.inputs, sample.outputs, *whole)
    return list(found.values())


def _arrays(tensors: Sequence[torch.Tensor]) -> tuple[Array, ...]:
    return tuple(tensor.detach().cpu().numpy() for tensor in tensors)
