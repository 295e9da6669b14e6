"""Writes the statements of a kernel while it is read, and knows every counter: which there are, which were split."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.compiler.mesh.program import (
    MeshAccess,
    MeshBound,
    MeshCompute,
    MeshLoad,
    MeshLoop,
    MeshStatement,
    MeshStore,
)
from penstock.compiler.mesh.triton.values import Data, Shape
from penstock.compiler.tasks.affine import Affine


@dataclass
class Emitter:
    trips: dict[int, int] = field(default_factory=dict[int, int])
    splits: dict[int, tuple[int, int, int]] = field(default_factory=dict[int, tuple[int, int, int]])
    """A counter that was divided: the counters of the quotient and of the remainder, and by what."""
    grid: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    shapes: dict[int, tuple[Shape, str]] = field(default_factory=dict[int, tuple[Shape, str]])
    body: list[MeshStatement] = field(default_factory=list[MeshStatement])

    def counter(self, trips: int, name: str = "") -> int:
        new = len(self.trips)
        self.trips[new] = trips
        if name:
            self.grid.append((new, name))
        return new

    def data(self, shape: Shape, dtype: str) -> Data:
        new = len(self.shapes)
        self.shapes[new] = (shape, dtype)
        return Data(new, shape, dtype)

    def compute(
        self, kind: str, operands: tuple[Data, ...], shape: Shape, dtype: str,
        setting: float | int | str | tuple[int, ...] | tuple[MeshBound, ...] | None = None, inner: int = 1,
    ) -> Data:  # fmt: skip
        made = self.data(shape, dtype)
        ids = tuple(operand.id for operand in operands)
        self.body.append(MeshCompute(made.id, kind, ids, shape, dtype, setting, inner))
        return made

    def resolved(self, value: Affine) -> Affine:
        """In counters that are not split any further."""
        while any(k in self.splits for k, _ in value.terms):
            found = Affine(value.const)
            for k, factor in value.terms:
                if k in self.splits:
                    high, low, by = self.splits[k]
                    found = found.plus(Affine(0, ((high, factor * by),))).plus(Affine(0, ((low, factor),)))
                else:
                    found = found.plus(Affine(0, ((k, factor),)))
            value = found
        return value

    def extremes(self, value: Affine) -> tuple[int, int]:
        return self.resolved(value).extremes(self.trips)

    def divided(self, value: Affine, by: int) -> tuple[Affine, Affine] | None:
        """Quotient and remainder as affine values, if they are; a grid's counter is split for it where that divides."""
        value = self.resolved(value)
        for _ in range(len(self.trips) + 1):
            whole = Affine(value.const // by * by, tuple((k, f) for k, f in value.terms if f % by == 0))
            rest = value.plus(whole, -1)
            low, high = rest.extremes(self.trips)
            if low // by == high // by:
                below = low // by
                return Affine(whole.const // by + below, tuple((k, f // by) for k, f in whole.terms)), rest.plus(
                    Affine(-below * by)
                )
            names = dict(self.grid)
            for k, factor in rest.terms:
                part = by // factor if factor > 0 and by % factor == 0 else 0
                if k in names and 1 < part < self.trips[k] and self.trips[k] % part == 0:
                    self._split(k, part, names[k])
                    value = self.resolved(value)
                    break
            else:
                return None
        return None

    def _split(self, counter: int, by: int, name: str) -> None:
        high, low = self.counter(self.trips[counter] // by), self.counter(by)
        self.splits[counter] = (high, low, by)
        at = self.grid.index((counter, name))
        self.grid[at : at + 1] = [(high, f"{name}.{by}"), (low, f"{name}%{by}")]

    def finished(self, body: list[MeshStatement]) -> tuple[MeshStatement, ...]:
        """All statements in counters that are not split."""
        return tuple(self._finish(statement) for statement in body)

    def _bounds(self, bounds: tuple[MeshBound, ...]) -> tuple[MeshBound, ...]:
        """Those that can fail at all."""
        found = (replace(bound, base=self.resolved(bound.base)) for bound in bounds)
        return tuple(bound for bound in dict.fromkeys(found))

    def can_fail(self, bound: MeshBound, shape: Shape) -> bool:
        reach = sum(max(0, s * (n - 1)) for s, n in zip(bound.strides, shape, strict=True))
        return self.extremes(bound.base)[1] + reach >= 0

    def _access(self, access: MeshAccess) -> MeshAccess:
        mask = tuple(b for b in self._bounds(access.mask) if self.can_fail(b, access.shape))
        return replace(access, base=self.resolved(access.base), mask=mask)

    def _finish(self, statement: MeshStatement) -> MeshStatement:
        match statement:
            case MeshLoad() | MeshStore():
                return replace(statement, access=self._access(statement.access))
            case MeshCompute(kind="mask" | "index"):
                assert isinstance(statement.setting, tuple)
                bounds = tuple(b for b in statement.setting if isinstance(b, MeshBound))
                return replace(statement, setting=self._bounds(bounds))
            case MeshLoop():
                return replace(
                    statement, extent=self.resolved(statement.extent), body=self.finished(list(statement.body))
                )
            case _:
                return statement
