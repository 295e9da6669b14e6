"""What tools said of kernels, by content: measured once, by whoever holds the claim, and cited by runs.

A claim is a lease: whoever dies while measuring blocks nobody for longer than it lasts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Integer, cast, delete, exists, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import Citations, NewProfile, ProfileKind, ProfileRow
from penstock.db.schema.tables import profile_citations, profile_claims, profile_counts, profiles

COUNTS = ("hits", "misses", "waits", "failures", "seconds_saved", "evicted")
"""What is counted for all runs together."""


class Profiles(Repository):
    def use(self, keys: Collection[str]) -> tuple[ProfileRow, ...]:
        """Those of the profiles that are kept, noted as used now."""
        # locked in one order, so that two readers of the same profiles never wait for each other
        order = select(profiles.c.key).where(profiles.c.key.in_(keys)).order_by(profiles.c.key)
        found = self.connection.execute(order.with_for_update(key_share=True)).scalars().all()
        if not found:
            return ()
        used = update(profiles).where(profiles.c.key.in_(found))
        return self._all(ProfileRow, used.values(used_at=func.now(), uses=profiles.c.uses + 1).returning(profiles))

    def put(self, made: Sequence[NewProfile]) -> None:
        """Keep profiles. What is there under the same key is of the same content, or of an older form."""
        for one in sorted(made, key=lambda one: one.key):
            row = asdict(one) | {"figures": dict(one.figures)}
            kept = insert(profiles).values(row)
            self.connection.execute(kept.on_conflict_do_update(index_elements=["key"], set_=row))

    def claim(self, keys: Collection[str], holder: str, label: str, lease_seconds: float) -> tuple[str, ...]:
        """Those of the keys that nobody else is measuring; they are the holder's until the lease ends.

        Asked again, as after a commit whose answer was lost, a holder finds its own.
        """
        lease = _ago(-lease_seconds)
        taken: list[str] = []
        for key in sorted(keys):
            row = {"key": key, "holder": holder, "label": label, "lease_until": lease}
            claim = insert(profile_claims).values(row)
            free = or_(profile_claims.c.lease_until < func.now(), profile_claims.c.holder == holder)
            claim = claim.on_conflict_do_update(index_elements=["key"], set_=row, where=free)
            taken += self.connection.execute(claim.returning(profile_claims.c.key)).scalars()
        return tuple(taken)

    def renew(self, holder: str, lease_seconds: float) -> None:
        lease = _ago(-lease_seconds)
        mine = profile_claims.c.holder == holder
        self.connection.execute(update(profile_claims).where(mine).values(lease_until=lease))

    def release(self, holder: str) -> None:
        self.connection.execute(delete(profile_claims).where(profile_claims.c.holder == holder))

    def claimed(self) -> int:
        """How many kernels are being measured now."""
        alive = select(func.count()).select_from(profile_claims).where(profile_claims.c.lease_until >= func.now())
        return self.connection.execute(alive).scalar_one()

    def cite(self, run_id: str, how: Mapping[str, str]) -> None:
        """A run's design rests on these profiles, which were a hit, a miss or a wait; the first word stands."""
        for key, word in sorted(how.items()):
            row = {"key": key, "run_id": run_id, "how": word}
            self.connection.execute(insert(profile_citations).values(row).on_conflict_do_nothing())

    def cited(self, run_id: str) -> dict[str, Citations]:
        """The profiles that a run cites, by how it came to them."""
        columns = (func.count().label("profiles"), func.sum(profiles.c.seconds).label("seconds"))
        counted = (
            select(profile_citations.c.how, *columns)
            .join_from(profile_citations, profiles, profiles.c.key == profile_citations.c.key)
            .where(profile_citations.c.run_id == run_id)
            .group_by(profile_citations.c.how)
        )
        return {one.how: one for one in self._all(Citations, counted)}

    def count(self, changes: Mapping[str, float]) -> None:
        """Add to the counts of all runs."""
        rows = [{"name": name, "value": value} for name, value in sorted(changes.items()) if value]
        if rows:
            added = insert(profile_counts)
            total = {"value": profile_counts.c.value + added.excluded.value}
            self.connection.execute(added.on_conflict_do_update(index_elements=["name"], set_=total), rows)

    def counts(self) -> dict[str, float]:
        """Every count by its name; 0 for what never happened."""
        found = self._pairs(select(profile_counts.c.name, profile_counts.c.value))
        return {name: found.get(name, 0.0) for name in COUNTS}

    def kinds(self) -> tuple[ProfileKind, ...]:
        """What is kept, tool by tool."""
        groups = (profiles.c.tool, profiles.c.evidence)
        statement = select(
            *groups,
            func.count().label("profiles"),
            cast(func.sum(profiles.c.uses), Integer).label("uses"),
            func.sum(profiles.c.seconds).label("seconds"),
        )
        return self._all(ProfileKind, statement.group_by(*groups).order_by(*groups))

    def evict(self, *, keep: int, unused_days: float) -> int:
        """Remove what was not used for longest, beyond `keep` profiles or `unused_days`; never what a run cites.

        Claims of workers that died go too, a while after they lapsed.
        """
        cited = exists().where(profile_citations.c.key == profiles.c.key)
        order = (profiles.c.used_at.desc(), profiles.c.key)
        beyond = select(profiles.c.key).order_by(*order).offset(keep).scalar_subquery()
        old = or_(profiles.c.used_at < _ago(unused_days * 86400), profiles.c.key.in_(beyond))
        # who uses a profile at this moment holds its row: it is passed over
        doomed = select(profiles.c.key).where(old, ~cited).with_for_update(skip_locked=True)
        keys = self.connection.execute(doomed).scalars().all()
        # locked by now, so that nobody can cite one any more; somebody may just have done so
        removed = delete(profiles).where(profiles.c.key.in_(keys), ~cited)
        gone = self.connection.execute(removed).rowcount if keys else 0
        self.count({"evicted": gone})
        self.connection.execute(delete(profile_claims).where(profile_claims.c.lease_until < _ago(3600)))
        return gone


def _ago(seconds: float) -> ColumnElement[Any]:
    return func.now() - text(f"interval '{float(seconds):.3f} seconds'")
