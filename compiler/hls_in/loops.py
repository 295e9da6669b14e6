"""What a loop's head says, and which loops of a body stay loops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.compiler.hls_in.bindings import unsupported
from penstock.compiler.hls_in.graph import KernelValue, LinearForm
from penstock.compiler.hls_in.pragmas import Pragma
from penstock.compiler.hls_in.syntax import UNBOUNDED, Tree

_LOOPS = (
    "give the loop constant bounds, and put the changing bound into a condition inside it, or say for the cycles how "
    "often it goes round: #pragma HLS LOOP_TRIPCOUNT max=N"
)
_WHILE = (
    "say for the cycles how often it goes round: #pragma HLS LOOP_TRIPCOUNT max=N, or write a for loop with constant "
    "bounds that a break ends"
)
MOST_UNROLLED = 65536
LOCK = "lock"
"""What the type of a variable ends with that takes hold of a block."""
_MOST_SHIFTS = 64
NAMING = ("array_partition", "array_reshape", "stream", "bind_storage", "resource", "dependence")
"""Pragmas that name a variable."""


@dataclass(frozen=True)
class Head:
    """for (variable = first; ...; variable += step), `trip` times."""

    variable: str
    declared: bool
    first: int
    step: int
    trip: int
    told: bool = False
    """A pragma says how often, not the source."""
    open: bool = False
    """It starts at a value that is no constant; `first` is 0 then."""
    begin: KernelValue | None = None
    """That value."""
    span: LinearForm | None = None
    """What lies between its ends, where counters of loops around decide it: for (j = 0; j < i; j++)."""
    shift: int = 0
    """By how many bits the variable moves up a turn (down, if below 0); `step` is 0 then."""
    sign: str = "<"
    """How it is compared with its bound."""
    bound: Tree | None = None
    """The bound, where a pragma says how often it goes round."""
    end: KernelValue | None = None
    """Its value."""

    def at(self, turn: int) -> int:
        """The variable in a turn, and after the last one."""
        if self.shift:
            return self.first << self.shift * turn if self.shift > 0 else self.first >> -self.shift * turn
        return self.first + turn * self.step


def head_of(
    tree: Tree, constant: Callable[[Tree], int | None], said: int | None = None,
    linear: Callable[[Tree], LinearForm | None] | None = None,
) -> Head:  # fmt: skip
    """A loop's head, if its bounds are constants where it stands or follow from counters (`linear`), or a pragma has
    `said` how often it goes round."""
    _, place, start, condition, step, _, _ = tree
    variable, declared, first_tree = start_of(start, place)
    first = constant(first_tree)
    condition = _bare(condition)
    if condition[0] == "name":
        condition = _is_not_zero(place, condition)
    if condition[0] == "binary" and condition[4][0] == UNBOUNDED:
        if said is None:
            raise unsupported(place, "a while loop without a bound", _WHILE)
        return Head(variable, declared, 0, 1, said, told=True)
    if condition[0] != "binary" or condition[2] not in ("<", "<=", ">", ">=", "!="):
        raise unsupported(place, "a loop whose condition is no comparison", _LOOPS)
    sign, left, right = condition[2], _bare(condition[3]), condition[4]
    if left != ["name", left[1], variable]:
        left, right = _bare(condition[4]), condition[3]
        sign = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}[sign]
        if left[:1] != ["name"] or left[2] != variable:
            raise unsupported(place, f"a loop that does not compare its own variable {variable!r}", _LOOPS)
    bound = constant(right)
    by = _step(step, variable, constant)
    if (bound is None or first is None) and by and linear is not None:
        span = _span(linear(first_tree), linear(right), sign, by)
        if span is not None:
            most = max(0, -(-span.range[1] // abs(by)))
            return Head(variable, declared, first or 0, by, most, told=True, open=first is None, span=span)
    if (bound is None or first is None) and said is not None and by:
        return Head(
            variable, declared, first or 0, by, said, told=True, open=first is None, sign=sign, bound=right
        )  # fmt: skip
    if by is None and first is not None and bound is not None:
        shift = _shift(step, variable, constant)
        trip = _shifted(first, bound, sign, shift)
        if trip is not None:
            return Head(variable, declared, first, 0, trip, shift=shift)
    if first is None or bound is None or by is None or by == 0:
        raise unsupported(place, f"a trip count of the loop over {variable!r} that is no constant", _LOOPS)
    span = bound - first if by > 0 else first - bound
    if sign in ("<=", ">="):
        span += 1
    if (sign in ("<", "<=") and by < 0) or (sign in (">", ">=") and by > 0):
        raise unsupported(
            place, f"a loop over {variable!r} that steps away from its bound", "let it step towards the bound"
        )
    return Head(variable, declared, first, by, max(0, -(-span // abs(by))))


def _span(first: LinearForm | None, bound: LinearForm | None, sign: str, by: int) -> LinearForm | None:
    """What a loop's variable has to go, if it goes towards its bound."""
    if first is None or bound is None or sign == "!=" or (sign in ("<", "<=")) != (by > 0):
        return None
    span = bound.plus(first, -1) if by > 0 else first.plus(bound, -1)
    return span.plus(LinearForm(1)) if sign in ("<=", ">=") else span


