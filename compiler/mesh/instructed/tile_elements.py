"""Which elements the tiles of a kernel have, and what the kernel answers, instance by instance in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.jit import Ints
from penstock.compiler.mesh.instructed.product import TileOperand, TileProduct
from penstock.compiler.mesh.program import MeshAccess


def places(access: MeshAccess, counters: Mapping[int, int]) -> tuple[Ints, Array]:
    """Which elements a tile has, and which of them are there."""
    within = np.ones(access.shape, bool)
    for bound in access.mask:
        within &= _grid(access.shape, bound.strides, bound.base.at(counters)) < 0
    return _grid(access.shape, access.strides, access.base.at(counters)), within


def _grid(shape: tuple[int, ...], strides: tuple[int, ...], base: int) -> Ints:
    found = np.full(shape, base, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        found += (np.arange(size) * stride).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return found


def tile_of(operand: TileOperand, flat: Array, counters: Mapping[int, int]) -> Array:
    where, within = places(operand.load.access, counters)
    tile = np.where(within, flat[np.where(within, where, 0)], np.int8(operand.load.other))
    return tile.T if operand.transposed else tile


def answer_of(product: TileProduct, tensors: Mapping[str, Array]) -> Array:
    """The tensor that is stored, with wrapping sums of 32 bits; no plan and no array has a part in it."""
    program, access = product.program, product.store.access
    left, right = (np.ravel(tensors[one.load.access.tensor]) for one in (product.left, product.right))
    found = np.zeros(program.tensors[access.tensor].elements, np.int32)
    for at in itertools.product(*(range(dim.extent) for dim in program.grid)):
        counters = {dim.counter: index for dim, index in zip(program.grid, at, strict=True)}
        total = np.zeros(access.shape, np.int32)
        for k in range(product.rounds):
            if product.loop is not None:
                counters[product.loop.counter] = k
            x, y = tile_of(product.left, left, counters), tile_of(product.right, right, counters)
            total += x.astype(np.int32) @ y.astype(np.int32)
        where, within = places(access, counters)
        found[where[within]] = total[within]
    return found
