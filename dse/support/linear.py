"""Linear and integer programs, as few lines as the allocators need: PuLP writes them down, HiGHS solves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulp  # pyright: ignore[reportMissingTypeStubs]

from penstock.compiler.errors import PenstockError

RowSense = Literal["<=", ">=", "=="]
_SENSES: dict[RowSense, int] = {
    "<=": pulp.LpConstraintLE,
    ">=": pulp.LpConstraintGE,
    "==": pulp.LpConstraintEQ,
}
DEFAULT_SECONDS = 30.0


@dataclass(frozen=True)
class Solution:
    """Values by variable. `bound` is what no solution can be below; with `proven` the value is that."""

    values: Sequence[float]
    objective: float
    bound: float
    proven: bool

    def whole(self, variable: int) -> int:
        return round(self.values[variable])

    def chosen(self, variable: int) -> bool:
        return self.values[variable] > 0.5


class LinearProgram:
    """Minimise a weighted sum of variables under rows of `sum(factor * variable) sense limit`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._problem: Any = pulp.LpProblem(name.replace(" ", "_"), pulp.LpMinimize)
        self._variables: list[Any] = []
        self._cost: list[float] = []
        self._integer = False

    def variable(self, low: float = 0, high: float | None = None, *, whole: bool = False, cost: float = 0) -> int:
        """A new variable; the number is its name from here on."""
        number = len(self._variables)
        category = pulp.LpInteger if whole else pulp.LpContinuous
        self._variables.append(self._problem.add_variable(f"v{number}", low, high, cat=category))
        self._cost.append(cost)
        self._integer |= whole
        return number

    def choice(self, cost: float = 0) -> int:
        """A variable that is 0 or 1."""
        return self.variable(0, 1, whole=True, cost=cost)

    def add_cost(self, variable: int, cost: float) -> None:
        self._cost[variable] += cost

    def row(self, factors: Mapping[int, float], sense: RowSense, limit: float) -> None:
        terms = [(self._variables[v], float(f)) for v, f in factors.items() if f]
        row: Any = pulp.LpConstraint(pulp.LpAffineExpression(terms), sense=_SENSES[sense], rhs=limit)
        self._problem += row

    def solve(self, seconds: float = DEFAULT_SECONDS, gap: float = 1e-6, *, presolve: bool = True) -> Solution | None:
        """The best solution found in time; None where there is provably none.

        HiGHS 1.15's presolve takes some integer programs that have solutions for infeasible, so nothing is infeasible
        before it has been solved without. Small programs may do without presolve from the start.
        """
        terms = [(v, c) for v, c in zip(self._variables, self._cost, strict=True) if c]
        self._problem.setObjective(pulp.LpAffineExpression(terms))
        for how in ("on", "off") if presolve else ("off",):
            solver: Any = pulp.HiGHS(msg=False, timeLimit=seconds, threads=1, gapRel=gap, presolve=how)
            self._problem.solve(solver)
            if self._problem.status != pulp.LpStatusInfeasible:
                break
        else:
            return None
        values = [v.varValue for v in self._variables]
        if any(v is None for v in values):
            raise PenstockError(
                code="solver-failed", what=f"no solution of '{self._name}' within {seconds:g} s",
                where=f"{len(values)} variables", limit=str(pulp.LpStatus[self._problem.status]),
                hint="give it more time, or a smaller problem",
            )  # fmt: skip
        objective = sum(c * v for c, v in zip(self._cost, values, strict=True))
        info: Any = self._problem.solverModel.getInfo()
        bound = float(info.mip_dual_bound) if self._integer else objective
        proven = self._problem.sol_status == pulp.LpSolutionOptimal
        return Solution(values, objective, objective if proven else min(bound, objective), proven)
