"""Single passes on a module that a person wrote or printed: read, run, and refused in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.design import Design
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.frontend.text_file import TextFile
from penstock.compiler.program import Port, Program, Samples, Signature
from penstock.compiler.scalars.number_types import numpy_dtype
from penstock.compiler.transforms.passes import level_of
from penstock.compiler.transforms.registry import PASSES, make_pass, needs_design

_MOST_DRAWN = 1 << 22
_LIMIT = "a pass takes a module of linalg with @main, of itensor kernels, or of streams and nests"
_HINT = "penstock compile MODEL --print-ir shows what each looks like"


@dataclass(frozen=True)
class Purpose:
    """What passes that take a design are given: a record, or the default one for a platform and clock."""

    platform: str
    clock_mhz: float
    design: Design | None = None


def read_ir(path: Path) -> Program:
    """A file's module as a program. A text has no data: parameters and inputs get numbers, the same each time."""
    file = TextFile.read(path, "bad-ir", _LIMIT, _HINT)
    module = file.parse(make_context())
    if level_of(module) == "stream":
        return Program(path.stem, module, {}, Signature((), ()))
    mains = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"]
    if len(mains) != 1 or mains[0].is_declaration or len(mains[0].body.blocks) != 1:
        raise file.refused("there is no single function @main of one block")
    if level_of(module) == "itensor":
        return Program(path.stem, module, {}, Signature((), ()))
    try:
        return _with_data(path.stem, module, mains[0])
    except (KeyError, NotImplementedError, ValueError, VerifyException, AssertionError) as error:
        raise file.refused(f"arguments and results of @main are tensors of numbers of known shape: {error}") from error


def run_passes(program: Program, specs: Sequence[ArgSpec], purpose: Purpose) -> Program:
    """The program after each pass in turn, verified. The default design is that of the module which first needs one."""
    design = purpose.design
    for spec in specs:
        takes, level = PASSES[spec.name].takes, level_of(program.module)
        if takes != level:
            raise PenstockError(
                code="bad-level", what=f"the pass {spec.name} takes a module of the {takes} level, this is one of the "
                f"{level} level", where=program.name, hint="--list-passes shows what each pass takes",
            )  # fmt: skip
        if design is None and needs_design(spec):
            design = _default(program, purpose)
        one = make_pass(spec, design)
        try:
            program = one.run(program)
            program.module.verify()
        except PenstockError:
            raise
        except Exception as error:
            # a pass may rely on what the passes before it left; a text that a person wrote has come through none
            what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise PenstockError(
                code="pass-failed", what=f"the pass {spec.name} cannot take this module ({what})", where=program.name,
                limit="a pass takes what the passes before it make", hint="run those first, with more --pass",
            ) from error  # fmt: skip
    return program


def _default(program: Program, purpose: Purpose) -> Design:
    if level_of(program.module) != "linalg":
        return Design(purpose.platform, purpose.clock_mhz, {})
    return default_design(read_graph(program.module), purpose.platform, purpose.clock_mhz)


def _with_data(name: str, module: ModuleOp, main: FuncOp) -> Program:
    """Ports, parameters and samples by the function's arguments, all of which are inputs unless it says otherwise."""
    if main.arg_attrs is None:
        main.properties["arg_attrs"] = ArrayAttr(
            DictionaryAttr({
                "penstock.name": StringAttr(argument.name_hint or f"input{argument.index}"),
                "penstock.kind": StringAttr("input"),
            })
            for argument in main.body.block.args
        )  # fmt: skip
    params: dict[str, Array] = {}
    inputs: list[tuple[Port, Array]] = []
    for argument, described in zip(main.body.block.args, main.arg_attrs or (), strict=True):
        values = _drawn(argument)
        called, kind = (described.data.get(f"penstock.{key}") for key in ("name", "kind"))
        label = called.data if isinstance(called, StringAttr) else f"input{argument.index}"
        if kind == StringAttr("param"):
            params[label] = values
        else:
            inputs.append((Port(label, values.shape, values.dtype.name), values))
    results = [tensor_type(kind) for kind in main.function_type.outputs]
    outputs = tuple(
        Port(f"output{i}", kind.get_shape(), numpy_dtype(kind.element_type).name) for i, kind in enumerate(results)
    )
    samples = Samples(tuple(values for _, values in inputs), ())
    return Program(name, module, params, Signature(tuple(port for port, _ in inputs), outputs), samples)


def _drawn(argument: BlockArgument) -> Array:
    """Numbers for an argument; one that is seen everywhere where they would be very many."""
    kind, generator = tensor_type(argument), np.random.default_rng(argument.index)
    shape, dtype = kind.get_shape(), numpy_dtype(kind.element_type)
    drawn = shape if prod(shape) <= _MOST_DRAWN else ()
    numbers = generator.standard_normal(drawn) if dtype.kind == "f" else generator.integers(-8, 8, drawn)
    return np.broadcast_to(np.asarray(numbers, dtype), shape)
