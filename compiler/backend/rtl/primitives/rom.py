"""Chains of scalar operations on one 8-bit integer as a table of their results: exact, and without a multiplier.

The interpreter evaluates the chain for every value of the input, so the table is what the interpreter computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, Block, SSAValue

from penstock.compiler.dialects.types import integer_width
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.look_up import MOST_INDEX_BITS, LookUpOp, entries_of, every_index
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.scalars.operations import evaluate_chain, is_scalar_op


@dataclass(frozen=True)
class Rom:
    """Results as bit patterns by the input's bit pattern."""

    input_bits: int
    output_bits: int
    words: tuple[int, ...]

    def module(self, name: str) -> str:
        """A core like the others, of latency 1: `clk`, `ce`, `a`, `y`."""
        digits = (self.output_bits + 3) // 4
        entries = "\n".join(
            f"      {self.input_bits}'d{i}: word = {self.output_bits}'h{word:0{digits}x};"
            for i, word in enumerate(self.words)
        )
        return (
            f"// {len(self.words)} results, one for every operand. Latency 1.\n"
            f"module {name} (\n    input clk,\n    input ce,\n    input [{self.input_bits - 1}:0] a,\n"
            f"    output reg [{self.output_bits - 1}:0] y\n);\n"
            f"  reg [{self.output_bits - 1}:0] word;\n  always @*\n    case (a)\n{entries}\n"
            f"      default: word = {self.output_bits}'d0;\n    endcase\n"
            "  always @(posedge clk) if (ce) y <= word;\nendmodule\n"
        )


def is_tabulated(body: Block) -> bool:
    """Whether a scalar body has one input of up to 8 bits, constants apart, and nothing but scalar operations."""
    inputs = [argument for argument in body.args if argument.uses]
    width = integer_width(inputs[0].type) if len(inputs) == 1 else None
    terminator = body.last_op
    return (
        width is not None
        and width <= MOST_INDEX_BITS
        and terminator is not None
        and len(terminator.operands) == 1
        and _result_bits(terminator.operands[0].type) is not None
        and all(is_scalar_op(op) for op in body.ops if op is not terminator)
        and all(_is_local(value, body) for op in body.ops for value in op.operands)
    )


def tabulate(body: Block) -> Rom:
    """The table of a scalar body, as in nest.map: its arguments, its operations, and a yield of one value."""
    if not is_tabulated(body):
        raise PenstockError(
            code="unsupported-op", what="a scalar body that is not a function of one small integer",
            where="RTL primitives", limit=f"one input of up to {MOST_INDEX_BITS} bits, an integer or f32 as the result",
            hint="use a core for every operation",
        )  # fmt: skip
    argument = next(a for a in body.args if a.uses)
    bits = integer_width(argument.type)
    terminator = body.last_op
    assert bits is not None
    assert terminator is not None
    index, result = every_index(argument.type), terminator.operands[0]
    made = evaluate_chain([op for op in body.ops if op is not terminator], {argument: index})[result]
    output_bits = _result_bits(result.type)
    assert output_bits is not None
    return Rom(bits, output_bits, _words(entries_of(np.array(np.broadcast_to(made, index.shape))), output_bits))


def rom_of(op: LookUpOp) -> Rom:
    """The table that an operation looks a number up in."""
    bits = type_bits(op.result.type)
    return Rom(type_bits(op.index.type), bits, _words(op.entries.data, bits))


def _words(entries: Sequence[int], bits: int) -> tuple[int, ...]:
    return tuple(entry & ((1 << bits) - 1) for entry in entries)


def _result_bits(kind: Attribute) -> int | None:
    return 32 if isinstance(kind, Float32Type) else integer_width(kind)


def _is_local(value: SSAValue, body: Block) -> bool:
    owner = value.owner
    return owner is body if isinstance(owner, Block) else owner.parent is body
