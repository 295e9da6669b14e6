"""Tables of scalar chains: every entry is what the interpreter computes, and the module holds the entries."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerType, f32
from xdsl.ir import Attribute, Block, Operation

from penstock.compiler.backend.rtl.primitives import Primitive, is_tabulated, tabulate
from penstock.compiler.dialects import nest
from penstock.compiler.errors import PenstockError
from tests.rtl.primitive_bench import Case, build, measure

I8 = IntegerType(8)


def body(argument: Attribute, *make: type[Operation] | float, result: Attribute | None = None) -> Block:
    """A chain on one argument: unary operations by class, products with a constant by number."""
    block = Block(arg_types=[argument])
    value = block.args[0]
    for step in make:
        if isinstance(step, type):
            kind = f32 if step is not arith.FPToSIOp else result
            op = step.create(operands=[value], result_types=[kind or f32])
            block.add_op(op)
        else:
            constant = arith.ConstantOp(FloatAttr(step, f32))
            op = arith.MulfOp(value, constant.result)
            block.add_ops([constant, op])
        value = op.results[0]
    block.add_op(nest.YieldOp(value))
    return block


def test_entries_are_the_interpreters():
    rom = tabulate(body(I8, arith.SIToFPOp, 0.05, math_dialect.ExpOp))
    assert (rom.input_bits, rom.output_bits, len(rom.words)) == (8, 32, 256)
    signed = np.arange(256).astype(np.int8)
    expected = np.exp((signed.astype(np.float32) * np.float32(0.05)).astype(np.float64)).astype(np.float32)
    assert rom.words == tuple(int(word) for word in expected.view(np.uint32))


def test_an_integer_result_is_a_bit_pattern_of_its_width():
    rom = tabulate(body(I8, arith.SIToFPOp, -0.5, arith.FPToSIOp, result=I8))
    assert rom.output_bits == 8
    assert [rom.words[x] for x in (0, 1, 2, 4, 254)] == [0, 0, 0xFF, 0xFE, 1]


def test_only_functions_of_one_small_integer_are_tabulated():
    assert not is_tabulated(body(IntegerType(16), arith.SIToFPOp))
    two = Block(arg_types=[I8, I8])
    added = arith.AddiOp(two.args[0], two.args[1])
    two.add_ops([added, nest.YieldOp(added.result)])
    assert not is_tabulated(two)
    with pytest.raises(PenstockError, match="one input of up to 8 bits"):
        tabulate(two)


@pytest.mark.slow
def test_the_module_holds_the_table(tmp_path_factory: pytest.TempPathFactory):
    text = tabulate(body(I8, arith.SIToFPOp, 0.05, math_dialect.ExpOp)).module("exp_rom")
    core = Primitive("exp_rom", 1, (8,), 32, ())
    reference = "rounded(std::exp(static_cast<double>(static_cast<float>(sign_extend(a, 8)) * 0.05f)))"
    case = Case("exp_rom", "rom", core, reference, text=text)
    outcome = measure(build([case], tmp_path_factory.mktemp("rom")), vectors=20_000, seed=3)["exp_rom"]
    assert outcome.inexact == 0, outcome
