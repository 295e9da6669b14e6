"""Fixed ways to spread a kernel, as libraries have them: what a search is measured against, and holds among its own.

One dimension: every core has its own part of one operand, all others are broadcast to the whole array. Two: every
operand is broadcast along the one dim of the cores with which it does not change, a row or a column.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compiler.mesh.facts import ProgramFacts
from penstock.compiler.mesh.mapping import Mapping
from penstock.compiler.mesh.traffic import MeshShare


@dataclass(frozen=True)
class MeshTemplate:
    """`apart`: the load of which every core has its own part; none for rows and columns."""

    apart: int | None

    def shares(self, facts: ProgramFacts, mapping: Mapping) -> tuple[MeshShare, ...] | None:
        """How every load is shared; None where a mapping is not of this kind."""
        wide = [d for d, n in enumerate(mapping.cores) if n > 1]
        free = [tuple(d for d in wide if mapping.spatial[d] not in fact.depends) for fact in facts.loads]
        if self.apart is not None:
            others = [share for at, share in enumerate(free) if at != self.apart]
            if any(share != tuple(wide) for share in others):
                return None
            return tuple(() if at == self.apart else share for at, share in enumerate(free))
        if len(wide) > 1 and any(len(share) != 1 for share in free):
            return None
        return tuple(free) if len(set(free)) == min(len(free), 2) else None


ROWS_AND_COLUMNS = MeshTemplate(None)
_MOST_LOADS = 3


def templates_of(loads: int) -> list[MeshTemplate]:
    """Those of a kernel with so many loads; with more, the kernel is none that libraries have."""
    return [ROWS_AND_COLUMNS, *map(MeshTemplate, range(loads))] if 1 < loads <= _MOST_LOADS else []
