"""Rewrites a canonical float program to weights of 8 or 4 bits and 8-bit activations with 32-bit accumulators.

Static and symmetric: an activation has one scale, measured on calibration inputs; a weight has one a channel.
Contractions multiply i8 by i8 or i4 into i32. The elementwise operations between them become integer arithmetic that
ends in i8 (`fixed_point`), with functions as tables (`quantised_functions`); where that is not possible they compute
in f32 between two conversions.
The model's results leave as i32 and are scaled by the host; what the next layer reads leaves a second time, as i8.
Layers that share the accelerator share the activations' scales, which are ranges joined over the layers. Each has its
own weights, scales of weights, and so multipliers: numbers that differ between layers carry a leading axis of layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from penstock.compiler.program import Port, Quantisation, Signature
from penstock.compiler.transforms.answer_twice import answer_twice, handed_on
from penstock.compiler.transforms.calibrate import Spread, measure_spreads, not_finite
from penstock.compiler.transforms.editor import Editor, shape_of, tensor_of
from penstock.compiler.transforms.even_channels import channel_ranges, find_channels
from penstock.compiler.transforms.find_masks import find_masks
from penstock.compiler.transforms.find_norm_rows import find_norm_rows
from penstock.compiler.transforms.find_steep import find_steep
from penstock.compiler.transforms.generics import is_reduction
from penstock.compiler.transforms.parts import moves_data
from penstock.compiler.transforms.quantise_elementwise import quantise_elementwise
from penstock.compiler.transforms.quantise_parts import quantise_parts, share_ranges
from penstock.compiler.transforms.quantise_reductions import quantise_reduction
from penstock.compiler.transforms.quantiser import LEVELS, Code, Quantiser
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class QuantiseIntegers(Rewrite):
    """After `InsertRequantise`."""

    name: ClassVar[str] = "quantise"
    weight_bits: int = 8

    def rewrite(self, editor: Editor) -> None:
        quantise_in(editor, self.weight_bits)


def quantise_in(editor: Editor, weight_bits: int = 8) -> Quantiser:
    """Rewrites the function, and says how the integers of each new value stand for the old one's numbers."""
    program = editor.snapshot()
    # numbers that nobody calls typical say nothing of how large one channel gets beside another, nor of rare numbers
    typical = bool(program.calibration or program.text)
    channels = find_channels(editor) if typical else {}
    spreads, sizes = measure_spreads(program, channels)
    coarse = {v for v, s in spreads.items() if _is_uneven(editor, v, s) or (typical and s.has_few_far)}
    rows = find_norm_rows(editor, coarse)
    exact = {editor.name(value) for value in rows if editor.is_input(value)}
    rows |= {value for value, name in handed_on(editor).items() if name in exact}
    fed = answer_twice(editor, exact)
    spreads |= {again: spreads[first] for again, (first, _) in fed.items()}
    masks = find_masks(editor, spreads)
    steep = find_steep(editor, spreads, masks) if typical else set[SSAValue]()
    ranges = {value: masks[value].largest if value in masks else s.largest for value, s in spreads.items()}
    for value, largest in ranges.items():
        if not np.isfinite(largest):
            raise not_finite(program.name, spreads[value].layer)
    _share_state(editor, ranges)
    for leaving, (_, entering) in fed.items():
        ranges[leaving] = ranges[entering]
    share_ranges(editor, ranges)
    uneven = {value for value, spread in spreads.items() if spread.uneven}
    state = Quantiser(editor, ranges, masks, uneven, rows | steep, weight_bits, set(fed))
    state.channel_ranges |= channel_ranges(state, channels, sizes)
    _quantise_inputs(state)
    for op in list(editor.block.ops):
        if moves_data(op):
            quantise_parts(state, op)
        elif isinstance(op, linalg.GenericOp):
            (quantise_reduction if is_reduction(op) else quantise_elementwise)(state, op)
    outputs = _return(state, editor.signature.outputs, typical=typical)
    editor.remove_dead()
    for argument, name in state.names.items():
        editor.rename(argument, name)
    editor.set_layer_weights({editor.name(argument): rows for argument, rows in state.by_layer.items()})
    ports = {editor.name(a): a for a in editor.block.args if editor.is_input(a)}
    editor.signature = Signature(
        tuple(_input_port(p, state.codes[ports[p.name]]) for p in editor.signature.inputs), outputs
    )
    return state


def _is_uneven(editor: Editor, value: SSAValue, spread: Spread) -> bool:
    handed = editor.program.layers is not None and editor.is_input(value)
    return spread.grown if handed else spread.uneven_rows


def _share_state(editor: Editor, ranges: dict[SSAValue, float]) -> None:
    """State enters with the range that it leaves with: before the first call it may be all zeros."""
    terminator = editor.block.last_op
    assert isinstance(terminator, func.ReturnOp)
    arguments = {editor.name(argument): argument for argument in editor.block.args}
    for state in editor.program.states:
        if state.port in arguments and state.result is not None:
            entering, leaving = arguments[state.port], terminator.operands[state.result]
            if leaving in ranges:
                ranges[entering] = ranges[leaving] = max(ranges[entering], ranges[leaving])


def _quantise_inputs(state: Quantiser) -> None:
    editor = state.editor
    for argument in [a for a in editor.block.args if editor.is_input(a)]:
        if argument in state.exact:
            state.values[argument], state.codes[argument] = argument, None
            continue
        scale = state.step(argument)
        shape = shape_of(argument)
        new = editor.retype(argument, tensor_of(shape, IntegerType(8)))
        state.values[new] = new
        state.codes[new] = Code(np.full((1,) * len(shape), scale), LEVELS + 1, 8, state.left_out(argument))


def _input_port(port: Port, code: Code | None) -> Port:
    if code is None:
        return port
    return replace(port, dtype="int8", quant=Quantisation(float(code.scale.flat[0]), "int8"))


def _return(state: Quantiser, ports: tuple[Port, ...], *, typical: bool) -> tuple[Port, ...]:
    terminator = state.editor.block.last_op
    assert isinstance(terminator, func.ReturnOp)
    result: list[Port] = []
    for index, (old, port) in enumerate(zip(list(terminator.operands), ports, strict=True)):
        new = state.values[old]
        terminator.operands[index] = new
        code = state.codes[new]
        if code is not None:
            assert code.along_last(port.shape[-1] if port.shape else 1), "insert_requantise sees to it"
            dtype = f"int{code.width}"
            port = replace(port, dtype=dtype, quant=Quantisation(code.for_host(), dtype))
        if typical:
            port = replace(port, largest=state.ranges.get(old, 0.0))
        result.append(port)
    return tuple(result)
