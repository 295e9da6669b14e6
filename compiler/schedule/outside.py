"""How accesses share the port of an external memory: words pass one a cycle, plain scalars as the tools widen ports."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType

from penstock.compiler.analysis.ports import beats_of, stored_bits
from penstock.compiler.schedule.flatten import FlatStep
from penstock.compiler.schedule.library import OperatorLibrary
from penstock.compiler.schedule.records import Bound


def beats(step: FlatStep, library: OperatorLibrary) -> int:
    """Cycles for which an access has its port to itself. The open route makes ports as wide as what passes at once."""
    place = step.target
    if place is None or place.kind != "external" or library.memory.own_modules or isinstance(place.dtype, VectorType):
        return 1
    return beats_of(step.shape, place.shape, stored_bits(place.dtype))


def port_bound(name: str, users: Sequence[FlatStep], library: OperatorLibrary) -> Bound:
    """Of one memory that these access in each iteration."""
    ii = sum(beats(step, library) for step in users)
    reason = f"II = {ii}: {len(users)} accesses to {name} an iteration on 1 ports"
    if ii > len(users):
        lanes = sum(step.lanes for step in users)
        reason = f"II = {ii}: {lanes} elements of {name} an iteration in {ii} beats: wider ones divide no row"
    return Bound("external ports", ii, reason)
