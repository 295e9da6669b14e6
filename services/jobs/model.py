"""From a model reference to the program that designs are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.compiler import zoo
from penstock.compiler.lengths import parse_lengths
from penstock.compiler.reference import (
    ImplementedReference,
    LayersReference,
    LibraryReference,
    ModelReference,
    ZooReference,
    check_file,
    check_installed,
    parse_reference,
    with_sizes,
)

if TYPE_CHECKING:
    from penstock.compiler.program import Program


def check_reference(text: str, dims: Sequence[str] = ()) -> ModelReference:
    """A reference that names a file or model that is there: all that is said of a model before anything slow.

    `dims` are sizes that each call says, as seq=1..64.
    """
    reference, lengths = parse_reference(text), parse_lengths(dims)
    if lengths:
        with_sizes(reference, {one.name: one.high for one in lengths})
    if isinstance(reference, ImplementedReference | LayersReference):
        check_reference(str(reference.model))
        if isinstance(reference, ImplementedReference):
            check_file(reference.program.path)
        return reference
    if isinstance(reference, ZooReference):
        zoo.check_name(reference)
    elif isinstance(reference, LibraryReference):
        check_installed(reference)
    else:
        check_file(reference.path)
    return reference


def load_program(reference: str, quantize: str | None, dims: Sequence[str] = ()) -> Program:
    """Import a model, which runs the user's code in this process, and bring it into canonical form.

    Quantised, it is refused where its answers are too far from PyTorch's, before anything is searched.
    """
    check_reference(reference, dims)
    from penstock.compiler.frontend import import_model
    from penstock.compiler.pipeline import prepare
    from penstock.compiler.pipeline.check_quantised import check_quantised

    program = import_model(reference, dims=parse_lengths(dims))
    prepared = prepare(program, quantize)
    if quantize is not None:
        check_quantised(program, prepared, quantize)
    return prepared
