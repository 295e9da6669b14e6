"""What an expression of a kernel is while it is read: known numbers, affine indices, pointers, masks, tiles of data."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compiler.mesh.program import MeshBound, Strides
from penstock.compiler.tasks.affine import Affine

Shape = tuple[int, ...]


@dataclass(frozen=True)
class KernelIndex:
    """Element p is `base` + strides · p; of the tensor `pointer`, if it is an address."""

    base: Affine
    strides: Strides = ()
    shape: Shape = ()
    pointer: str = ""


@dataclass(frozen=True)
class KernelMask:
    bounds: tuple[MeshBound, ...]
    shape: Shape


@dataclass(frozen=True)
class Data:
    """A tile that is known in a run only."""

    id: int
    shape: Shape
    dtype: str


@dataclass(frozen=True)
class Dtype:
    name: str


@dataclass(frozen=True)
class Name:
    """A dotted name that stands for a function or a module."""

    path: str


TritonValue = (
    int | float | bool | str | None | KernelIndex | KernelMask | Data | Dtype | Name | tuple["TritonValue", ...]
)


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """The shape of an operation on both; None if there is none."""
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    if any(a != b and 1 not in (a, b) for a, b in zip(left, right, strict=True)):
        return None
    return tuple(max(a, b) for a, b in zip(left, right, strict=True))


def spread(strides: Strides, shape: Shape, to: Shape) -> Strides:
    """The strides along a larger shape: nothing moves along what is repeated."""
    missing = len(to) - len(shape)
    kept = tuple(s if size == wide else 0 for s, size, wide in zip(strides, shape, to[missing:], strict=True))
    return (0,) * missing + kept


def widened(index: KernelIndex, to: Shape) -> KernelIndex:
    if index.shape == to:
        return index
    return KernelIndex(index.base, spread(index.strides, index.shape, to), to, index.pointer)


def widened_mask(mask: KernelMask, to: Shape) -> KernelMask:
    if mask.shape == to:
        return mask
    return KernelMask(tuple(MeshBound(b.base, spread(b.strides, mask.shape, to)) for b in mask.bounds), to)


def picked(strides: Strides, shape: Shape, keys: tuple[bool, ...]) -> tuple[Strides, Shape]:
    """`x[:, None]`: a key that is true takes the next dim, one that is false puts a dim of 1."""
    waiting = iter(zip(strides, shape, strict=True))
    pairs = [next(waiting) if key else (0, 1) for key in keys]
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
