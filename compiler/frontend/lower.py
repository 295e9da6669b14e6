"""torch-mlir from the exported graph to linalg on tensors, handed over to xDSL."""

# torch-mlir's Python bindings come without types
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Generator
from typing import Any

import torch_mlir.dialects.torch
from torch.export import ExportedProgram
from torch_mlir import fx
from torch_mlir.passmanager import PassManager
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError, VerifyException

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.frontend.export import SayStage, ignore_stage
from penstock.compiler.frontend.graph_calls import draws
from penstock.compiler.frontend.hand_over import hand_over
from penstock.compiler.frontend.origin import Origin, numbers_in
from penstock.compiler.frontend.quiet import quiet_torch

_PIPELINE = (
    "builtin.module(func.func(linalg-generalize-named-ops),canonicalize,cse,"
    "func.func(linalg-inline-scalar-operands),canonicalize,cse)"
)
_ILLEGAL = re.compile(r"failed to legalize[^']*'([\w.]+)'(?:.*?name\s*=\s*\"([\w.]+)\")?", re.DOTALL)
_TORCH_OP = re.compile(r"torch\.operator\s+\"([\w.]+)\"|'?(torch\.aten[\w.]+)")

assert torch_mlir.dialects.torch  # importing it registers the passes of the pipeline


def lower(program: ExportedProgram, origins: dict[int, Origin], model: str, begin: SayStage = ignore_stage) -> ModuleOp:
    """One `func.func @main` whose operations carry the number of the graph node that they come from."""
    begin("lower")
    _refuse_chance(program, origins, model)
    captured = _Captured()
    try:
        with quiet_torch(), _captured_stderr(captured):
            module: Any = fx.export_and_import(
                program,
                output_type="linalg-on-tensors",
                func_name="main",
                decomposition_table={},
                experimental_support_mutation=True,
            )
            with module.context:
                PassManager.parse(_PIPELINE).run(module.operation)
    except Exception as error:
        raise _explain(f"{error}\n{captured.text}", origins, model) from error
    begin("hand over")
    context = make_context()
    context.allow_unregistered = True  # an operation that we do not know is refused by the passes, with its place
    try:
        result = hand_over(module, context)
        result.verify()
    except (ParseError, VerifyException) as error:
        raise PenstockError(
            code="unsupported-op",
            what=f"the lowered model holds something that Penstock does not know: {_last_line(str(error))}",
            where=model,
            hint="compile a smaller part of the model to find the operation",
        ) from error
    return result


class _Captured:
    text: str = ""


@contextlib.contextmanager
def _captured_stderr(captured: _Captured) -> Generator[None]:
    """MLIR prints its diagnostics to the process's stderr: keep them for the error message."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            captured.text = file.read().decode(errors="replace")


def _refuse_chance(program: ExportedProgram, origins: dict[int, Origin], model: str) -> None:
    drawn = next((n for n, node in enumerate(program.graph.nodes) if node.users and draws(node)), None)
    if drawn is not None:
        raise PenstockError(
            code="unsupported-op", what=f"the operation {origins[drawn].operation()} draws random numbers",
            where=origins[drawn].describe(model), limit="an accelerator gives the same for the same inputs",
            hint="draw them outside, and give them to the model as an input",
        )  # fmt: skip


def _explain(text: str, origins: dict[int, Origin], model: str) -> PenstockError:
    """Name the operation that could not be lowered, and its place in the model."""
    numbers = [number for number in numbers_in(text) if number in origins]
    illegal, named = _ILLEGAL.search(text), _TORCH_OP.search(text)
    if not numbers and not illegal and not named:
        return PenstockError(
            code="lowering-failed",
            what=f"torch-mlir cannot lower the model: {_last_line(text)}",
            where=model,
            hint="try the parts of the model one by one to find the operation",
        )
    origin = origins[numbers[0]] if numbers else None
    op = f"aten.{origin.op}" if origin else next(x for x in (*_groups(illegal), *_groups(named)) if x)
    return PenstockError(
        code="unsupported-op",
        what=f"the operation {op} is not supported",
        where=origin.describe(model) if origin else model,
        hint="replace it by supported operations, or do it on the host before or after the model",
    )


def _groups(match: re.Match[str] | None) -> tuple[str | None, ...]:
    return match.groups() if match else ()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no reason given"
