"""What requantisation multiplies: the bits that sums take by short multipliers, which is one DSP slice a lane."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects import arith
from xdsl.dialects.builtin import i8
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.backend.hls.scalar_cpp import emit_body, emit_constants
from penstock.compiler.dialects.bindings import Allotment
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.program import Program
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule import OperatorLibrary, load_library
from penstock.compiler.schedule.bodies import Operators, flatten_body
from penstock.compiler.transforms.canonicalise import quantise, simplify
from penstock.compiler.transforms.editor import layer_of
from tests.frontend.models import import_module, make, seeded

VITIS, OPEN = load_library("vitis-ultrascale-plus", 300.0), load_library("open-ecp5", 100.0)


class Shortcut(nn.Module):
    """Two convolutions, the second with what goes past it added: an accumulator and eight bits of other scales."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        return self.last(torch.relu(self.second(x) + x))


@pytest.fixture(scope="module")
def shortcut() -> Program:
    return quantise(simplify(import_module(make(Shortcut), seeded((1, 4, 6, 6)))))


def requantising(program: Program) -> list[linalg.GenericOp]:
    """The operations that narrow to eight bits, in order."""
    ops = [op for op in program.module.walk() if isinstance(op, linalg.GenericOp)]
    rounding = [op for op in ops if any(isinstance(inner, arith.ShRSIOp) for inner in op.body.block.ops)]
    return [op for op in rounding if get_element_type_or_self(op.results[0].type) == i8]


def slices(block: Block, library: OperatorLibrary) -> int:
    """DSPs of one lane of a body, as a nest's are counted."""
    bits = [type_bits(argument.type) for argument in block.args]
    body = flatten_body(block, bits, [True] * len(bits), Operators(library, Allotment({})), 1, added=False)
    return sum(step.operator.dsp * step.count for step in body.steps)


def test_a_lane_takes_one_slice_for_each_number_that_is_scaled(shortcut: Program) -> None:
    plain, summed = (op.body.block for op in requantising(shortcut))
    assert [slices(block, VITIS) for block in (plain, summed)] == [1, 2]
    assert [slices(block, OPEN) for block in (plain, summed)] == [2, 3]


def test_the_product_is_written_in_the_widths_that_are_counted(shortcut: Program) -> None:
    block = requantising(shortcut)[0].body.block
    lines, constants = emit_constants(block, lambda label: label)
    body, _ = emit_body(block, [f"in{i}" for i in range(len(block.args))], constants, "layer", lambda label: label, {})
    (product,) = [line for line in body if "* " in line]
    (narrow,) = [line for line in body if "ap_int<" in line]
    assert product == "const int64_t product = (int64_t)(narrow * in2);", "\n".join(lines + body)
    assert narrow.startswith("const ap_int<20> narrow = pk::trunc<ap_int<20>>(")


def test_multipliers_are_short_and_fine_enough(shortcut: Program) -> None:
    """No number that becomes 127 steps is off by more than 1/256 of one."""
    multipliers = [shortcut.params[f"{layer_of(op)}.multiplier"] for op in requantising(shortcut)]
    assert all(value.dtype == np.int16 and value.max() >= 1 << 14 for value in multipliers)
    assert shortcut.samples is not None
    (ours,) = shortcut.dequantise_outputs(run(shortcut, shortcut.quantise_inputs(shortcut.samples.inputs)))
    (theirs,) = shortcut.samples.outputs
    assert np.max(np.abs(ours - theirs)) <= 0.03 * np.max(np.abs(theirs))


@pytest.mark.parametrize(
    ("bits", "narrower", "dsp"),
    [(8, 8, 1), (18, 18, 1), (27, 18, 1), (19, 19, 2), (27, 19, 2), (28, 18, 2), (34, 26, 2), (27, 27, 4)],
)
def test_products_take_the_slices_that_both_widths_ask_for(bits: int, narrower: int, dsp: int) -> None:
    assert VITIS.find("mac", bits, narrower=narrower).dsp == dsp


def test_without_the_narrower_factor_a_product_is_square() -> None:
    assert VITIS.find("mac", 27) == VITIS.find("mac", 27, narrower=27)
    assert VITIS.find("arith.addi", 27) == VITIS.find("arith.addi", 27, narrower=27)


class NormBehind(nn.Module):
    """A layer whose rows a norm reads twice: for their size, and to divide by it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(16, 24, bias=False), nn.RMSNorm(24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layer(x))


def test_sums_that_several_operations_read_wait_in_eight_bits() -> None:
    """One of them waits for the other, which needs whole rows first."""
    program = quantise(simplify(import_module(make(NormBehind), seeded((4, 16)))))
    generics = [op for op in program.module.walk() if isinstance(op, linalg.GenericOp)]
    (sums,) = [op for op in generics if len(op.iterator_types) == 3]
    (reader,) = {use.operation for use in sums.results[0].uses}
    assert isinstance(reader, linalg.GenericOp)
    assert get_element_type_or_self(reader.results[0].type) == i8
    assert len({use.operation for use in reader.results[0].uses}) == 2
