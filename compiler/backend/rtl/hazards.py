"""Whether the order in which a pipeline loads and stores is the order that the nest means; if not, it is refused.

Behind the front an iteration may run ahead of those that wait in it, never the other way round: a later iteration's
accesses come at their nominal distance or later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from penstock.compiler.analysis.extents import Extents, extents_of
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.types import vector_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.schedule.apart import fall_together
from penstock.compiler.schedule.carried import reuse_distance


@dataclass(frozen=True)
class SharedUse:
    """One access of a nest to something that is shared."""

    nest: nest.NestOp
    op: nest.LoadOp | nest.StoreOp | nest.WriteOp
    stage: int
    ii: int
    front: int
    where: str
    held: bool = False
    """Whether a load answers in its own cycle, so that partial sums come straight from their store."""


def check_apart(uses: Sequence[SharedUse], name: str) -> None:
    """Accesses that share one port never fall into the same cycle."""
    for a, b in combinations(uses, 2):
        if a.nest is not b.nest:
            continue
        if fall_together((a.stage, a.op.when), (b.stage, b.op.when), a.ii, a.front, extents_of(a.nest)):
            raise PenstockError(
                code="unsupported-nest", what=f"two accesses to {name} fall into the same cycle", where=a.where,
                limit=f"stages {a.stage} and {b.stage} at II = {a.ii}",
                hint="use another unrolling for this layer",
            )  # fmt: skip


def check_order(load: SharedUse, stores: Sequence[SharedUse], name: str) -> bool:
    """Whether the load has to see what is stored in its own cycle."""
    wanted: set[bool] = set()
    for store in stores:
        if store.nest is not load.nest:
            continue
        forwards = _forwards(load, store, name)
        if (store.stage - load.stage) % load.ii == 0:
            wanted.add(forwards)
    if len(wanted) > 1:
        raise _refusal(load, name, "one store is to be seen at once and another not")
    return wanted == {True}


def _forwards(load: SharedUse, store: SharedUse, name: str) -> bool:
    assert isinstance(load.op, nest.LoadOp)
    assert isinstance(store.op, nest.StoreOp)
    late = store.stage - load.stage
    stored_first = store.op.is_before_in_block(load.op)
    if extents_of(load.nest).exclusive(load.op.when, store.op.when):
        stored_first = late < 0
    if stored_first and late > 0:
        raise _refusal(load, name, f"a word is loaded {late} stages before the same iteration stores it")
    if not stored_first and late < 0:
        raise _refusal(load, name, f"a word is stored {-late} stages before the same iteration loads what it was")
    if late < 0:
        lanes = tuple(vector_type(load.op.result).get_shape())
        addresses, extents = (store.op.address.data, load.op.address.data), extents_of(load.nest)
        distance = reuse_distance(*addresses, lanes, extents)
        if distance is not None and -late > load.ii * distance:
            limit = f"a word is stored again {-late - load.ii * distance} cycles before its load"
            at_most = reuse_distance(*addresses, lanes, Extents.of_trips(extents.most))
            if at_most is None or -late <= load.ii * at_most:
                limit += ", at the shortest lengths; a longer least one of --dim is possible"
            raise _refusal(load, name, limit)
    if late == 0:
        return stored_first
    return late > 0 and load.held and late % load.ii == 0


def _refusal(use: SharedUse, name: str, limit: str) -> PenstockError:
    return PenstockError(
        code="unsupported-nest", what=f"the schedule's order of accesses to {name} is not the nest's", where=use.where,
        limit=limit,
        hint="use another tiling for this layer; in a task program, give a name to the value that is stored, and fill "
        "an array in a loop of its own",
    )  # fmt: skip
