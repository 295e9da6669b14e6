"""The look-up: its text, what it refuses, its meaning, its C++, its ROM, and what it takes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import Float64Type, IntegerType, ModuleOp, f32, i8, i16, i32
from xdsl.dialects.test import Test as AnyDialect
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Block, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.backend.hls.emit import operations_header
from penstock.compiler.backend.hls.tables_cpp import table_functions
from penstock.compiler.backend.rtl.primitives import rom_of
from penstock.compiler.dialects import stream
from penstock.compiler.frontend.context import make_context
from penstock.compiler.scalars.bounds import Bounds
from penstock.compiler.scalars.look_up import LookUpOp, bounds_of_entries, entries_of, every_index
from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.schedule import load_library
from penstock.compiler.schedule.bodies import operator_widths
from penstock.compiler.transforms.pad_scalars import FINITE, run_body
from penstock.profiling.csim import FLAGS, find_compiler

INCLUDE = Path(__file__).resolve().parents[2] / "compiler/backend/hls/include"
I4 = IntegerType(4)
REALS = np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 1e-42, 3.3333333], np.float32)


def look_up(index: Attribute, entries: Any, result: Attribute) -> LookUpOp:
    return LookUpOp(AnyOp(result_types=[index]).results[0], entries, result)


def drawn(index: Attribute, result: Attribute) -> LookUpOp:
    """With the largest and the least numbers of the type among others."""
    count, random = len(every_index(index)), np.random.default_rng(0)
    if result == f32:
        return look_up(index, entries_of(np.resize(REALS, count)), f32)
    width = int(str(result)[1:])
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    numbers = [low, high, *random.integers(low, high, count - 2, endpoint=True).tolist()]
    return look_up(index, numbers, result)


CASES = [(i8, i8), (i8, f32), (i8, i32), (i8, i16), (I4, i8), (I4, I4), (i8, I4)]


@pytest.mark.parametrize(("index", "result"), CASES)
def test_text_reads_back(index: Attribute, result: Attribute) -> None:
    given = AnyOp(result_types=[index])
    module = ModuleOp([given, LookUpOp(given.results[0], drawn(index, result).entries.data, result)])
    module.verify()
    context = make_context()
    context.load_dialect(AnyDialect)
    again = Parser(context, str(module)).parse_module()
    assert again.is_structurally_equivalent(module)


@pytest.mark.parametrize(
    ("index", "entries", "result", "message"),
    [
        (i16, range(1 << 16), i8, "16 bits, more than 8"),
        (i8, range(100), i8, "100 entries for the 256 numbers of 8 bits"),
        (I4, [128] * 16, i8, "an entry is no i8"),
        (I4, [-1] * 16, f32, "an entry is no f32"),
        (I4, range(16), Float64Type(), "f64"),
        (f32, range(256), i8, "f32"),
    ],
)
def test_what_is_no_table(index: Attribute, entries: Any, result: Attribute, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        look_up(index, entries, result).verify()


@pytest.mark.parametrize(("index", "result"), CASES)
def test_entries_stand_in_the_order_of_bit_patterns(index: Attribute, result: Attribute) -> None:
    op, numbers = drawn(index, result), every_index(index)
    assert numbers[-1] == -1
    assert numbers[0] == 0
    found = evaluate(op, [numbers])
    assert entries_of(found) == op.entries.data
    least = evaluate(op, [np.array(numbers.min())])
    assert entries_of(least.reshape(1))[0] == op.entries.data[len(numbers) // 2]


def test_cpp_is_the_interpreters(tmp_path: Path) -> None:
    """Every number through the emitted functions, printed as bits."""
    ops = [drawn(*case) for case in CASES]
    task = stream.TaskOp("task", "layer", Region(Block(ops)))
    text, names = table_functions(task)
    assert len(names) == len(ops)
    calls = "".join(
        f"for (int x = {every_index(op.index.type).min()}; x <= {every_index(op.index.type).max()}; ++x) {{ "
        + (
            f"float y = {name}(x); uint32_t z; std::memcpy(&z, &y, 4); std::printf(\"%u\\n\", y == y ? z : 0);"
            if op.result.type == f32 else f'std::printf("%d\\n", (int){name}(x));'
        ) + "}\n"
        for op, name in zip(ops, names.values(), strict=True)
    )  # fmt: skip
    (tmp_path / "penstock_ops.h").write_text(operations_header())
    head = '#include <cmath>\n#include <cstdio>\n#include <cstring>\n#include "penstock_ops.h"\n'
    (tmp_path / "t.cpp").write_text(head + "\n".join(text) + f"\nint main() {{\n{calls}}}\n")
    build = [find_compiler(), *FLAGS, "-Wno-unknown-pragmas", "-I", ".", "-I", str(INCLUDE), "t.cpp", "-o", "t"]
    subprocess.run(build, cwd=tmp_path, check=True)
    printed = subprocess.run(["./t"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    wanted: list[int] = []
    for op in ops:
        found = evaluate(op, [np.sort(every_index(op.index.type))])
        wanted += [
            0 if bits == entries_of(REALS[5:6])[0] and op.result.type == f32 else bits for bits in entries_of(found)
        ]
    assert [int(text) for text in printed] == wanted


def test_the_rom_has_the_entries() -> None:
    op = drawn(I4, i8)
    rom = rom_of(op)
    assert (rom.input_bits, rom.output_bits) == (4, 8)
    assert [word - 256 if word > 127 else word for word in rom.words] == list(op.entries.data)
    assert rom_of(drawn(i8, f32)).words[:8] == entries_of(REALS)


def test_what_is_known_of_an_entry() -> None:
    """What padding makes of it: the entry of zero where that is known, else something between the extremes."""
    finite = look_up(i8, entries_of(np.linspace(-2, 3, 256, dtype=np.float32)), f32)
    assert bounds_of_entries(finite) == Bounds(-2.0, 3.0)
    assert bounds_of_entries(drawn(i8, f32)) is None
    block = Block(arg_types=[i8])
    op = LookUpOp(block.args[0], finite.entries.data, f32)
    block.add_op(op)
    assert run_body(block, [FINITE])[op.result] == Bounds(-2.0, 3.0)
    known = run_body(block, [np.zeros((), np.int8)])[op.result]
    assert isinstance(known, np.ndarray)
    assert known == np.float32(-2)


def test_area_goes_by_the_entries_width() -> None:
    library = load_library("vitis-ultrascale-plus", 300.0)
    taken = []
    for op in (drawn(i8, i8), drawn(i8, f32)):
        (bits,) = operator_widths(op, [8])
        row = library.find(op.name, bits)
        taken.append((row.latency, row.area(bits).lut, row.area(bits).ff, row.area(bits).dsp))
    assert taken == [(1, 32, 8, 0), (1, 128, 32, 0)]
