"""The canonical program as it is at lengths that a call may say: its tensors are smaller, nothing else differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.lengths import SizedGraph, lengths_of, reshaped
from penstock.compiler.dialects.counts import LENGTHS, SIZES, LengthsAttr, SizesAttr
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.lengths import SizesByLength, shape_at
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.transforms.pad_dims import retyped


def mark_sizes(program: Program) -> Program:
    """The lengths of a model, on the arguments of its canonical function. A dim of one size that meets a varying one
    is refused here."""
    lengths = program.lengths
    if lengths is None:
        return program
    if lengths_of(read_graph(program.module)):
        return program
    module = program.module.clone()
    graph = read_graph(module)
    graph.function.attributes[LENGTHS] = LengthsAttr(lengths.lengths)
    given = iter(zip(program.signature.inputs, lengths.inputs, strict=True))
    described: list[DictionaryAttr] = []
    for argument, one in zip(graph.arguments, graph.function.arg_attrs or (), strict=True):
        shape = tuple(tensor_type(argument).get_shape())
        if graph.is_param(argument):
            sizes = lengths.params.get(graph.name(argument), (None,) * len(shape))
        else:
            port, own = next(given)
            sizes = _inner(port, own, shape)
        described.append(DictionaryAttr({**one.data, SIZES: SizesAttr(sizes)}) if any(sizes) else one)
    graph.function.properties["arg_attrs"] = ArrayAttr(described)
    sized = SizedGraph(read_graph(module))
    for value, port, own in zip(sized.graph.returned, program.signature.outputs, lengths.outputs, strict=True):
        found = _inner(port, own, tuple(tensor_type(value).get_shape()))
        if sized.of_value(value) != found:
            raise _differs(port.name, f"its size is {_said(found)} in PyTorch, {_said(sized.of_value(value))} here")
    return program.with_module(module)


def resized(program: Program, lengths: Mapping[str, int]) -> Program:
    """A marked program at these lengths. Parameters are the beginnings of what they are at the largest."""
    known = program.lengths
    assert known is not None, "a program without lengths has one size"
    graph = read_graph(program.module)
    sized = SizedGraph(graph)
    values = [*graph.arguments, *(node.result for node in graph.nodes)]
    shapes = {value: shape_at(tensor_type(value).get_shape(), sized.of_value(value), lengths) for value in values}
    module = retyped(graph, shapes)
    cut = {graph.name(a): tuple(slice(n) for n in shapes[a]) for a in graph.arguments if graph.is_param(a)}
    params = {name: array[cut[name]] if name in cut else array for name, array in program.params.items()}
    ports = (
        tuple(replace(port, shape=shape_at(port.shape, sizes, lengths)) for port, sizes in zip(side, own, strict=True))
        for side, own in ((program.signature.inputs, known.inputs), (program.signature.outputs, known.outputs))
    )
    return replace(program, module=module, params=params, signature=Signature(*ports), samples=None, lengths=None)


def at_lengths(program: Program, lengths: Mapping[str, int]) -> Program:
    """A canonical program at these lengths, marked or not."""
    return resized(mark_sizes(program), lengths)


def _inner(port: Port, sizes: SizesByLength, shape: tuple[int, ...]) -> SizesByLength:
    found = reshaped(port.shape, sizes, shape)
    if found is None:
        raise _differs(port.name, f"{port.shape} is walked as {shape}, which takes a dim that varies apart")
    return found


def _said(sizes: SizesByLength) -> str:
    return "(" + ", ".join("fixed" if size is None else str(size) for size in sizes) + ")"


def _differs(where: str, why: str) -> PenstockError:
    return PenstockError(
        code="length-unsupported", what=f"its size cannot be said at each call: {why}", where=where,
        hint="compile for one size, without --dim",
    )  # fmt: skip
