"""What of a design somebody would have otherwise: depths of FIFOs, tiles and lanes of kernels.

Light, so that the API refuses a wrong name or number at once; what a changed design costs says `what_if`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, StrictInt

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError, nearest
from penstock.services.described import Described
from penstock.services.jobs.refused import RefusedError
from penstock.services.run_options import PlainText, RequestBody

DEEPEST, LARGEST, MOST_DIMS, MOST_CHANGES = 1 << 20, 1 << 24, 16, 1000
Depth = Annotated[StrictInt, Field(ge=1, le=DEEPEST)]
LoopSizes = Annotated[list[Annotated[StrictInt, Field(ge=1, le=LARGEST)]], Field(min_length=1, max_length=MOST_DIMS)]
PartName = Annotated[PlainText, Field(min_length=1, max_length=300)]
_NO_OTHER_NAMES = Described({"additionalProperties": False})
"""Names have a pattern, and JSON schema allows names beside a pattern unless it is told."""


class KernelChange(RequestBody):
    """How a kernel is to be walked instead; one number for each of its loops."""

    tile: LoopSizes | None = Field(default=None, description="the inner loop's length; null: as it is")
    unroll: LoopSizes | None = Field(default=None, description="how many of them run side by side; null: as it is")


class DesignChanges(RequestBody):
    """What is to be different; everything else stays."""

    fifo_depths: Annotated[dict[PartName, Depth], _NO_OTHER_NAMES] = Field(
        default_factory=dict, max_length=MOST_CHANGES, description="tokens that a channel holds, by its name"
    )
    kernels: Annotated[dict[PartName, KernelChange], _NO_OTHER_NAMES] = Field(
        default_factory=dict, max_length=MOST_CHANGES, description="other lanes and tiles, by the kernel's name"
    )

    def after(self, earlier: DesignChanges) -> DesignChanges:
        """Both, the later one where they speak of the same."""
        kernels = dict(earlier.kernels)
        for name, change in self.kernels.items():
            said = change.model_dump(exclude_none=True)
            kernels[name] = kernels.get(name, KernelChange()).model_copy(update=said)
        return DesignChanges(fifo_depths={**earlier.fifo_depths, **self.fifo_depths}, kernels=kernels)


def read_changes(document: Mapping[str, Any]) -> DesignChanges:
    """Those that a step or a run was given; they were checked then."""
    return DesignChanges.model_validate(dict(document))


def changed(design: Design, changes: DesignChanges) -> Design:
    """The design with the changes.

    What was found for it as it was goes: kinds of memories always; depths and dies where a kernel is another one.
    """
    if not changes.fifo_depths and not changes.kernels:
        raise _refused("nothing is to be different", "body", "", "name a channel's depth, or a kernel's tile or unroll")
    for name in changes.fifo_depths:
        _check_known(name, design.fifo_depths, "channel", f"body.fifo_depths.{name[:80]}")
    record = design.to_json()
    for name, change in changes.kernels.items():
        where = f"body.kernels.{name[:80]}"
        _check_known(name, design.kernels, "kernel", where)
        for field, sizes in change.model_dump(exclude_none=True).items():
            dims = len(design.kernels[name].order)
            if len(sizes) != dims:
                raise _refused(f"{field} has {len(sizes)} numbers", where, f"the kernel has {dims} loops", "")
            record["kernels"][name][field] = sizes
    try:
        made = Design.from_json(record, "body")
    except PenstockError as error:
        raise _refused(error.what, error.where, error.limit, "lanes divide the tile") from error
    made = replace(made, memories={}, allocated_for="")
    if made.kernels == design.kernels:
        return made.with_fifo_depths({**design.fifo_depths, **changes.fifo_depths})
    return replace(made, dies={}, fifo_depths=dict(changes.fifo_depths))


def as_it_is(design: Design) -> Design:
    """The design that changes are compared with: its memories counted by the same rule as a changed one's."""
    return replace(design.current(), memories={}, allocated_for="")


def _check_known(name: str, known: Mapping[str, object], what: str, where: str) -> None:
    if name not in known:
        hint = nearest(name, known, f"the design's record (design.json) names every {what}")
        raise _refused(f"the design has no {what} '{name[:80]}'", where, f"{len(known)} {what}s", hint)


def _refused(what: str, where: str, limit: str, hint: str) -> RefusedError:
    return RefusedError("invalid-request", what, where=where, limit=limit, hint=hint)
