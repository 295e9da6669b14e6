"""What two rungs of evidence said of one design: how far the weaker one is off, and what corrects it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import RungDifference, RungPair
from penstock.db.schema.tables import rung_pairs

NEWEST = 2000
"""Pairs of a family that are kept and read: older ones are of older models of hardware."""

_KEY = tuple(rung_pairs.primary_key.columns)
_NEWEST_FIRST = (rung_pairs.c.created_at.desc(), rung_pairs.c.design, *_KEY)
_FIELDS = tuple(rung_pairs.c[name] for name in RungPair.__dataclass_fields__)


class RungPairs(Repository):
    def add(self, run_id: str | None, pairs: Sequence[RungPair], *, keep: int = NEWEST) -> None:
        """Record pairs; what is known of the same design is replaced, and older ones than are read go."""
        for pair in sorted(pairs, key=lambda p: (p.model, p.design, p.weaker, p.stronger)):
            row = asdict(pair) | {"run_id": run_id, "created_at": func.now()}
            added = insert(rung_pairs).values(row)
            self.connection.execute(
                added.on_conflict_do_update(index_elements=list(rung_pairs.primary_key.columns), set_=row)
            )
        for family in sorted({pair.family for pair in pairs}):
            self._forget(family, keep)

    def _forget(self, family: str, keep: int) -> None:
        """All but the newest of a family, and what somebody else is writing at the moment."""
        old = select(*_KEY).where(rung_pairs.c.family == family).order_by(*_NEWEST_FIRST).offset(keep)
        free = select(*_KEY).where(tuple_(*_KEY).in_(old)).with_for_update(skip_locked=True)
        self.connection.execute(delete(rung_pairs).where(tuple_(*_KEY).in_(free)))

    def of_family(self, family: str) -> tuple[RungPair, ...]:
        """The newest pairs of one family of platforms, the oldest of these first."""
        statement = select(*_FIELDS).where(rung_pairs.c.family == family)
        newest = statement.order_by(*_NEWEST_FIRST).limit(NEWEST)
        return self._all(RungPair, newest)[::-1]

    def differences(self, run_id: str | None = None) -> tuple[RungDifference, ...]:
        """How far each rung is off the next that measured the same designs; of one run's designs, or of all."""
        ratio = rung_pairs.c.stronger_cycles / rung_pairs.c.weaker_cycles
        off = func.abs(rung_pairs.c.weaker_cycles / rung_pairs.c.stronger_cycles - 1)
        groups = (rung_pairs.c.family, rung_pairs.c.weaker, rung_pairs.c.stronger)
        statement = select(
            *groups,
            func.count().label("designs"),
            func.percentile_cont(0.5).within_group(ratio).label("median_ratio"),
            func.percentile_cont(0.5).within_group(off).label("typical"),
            func.max(off).label("worst"),
        )
        if run_id is not None:
            statement = statement.where(rung_pairs.c.run_id == run_id)
        return self._all(RungDifference, statement.group_by(*groups).order_by(*groups))