def start_of(start: Tree, place: list[Any]) -> tuple[str, bool, Tree]:
    if start[0] == "group" and len(start[2]) == 1 and start[2][0][0] == "declare" and start[2][0][4] is not None:
        return start[2][0][2], True, start[2][0][4]
    if start[0] == "expression":
        inner = _bare(start[2])
        if inner[0] == "binary" and inner[2] == "=" and _bare(inner[3])[0] == "name":
            return _bare(inner[3])[2], False, inner[4]
    raise unsupported(place, "a loop that does not set one variable", "write for (int i = 0; i < N; i++)")


def _step(step: Tree, variable: str, constant: Callable[[Tree], int | None]) -> int | None:
    step = _bare(step)
    if step[0] == "unary" and step[2] in ("++", "p++", "--", "p--") and _bare(step[3])[-1] == variable:
        return 1 if "+" in step[2] else -1
    if step[0] == "binary" and _bare(step[3])[0] == "name" and _bare(step[3])[2] == variable:
        if step[2] in ("+=", "-="):
            if _bare(step[4])[-1] == variable:
                return None  # it doubles
            by = constant(step[4])
            return by if by is None or step[2] == "+=" else -by
        if step[2] == "=":
            inner = _bare(step[4])
            if inner[0] == "binary" and inner[2] in ("+", "-") and _bare(inner[3])[-1] == variable:
                by = constant(inner[4])
                return by if by is None or inner[2] == "+" else -by
    return None


def _shift(step: Tree, variable: str, constant: Callable[[Tree], int | None]) -> int:
    """By how many bits a step moves the variable: k *= 4 by 2, k >>= 1 by -1; 0 where it does something else."""
    step = _bare(step)
    if step[0] not in ("binary", "operator") or not step[2].endswith("="):
        return 0
    sign, left, right = (step[2], *step[3]) if step[0] == "operator" else (step[2], step[3], step[4])
    if _bare(left)[0] != "name" or _bare(left)[2] != variable:
        return 0
    if sign == "=" and (inner := _bare(right))[0] == "binary" and _bare(inner[3])[-1] == variable:
        sign, right = inner[2] + "=", inner[4]
    if sign == "+=" and _bare(right)[0] == "name" and _bare(right)[2] == variable:
        return 1
    by = constant(right)
    if by is None or by < 1:
        return 0
    if sign in ("*=", "/=") and by & (by - 1) == 0:
        by = by.bit_length() - 1
        return by if sign == "*=" else -by
    return by if sign == "<<=" else -by if sign == ">>=" else 0


_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne,
}  # fmt: skip


def _shifted(first: int, bound: int, sign: str, shift: int) -> int | None:
    """How often a loop goes round whose variable is doubled or halved; None: it does not end."""
    if not shift or first < 0:
        return None
    value, trip = first, 0
    while _COMPARED[sign](value, bound):
        value, trip = value << shift if shift > 0 else value >> -shift, trip + 1
        if trip > _MOST_SHIFTS:
            return None
    return trip


def _is_not_zero(place: Tree, value: Tree) -> Tree:
    return ["binary", place, "!=", value, ["literal", place, 0, ["int", 32, True]], ["int", 1, False]]


def _bare(tree: Tree) -> Tree:
    while tree[0] == "cast":
        tree = tree[3]
    return tree


def pragma(found: list[Pragma], kind: str) -> Pragma | None:
    return next((p for p in found if p.kind == kind), None)
