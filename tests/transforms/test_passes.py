"""Every pass on a small module of its own, run by its name: what it makes of it, and that the numbers stay."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, VectorType
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from penstock.compiler import transforms
from penstock.compiler.analysis.packing import layout_of
from penstock.compiler.design import Design
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.types import memref_type, tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter import itensor as itensor_interpreter
from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.layout import crop, pack, pad, unpack
from penstock.compiler.pipeline.readable import readable
from penstock.compiler.pipeline.single import Purpose, read_ir, run_passes
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.transforms.passes import Pass, level_of
from penstock.compiler.transforms.registry import PASSES, make_pass, parse_passes
from tests.goldens import check_golden

Array = NDArray[Any]
GOLDENS = Path(__file__).parent / "goldens" / "passes"
QUANTISING = {"quantise"}
"""Passes after which numbers are others, by as much as eight bits cost: `test_quantise.py` says by how much."""
NOT_RUN = {"drop-dead-results", "raise-extracts", "raise-windows"}
"""Passes that bring modules into a form that the interpreter runs."""
CHECKING = {"check-canonical"}
"""Passes that change nothing."""


def before_and_after(name: str) -> tuple[Program, Program]:
    record = GOLDENS / f"{name}.design.json"
    purpose = Purpose("u55c", 300.0, Design.load(record) if record.exists() else None)
    before = read_ir(GOLDENS / f"{name}.before.mlir")
    return before, run_passes(before, parse_passes(name), purpose)


@pytest.mark.parametrize("name", PASSES)
def test_what_a_pass_makes(name: str) -> None:
    before, after = before_and_after(name)
    text = readable(after.module)
    check_golden(GOLDENS / f"{name}.after.mlir", text)
    assert readable(Parser(make_context(), text).parse_module()) == text
    unchanged = before.module.is_structurally_equivalent(after.module)
    assert unchanged == (name in CHECKING), "the example shows what the pass is for"
    again = read_ir(GOLDENS / f"{name}.before.mlir")
    assert again.module.is_structurally_equivalent(before.module), "the module that was given stays as it was"


@pytest.mark.parametrize("name", [name for name in PASSES if name not in QUANTISING | NOT_RUN])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_numbers_stay(name: str, seed: int) -> None:
    before, after = before_and_after(name)
    inputs = drawn(before.module, np.random.default_rng(seed))
    wanted = outputs_of(before, inputs)
    got = outputs_of(after, inputs)
    assert len(got) == len(wanted) > 0
    for ours, theirs in zip(got, wanted, strict=True):
        same = crop(ours.reshape(shaped(ours.shape, theirs.shape)), theirs.shape).astype(theirs.dtype)
        if np.issubdtype(theirs.dtype, np.integer):
            np.testing.assert_array_equal(same, theirs)
        else:
            np.testing.assert_allclose(same, theirs, rtol=1e-5, atol=1e-6)


def test_the_table_has_every_pass_of_the_folder() -> None:
    found: set[type] = set()
    for module in pkgutil.iter_modules(transforms.__path__, f"{transforms.__name__}."):
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(one, Pass) and not inspect.isabstract(one):
                found.add(one)
    assert found == set(PASSES.values())
    assert all(name == one.name for name, one in PASSES.items())
    stray = {path.name.split(".")[0] for path in GOLDENS.iterdir()} - set(PASSES)
    assert not stray, "goldens of passes that there are no more"


def test_options_are_the_fields_of_a_pass() -> None:
    (spec,) = parse_passes("fuse-elementwise{max-operands=3}")
    assert vars(make_pass(spec))["max_operands"] == 3
    (spec,) = parse_passes("fold-parameters")
    assert make_pass(spec) == PASSES["fold-parameters"]()
    assert [spec.name for spec in parse_passes("fold-reshapes,drop-unit-dims")] == ["fold-reshapes", "drop-unit-dims"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fold-reshape", "did you mean fold-reshapes"),
        ("zzz", "--list-passes shows all"),
        ("", "no pass is named"),
        ("fold-reshapes{", "Expected argument name"),
        ("fold-reshapes pad-dims", "cannot be read"),
        ("fold-reshapes{speed=3}", r"has no option 'speed' \(options: none\)"),
        ("fuse-elementwise{max-operands=many}", "expected <class 'int'>"),
        ("pad-dims{design=fast}", "has no option 'design'"),
    ],
)
def test_what_is_no_pass(text: str, message: str) -> None:
    with pytest.raises(PenstockError, match=message) as caught:
        make_pass(parse_passes(text)[0], Design("u55c", 300.0, {}))
    assert caught.value.code in ("unknown-pass", "bad-pass")


def function_of(module: ModuleOp) -> func.FuncOp:
    return next(op for op in module.ops if isinstance(op, func.FuncOp))


def top_of(module: ModuleOp) -> stream.TopOp:
    return next(op for op in module.ops if isinstance(op, stream.TopOp))


def arguments_of(module: ModuleOp) -> Iterator[tuple[str, str, SSAValue]]:
    """What a module takes: name, kind and value."""
    if level_of(module) == "stream":
        top = top_of(module)
        for name, kind, value in zip(top.argument_names, top.argument_kinds, top.body.block.args, strict=True):
            yield name.data, kind.data, value
        return
    main = function_of(module)
    for value, described in zip(main.body.block.args, main.arg_attrs or (), strict=True):
        name, kind = described.data["penstock.name"], described.data["penstock.kind"]
        assert isinstance(name, StringAttr)
        assert isinstance(kind, StringAttr)
        yield name.data, kind.data, value


def drawn(module: ModuleOp, generator: np.random.Generator) -> dict[str, Array]:
    """Numbers for the inputs, in the module's own shapes."""
    found: dict[str, Array] = {}
    for name, kind, value in arguments_of(module):
        if kind == "input":
            element = value.type.element_type  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
            inner = tuple(element.get_shape()) if isinstance(element, VectorType) else ()
            scalar = str(element.element_type if isinstance(element, VectorType) else element)
            shape = (*shape_of(value), *inner)
            whole = generator.integers(-128, 128, shape).astype(np.int8)
            found[name] = whole if scalar == "i8" else generator.standard_normal(shape).astype(np.float32)
    return found


