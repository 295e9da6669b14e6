"""Executes a list of calls as one start of the accelerator does: each call's memories begin where the list says."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Attribute, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.types import memref_type, vector_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.stream import run


def run_list(
    module: ModuleOp,
    memories: Mapping[str, Array],
    parameters: Mapping[str, Array],
    calls: Array,
    *,
    whole: bool = True,
) -> None:
    """Run a top that has a sequencer. `memories` hold all calls' tensors by argument, flat, and are written in place.

    An output that feeds an input is given the same array as that. `calls` is the list as it lies in memory. At lengths
    below the largest results are not written as a `whole`.
    """
    top = next(op for op in module.ops if isinstance(op, stream.TopOp))
    names = {argument: name.data for argument, name in zip(top.body.block.args, top.argument_names, strict=True)}
    kinds = {argument: kind.data for argument, kind in zip(top.body.block.args, top.argument_kinds, strict=True)}
    moved, count = top.moved, int(calls[0])
    rows = calls[1 : 1 + count * len(moved)].reshape(count, len(moved))
    fixed = {names[a]: memories[names[a]] for a, kind in kinds.items() if kind == "parameter"}
    for number, row in enumerate(rows):
        parts = {a: _part(a, names[a], memories, int(word), number) for a, word in zip(moved, row, strict=True)}
        given = {names[a]: part.copy() for a, part in parts.items() if kinds[a] == "input"}
        unread = {names[a]: memories[names[a]] for a, kind in kinds.items() if kind == "input" and a not in parts}
        answers = run(module, {**fixed, **unread, **given}, parameters, whole=whole)
        for argument, part in parts.items():
            if kinds[argument] == "output":
                part[...] = answers[names[argument]].reshape(part.shape)


def _part(argument: SSAValue, name: str, memories: Mapping[str, Array], word: int, call: int) -> Array:
    """A call's own tensor, as a view."""
    kind = memref_type(argument)
    element: Attribute = kind.element_type
    lanes = tuple(vector_type(element).get_shape()) if element.name == VectorType.name else ()
    shape = (*kind.get_shape(), *lanes)
    begin, size = word * prod(lanes), prod(shape)
    if not 0 <= begin <= memories[name].size - size:
        raise PenstockError(
            code="bad-call-list", what=f"call {call} begins at word {word}", where=name,
            limit=f"the memory holds {memories[name].size // size} tensors of {size} elements",
            hint="lay the memories out with CallLists of the runtime",
        )  # fmt: skip
    return memories[name].reshape(-1)[begin : begin + size].reshape(shape)
