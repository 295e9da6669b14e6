"""What tools said of kernels, by content: a kernel that was measured once is not measured again."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from db.records import Json, Profile
from db.repositories.base import Repository
from db.tables import profiles


class Profiles(Repository):
    def get(self, key: str) -> Profile | None:
        return self._first(Profile, select(profiles).where(profiles.c.key == key))

    def put(self, *, key: str, platform: str, tool: str, evidence: str, figures: Json) -> Profile:
        """Keep a profile; the first one stays if two workers measured the same kernel."""
        row = {
            "key": key, "platform": platform, "tool": tool, "evidence": evidence, "figures": dict(figures),
        }  # fmt: skip
        self.connection.execute(insert(profiles).values(row).on_conflict_do_nothing())
        kept = self.get(key)
        assert kept is not None, "inserted or found in this transaction"
        return kept