def outputs_of(program: Program, inputs: dict[str, Array]) -> list[Array]:
    """What a module answers at its level. Numbers are packed where it wants them so, and unpacked again."""
    module, given = program.module, {**program.params, **inputs}
    arguments = list(arguments_of(module))
    match level_of(module):
        case "linalg" | "tasks":
            ports = [(name, shape_of(value)) for name, kind, value in arguments if kind == "input"]
            sized = [pad(given[name].reshape(shaped(given[name].shape, s)), s) for name, s in ports]
            kinds = [tensor_type(kind) for kind in function_of(module).function_type.outputs]
            outputs = tuple(Port("", kind.get_shape(), "") for kind in kinds)
            taken = tuple(Port(name, shape, given[name].dtype.name) for name, shape in ports)
            return linalg_interpreter.run(replace(program, signature=Signature(taken, outputs)), sized)
        case "itensor":
            main = function_of(module)
            layouts = [layout_of(main.arg_attrs, i) for i in range(len(arguments))]
            values = [given[name] for name, _, _ in arguments]
            packed = [pack(v, one.layout) if one and v.ndim == 2 else v for v, one in zip(values, layouts, strict=True)]
            outputs = itensor_interpreter.run(module, packed)
            after = [layout_of(main.res_attrs, i) for i in range(len(outputs))]
            return [unpack(v, one.layout, (4, 8)) if one else v for v, one in zip(outputs, after, strict=True)]
        case _:
            found, top = stream_interpreter.run(module, inputs, program.params), top_of(module)
            left = [(name, top.layout(i)) for i, (name, kind, _) in enumerate(arguments) if kind == "output"]
            return [unpack(found[name], one, (4, 8)) if one else found[name] for name, one in left]


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tuple((memref_type if isinstance(value.type, MemRefType) else tensor_type)(value).get_shape())


def shaped(given: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The wanted shape where it holds as many numbers; else the given one, which is then padded or cropped."""
    return wanted if np.prod(given) == np.prod(wanted) else given
