"""Small helpers on xDSL's affine maps that the dialects, analyses and backends share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)


def evaluate_map(affine_map: AffineMap, values: Sequence[int]) -> tuple[int, ...]:
    """The map's results for plain integers in its dims."""
    return tuple(expression.eval(list(values), []) for expression in affine_map.results)


def linear_sum(terms: Sequence[tuple[int, int]]) -> AffineExpr:
    """`sum(coefficient * d_position)` over (position, coefficient) pairs, as short as it can be written."""
    expression: AffineExpr | None = None
    for position, coefficient in terms:
        dim: AffineExpr = AffineDimExpr(position)
        term = dim if coefficient == 1 else dim * coefficient
        expression = term if expression is None else expression + term
    return AffineConstantExpr(0) if expression is None else expression


def coefficients(expression: AffineExpr, num_dims: int) -> tuple[int, ...]:
    """The coefficient of each dim in a linear expression."""
    return linear_form(expression, num_dims)[0]


def linear_form(expression: AffineExpr, num_dims: int) -> tuple[tuple[int, ...], int]:
    """The coefficient of each dim in a linear expression, and what is added to them."""
    factors = [0] * num_dims
    offset = _add_terms(expression, 1, factors)
    return tuple(factors), offset


def _add_terms(expression: AffineExpr, times: int, factors: list[int]) -> int:
    """Add an expression's coefficients, so many times; gives its constant part."""
    match expression:
        case AffineDimExpr():
            factors[expression.position] += times
            return 0
        case AffineConstantExpr():
            return times * expression.value
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, left, right):
            return _add_terms(left, times, factors) + _add_terms(right, times, factors)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, left, AffineConstantExpr() as factor):
            return _add_terms(left, times * factor.value, factors)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, AffineConstantExpr() as factor, right):
            return _add_terms(right, times * factor.value, factors)
        case _:  # not linear: what each dim's first step adds
            origin = expression.eval([0] * len(factors), [])
            for dim in range(len(factors)):
                factors[dim] += times * (expression.eval([int(i == dim) for i in range(len(factors))], []) - origin)
            return times * origin


def projected_dims(affine_map: AffineMap) -> tuple[int | None, ...]:
    """Which dim each result of a projected permutation is; None for a constant."""
    return tuple(e.position if isinstance(e, AffineDimExpr) else None for e in affine_map.results)
