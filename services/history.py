"""What rungs of evidence said of earlier designs, in Postgres, for the runs of all workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import cast

from penstock.compiler.evidence import Evidence
from penstock.db import Database
from penstock.db.schema.records import RungPair
from penstock.dse.rungs.history import Pair


class SharedHistory:
    """The pairs of all runs; what this one adds carries its id."""

    def __init__(self, database: Database, run_id: str | None = None) -> None:
        self._database, self._run_id = database, run_id

    def pairs(self, family: str) -> Sequence[Pair]:
        return [pair_of(row) for row in self._database.run(lambda tx: tx.rung_pairs.of_family(family))]

    def add(self, pairs: Sequence[Pair]) -> None:
        rows = [RungPair(**asdict(pair)) for pair in pairs]
        self._database.run(lambda tx: tx.rung_pairs.add(self._run_id, rows))


def pair_of(row: RungPair) -> Pair:
    """A row as the search knows it."""
    return Pair(
        row.model, row.design, cast(Evidence, row.weaker), cast(Evidence, row.stronger), row.family, row.mix,
        row.weaker_cycles, row.stronger_cycles,
    )  # fmt: skip
