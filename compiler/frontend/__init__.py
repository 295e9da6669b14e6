"""From a model reference to a Program: the only part of Penstock that runs PyTorch.

Importing this package is cheap; torch and torch-mlir are loaded by `import_model`, at the first model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.compiler.frontend.context import make_context
from penstock.compiler.lengths import Length
from penstock.compiler.reference import (
    FileReference,
    ImplementedReference,
    LayersReference,
    LinalgReference,
    ModelReference,
    TaskReference,
    parse_reference,
    with_sizes,
)

if TYPE_CHECKING:
    from penstock.compiler.program import Program

__all__ = ["ModelReference", "check_weights", "import_model", "make_context", "parse_reference"]


def import_model(
    reference: str,
    *,
    dims: Sequence[Length] = (),
    weights: bool = True,
    begin: Callable[[str], None] = lambda _stage: None,
) -> Program:
    """Load the model, export and lower it to linalg on tensors, with PyTorch's own answers beside it.

    `dims` are sizes that each call says: it is imported at the largest, with what follows from them. With
    `weights=False` only the shapes of parameters are known: to see what a large model compiles to. `begin` is told the
    name of each stage.

    This executes the user's code. Services do it in a process of its own: `python -m penstock.compiler.frontend`.
    """
    parsed = parse_reference(reference)
    if dims:
        with_sizes(parsed, {one.name: one.high for one in dims})  # before anything slow
    if isinstance(parsed, LinalgReference):  # text needs no PyTorch
        from penstock.compiler.frontend.linalg_text import import_linalg

        return import_linalg(parsed)
    if isinstance(parsed, FileReference | TaskReference):  # a task program is read, not executed
        from penstock.compiler.frontend.tasks_file import import_tasks, task_text, tile_text

        if isinstance(parsed, TaskReference):
            return import_tasks(parsed)
        if task_text(parsed.path) is not None or tile_text(parsed.path, parsed.function) is not None:
            program = TaskReference(parsed.path, parsed.function, parsed.options)
            if dims:  # only the file's text says that it is no PyTorch model, and so takes none
                with_sizes(program, {})
            return import_tasks(program)
    from penstock.compiler.frontend.importer import import_layers, import_loaded
    from penstock.compiler.frontend.loader import load_model

    begin("load the model")
    if dims:
        from penstock.compiler.frontend.lengths import import_lengths

        return import_lengths(parsed, dims, begin, weights=weights)
    if isinstance(parsed, LayersReference):
        return import_layers(load_model(parsed.model, weights=weights), parsed.path, begin)
    if isinstance(parsed, ImplementedReference):
        from penstock.compiler.frontend.implemented import import_implemented, read_implementation

        implementation = read_implementation(parsed.program)  # before anything slow
        return import_implemented(load_model(parsed.model, weights=weights), implementation, begin)
    return import_loaded(load_model(parsed, weights=weights), begin)


def check_weights(reference: str, dims: Sequence[Length] = ()) -> None:
    """Refuse what `import_model` would for its numbers, after an import with shapes only. It runs the user's code."""
    parsed = parse_reference(reference)
    parsed = with_sizes(parsed, {one.name: one.high for one in dims}) if dims else parsed
    from penstock.compiler.frontend.given_tensors import check_given

    check_given(parsed)
