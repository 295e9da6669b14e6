"""Copies that only add or leave out dims of one element, so that no operation beside them has to loop over these."""

from __future__ import annotations

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.transforms.editor import shape_of, tensor_of
from penstock.compiler.transforms.generics import PARALLEL, build_generic, empty

UnitShape = tuple[int, ...]


def copy_units(source: SSAValue, shape: UnitShape, layer: str) -> tuple[Operation, Operation]:
    """`source` in a shape that differs in dims of one element: the copy, after the empty tensor that it fills."""
    have = shape_of(source)
    long, short = (have, shape) if len(have) > len(shape) else (shape, have)
    every = AffineMap.identity(len(long))
    some = AffineMap(len(long), 0, tuple(every.results[d] for d in places_of(short, long)))
    maps = [every, some] if long is have else [some, every]
    element = get_element_type_or_self(source.type)
    block = Block(arg_types=[element] * 2)
    block.add_op(linalg.YieldOp(block.args[0]))
    target = empty(tensor_of(shape, element))
    return target, build_generic([source], target.tensor, maps, [PARALLEL] * len(long), block, layer)


def differ_in_units(a: UnitShape, b: UnitShape) -> bool:
    """Whether one of the shapes is the other with further dims of one element, and dims that have elements at all."""
    long, short = (a, b) if len(a) > len(b) else (b, a)
    kept = places_of(short, long)
    return a != b and len(kept) == len(short) and all(long[d] == 1 for d in range(len(long)) if d not in kept)


def places_of(short: UnitShape, long: UnitShape) -> list[int]:
    """Where the dims of `short` stand in `long`, each as early as it can."""
    found: list[int] = []
    for place, size in enumerate(long):
        if len(found) < len(short) and short[len(found)] == size:
            found.append(place)
    return found
