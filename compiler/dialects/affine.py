"""Small helpers on xDSL's affine maps that the dialects, analyses and backends share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap


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
    origin = expression.eval([0] * num_dims, [])
    return tuple(expression.eval([int(i == dim) for i in range(num_dims)], []) - origin for dim in range(num_dims))


def projected_dims(affine_map: AffineMap) -> tuple[int | None, ...]:
    """Which dim each result of a projected permutation is; None for a constant."""
    return tuple(e.position if isinstance(e, AffineDimExpr) else None for e in affine_map.results)
