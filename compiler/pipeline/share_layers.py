"""Makes one program of the layers that share an accelerator: what differs between them enters it with each call.

Every layer takes the same way through the passes. The programs that come out are the same but for the numbers of their
parameters; those that differ become inputs of the accelerator, whose memories the host runtime keeps, packed, a set a
layer. What all layers have in common stays a parameter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp

from penstock.compiler.analysis.graph import FEEDS
from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.feeds import feeds_of
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.transforms.canonicalise import quantise, simplify
from penstock.compiler.transforms.passes import level_of


def share_layers(program: Program, weight_bits: int | None) -> Program:
    """The canonical program of one layer, with its weights as inputs; `layers.weights` has them for every layer."""
    layers = program.layers
    assert layers is not None
    if level_of(program.module) == "tasks":  # a task program takes a layer's weights as it takes all else
        return program if weight_bits is None else quantise(program, weight_bits)
    prepared = [simplify(replace(program, params=dict(weights), samples=None)) for weights in layers.weights]
    first = prepared[0]
    text = str(first.module)
    for name, other in zip(layers.names, prepared, strict=True):
        if str(other.module) != text:
            raise PenstockError(
                code="layers-differ", what=f"layer {name!r} simplifies to other operations than {layers.names[0]!r}",
                where=program.name, limit="layers that share an accelerator differ in their weights alone",
                hint="compile it without #, or the layers that are alike on their own",
            )  # fmt: skip
    own = [n for n in first.params if any(not _same(first.params[n], o.params[n]) for o in prepared[1:])]
    if varying := next((n for n in own if program.lengths and n in program.lengths.params), None):
        raise PenstockError(
            code="length-unsupported", what="its size cannot be said at each call: layers have other numbers in it",
            where=varying, limit="what differs between layers that share the accelerator has one size",
            hint="compile for one size, without --dim",
        )  # fmt: skip
    weights = tuple({name: one.params[name] for name in own} for one in prepared)
    shared = replace(first, samples=program.samples, layers=replace(layers, weights=weights))
    return mark_feeds(weights_as_inputs(shared if weight_bits is None else quantise(shared, weight_bits)))


def mark_feeds(program: Program) -> Program:
    """Where the host does nothing between layers, results of @main say which input of the next layer they are."""
    ports = feeds_of(program).ports
    if not ports:
        return program
    module = program.module.clone()
    (main,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    said = [{FEEDS: StringAttr(ports[i])} if i in ports else {} for i in range(len(program.signature.outputs))]
    main.res_attrs = ArrayAttr(map(DictionaryAttr, said))
    return program.with_module(module)


def weights_as_inputs(program: Program) -> Program:
    """The parameters in `layers.weights` become inputs, which have the first layer's numbers in the samples."""
    assert program.layers is not None
    names = program.layers.weights[0]
    module = program.module.clone()
    (main,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    assert main.arg_attrs is not None
    given, ports = iter(program.signature.inputs), list[Port]()
    examples = iter(program.samples.inputs if program.samples else ())
    samples, attributes = list[Array](), list[DictionaryAttr]()
    for attribute in main.arg_attrs.data:
        name, kind = (_text(attribute, key) for key in ("penstock.name", "penstock.kind"))
        if kind == "input":
            ports.append(next(given))
            samples += [next(examples)] if program.samples else []
        elif name in names:
            values = program.params[name]
            ports.append(Port(name, values.shape, values.dtype.name))
            samples.append(values)
            attribute = DictionaryAttr({**attribute.data, "penstock.kind": StringAttr("input")})
        attributes.append(attribute)
    main.arg_attrs = ArrayAttr(attributes)
    fixed = {i: program.params[port.name] for i, port in enumerate(ports) if port.name in names}
    return replace(
        program,
        module=module,
        params={name: value for name, value in program.params.items() if name not in names},
        signature=Signature(tuple(ports), program.signature.outputs),
        samples=replace(program.samples, inputs=tuple(samples)) if program.samples else None,
        lengths=program.lengths and program.lengths.with_inputs(fixed),
    )


def _text(attribute: DictionaryAttr, key: str) -> str:
    value = attribute.data[key]
    assert isinstance(value, StringAttr)
    return value.data


def _same(ours: Array, theirs: Array) -> bool:
    return ours.dtype == theirs.dtype and np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f")
