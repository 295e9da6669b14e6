"""Sizes that each call says, of a model that was taken in: what can be refused of them before a worker does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.lengths import parse_lengths
from penstock.compiler.reference import LayersReference, ZooReference, parse_reference, with_sizes
from penstock.compiler.zoo._declared import declared_options
from penstock.services.jobs.refused import RefusedError

if TYPE_CHECKING:
    from penstock.compiler.program import Program
    from penstock.db.schema.records import Model

_TAKING = ("python", "onnx", "zoo", "library")


def check_dims(model: Model, options: Mapping[str, Any]) -> None:
    """Refuses lengths of a model that takes none, or not these."""
    lengths = parse_lengths(options.get("dims") or ())
    if not lengths:
        return
    if model.kind not in _TAKING:
        raise _refused("this model takes no lengths", "lengths are for PyTorch and ONNX models", "leave dims out")
    try:
        reference = parse_reference(model.source)
        with_sizes(reference, {one.name: one.high for one in lengths})
    except PenstockError as error:
        raise _refused(error.what, error.limit, error.hint) from None
    whole = reference.model if isinstance(reference, LayersReference) else reference
    if isinstance(whole, ZooReference):
        known = dict(declared_options(whole.name))
        if unknown := next((one.name for one in lengths if one.name not in known), None):
            raise _refused(
                f"{model.name} has no option {unknown!r}", "its options: " + ", ".join(known),
                nearest(unknown, known, "name one that sizes its inputs"),
            )  # fmt: skip


def lengths_note(program: Program) -> tuple[str, ...]:
    """What the figures of a model are of whose sizes each call says."""
    if program.lengths is None:
        return ()
    said = " and ".join(map(str, program.lengths.lengths))
    return (f"Each call says {said}: shapes and figures are those of the largest, where no other size is named.",)


def _refused(what: str, limit: str, hint: str) -> RefusedError:
    return RefusedError("bad-length", what, where="body.dims", limit=limit, hint=hint)
