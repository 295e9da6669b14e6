"""Linear and integer programs, as few lines as the allocators need: PuLP writes them down, HiGHS solves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any, Literal

import highspy
import numpy as np
import pulp  # pyright: ignore[reportMissingTypeStubs]
from highspy import cb
from numpy.typing import NDArray

from penstock.compiler.errors import PenstockError

RowSense = Literal["<=", ">=", "=="]
_SENSES: dict[RowSense, int] = {
    "<=": pulp.LpConstraintLE,
    ">=": pulp.LpConstraintGE,
    "==": pulp.LpConstraintEQ,
}
_LOOKS = 2e8
"""How often an integer program may ask whether to go on, times its variables and again its variables.

Half a minute or less of an idle processor. It is no clock, so a busy machine gives the answer of an idle one.
"""
_FEWEST_LOOKS = 16
_FEASIBLE = 2
"""What HiGHS says of values that are a solution; before it has one, all of them are 0."""
_PLAIN: Mapping[str, Any] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_detect_symmetry": False,
    "mip_allow_restart": False,
}
"""Branches and cuts alone: where no solution has to be proven the best, all else takes a third of the time."""
_LOOK: Any = cb.HighsCallbackType.kCallbackMipInterrupt


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


def _give_up_after(most: int) -> Callable[..., None]:
    """What HiGHS asks now and then, always at the same places of an integer program: whether it should stop."""
    asked = count(1)

    def ask(_kind: int, _message: str, _known: Any, answer: Any, _data: object) -> None:
        if next(asked) > most:
            answer.user_interrupt = True

    return ask


class _AtOnce(pulp.HiGHS):
    """Hands HiGHS a whole program: column by column and row by row, small ones take as long to write as to solve."""

    def buildSolverModel(self, lp: Any) -> None:
        columns: list[Any] = lp.variables()
        for number, column in enumerate(columns):
            column.index = number
        model: Any = highspy.HighsLp()
        model.num_col_ = len(columns)
        model.col_cost_ = np.array([lp.objective.get(column, 0.0) for column in columns], np.float64)
        model.col_lower_ = _bounds([column.lowBound for column in columns], -inf)
        model.col_upper_ = _bounds([column.upBound for column in columns], inf)
        whole = [column.cat == pulp.LpInteger for column in columns]
        if any(whole):
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            model.integrality_ = [kinds[one] for one in whole]
        rows: list[Any] = list(lp._constraints.values())
        starts, places, factors = [0], list[int](), list[float]()
        for number, row in enumerate(rows):
            row.index = number
            for column, factor in row.items():
                if factor:
                    places.append(column.index)
                    factors.append(factor)
            starts.append(len(places))
        model.num_row_ = len(rows)
        model.row_lower_ = _bounds([row.getLb() for row in rows], -inf)
        model.row_upper_ = _bounds([row.getUb() for row in rows], inf)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.num_col_, model.a_matrix_.num_row_ = len(columns), len(rows)
        model.a_matrix_.start_, model.a_matrix_.index_ = np.array(starts, np.int32), np.array(places, np.int32)
        model.a_matrix_.value_ = np.array(factors, np.float64)
        lp.solverModel.passModel(model)


def _bounds(known: Sequence[float | None], otherwise: float) -> NDArray[np.float64]:
    return np.array([otherwise if one is None else one for one in known], np.float64)


class LinearProgram:
    """Minimise a weighted sum of variables under rows of `sum(factor * variable) sense limit`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._problem: Any = pulp.LpProblem(name.replace(" ", "_"), pulp.LpMinimize)
        self._variables: list[Any] = []
        self._cost: list[float] = []
        self._lows: list[float] = []
        self._integer = False

    def variable(self, low: float = 0, high: float | None = None, *, whole: bool = False, cost: float = 0) -> int:
        """A new variable; the number is its name from here on."""
        number = len(self._variables)
        category = pulp.LpInteger if whole else pulp.LpContinuous
        self._variables.append(self._problem.add_variable(f"v{number}", low, high, cat=category))
        self._cost.append(cost)
        self._lows.append(low)
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

    def solve(
        self, effort: float = 1.0, gap: float = 1e-6, *, presolve: bool = True, plain: bool = False
    ) -> Solution | None:
        """The best solution found with so much effort; None where there is provably none.

        Effort is counted, not timed: equal programs have equal solutions on any machine, whatever else it does.

        HiGHS 1.15's presolve takes some integer programs that have solutions for infeasible, so nothing is infeasible
        before it has been solved without. Small programs may do without presolve from the start, and those whose gap is
        wide are `plain`: without what looks for better solutions than branches come to.
        """
        terms = [(v, c) for v, c in zip(self._variables, self._cost, strict=True) if c]
        self._problem.setObjective(pulp.LpAffineExpression(terms))
        most = max(round(effort * _LOOKS / max(len(self._variables), 1) ** 2), _FEWEST_LOOKS)
        for how in ("on", "off") if presolve else ("off",):
            solver: Any = _AtOnce(
                msg=False, threads=1, gapRel=gap, presolve=how,
                callbackTuple=(_give_up_after(most), None), callbacksToActivate=[_LOOK],
                **(_PLAIN if plain else {}),
            )  # fmt: skip
            self._problem.solve(solver)
            if self._problem.status != pulp.LpStatusInfeasible:
                break
        else:
            return None
        info: Any = self._problem.solverModel.getInfo()
        if info.primal_solution_status != _FEASIBLE:
            raise PenstockError(
                code="solver-failed", what=f"no solution of '{self._name}' was found",
                where=f"{len(self._variables)} variables", limit=f"the solver may look {most:,} times",
                hint="give it more effort, or a smaller problem",
            )  # fmt: skip
        # PuLP leaves out what no row and no cost speaks of
        values = [low if v.varValue is None else v.varValue for v, low in zip(self._variables, self._lows, strict=True)]
        objective = sum(c * v for c, v in zip(self._cost, values, strict=True))
        # what is optimal but for `gap` may be that much above the least
        bound = min(float(info.mip_dual_bound), objective) if self._integer else objective
        return Solution(values, objective, bound, self._problem.sol_status == pulp.LpSolutionOptimal)
