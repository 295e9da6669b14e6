"""A tile program in NumPy: what it means, one instance after the other. Loads come from whoever `fetch` is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.mesh.program import (
    MeshAccess,
    MeshBound,
    MeshCompute,
    MeshLoad,
    MeshLoop,
    MeshStatement,
    MeshStore,
    TileProgram,
)

MeshArray = NDArray[Any]
MeshTensors = dict[str, MeshArray]
MeshCounters = Mapping[int, int]
MeshFetch = Callable[[MeshLoad, MeshCounters], MeshArray]

_PAIRS: dict[str, Callable[[MeshArray, MeshArray], MeshArray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "equal": np.equal, "not_equal": np.not_equal,
}  # fmt: skip
_SINGLES: dict[str, Callable[[MeshArray], MeshArray]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt, "abs": np.abs, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "neg": np.negative, "rsqrt": lambda x: 1 / np.sqrt(x), "trans": np.transpose,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


def numpy_type(dtype: str) -> np.dtype[Any]:
    """NumPy has no bfloat16: its values are kept in float32."""
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def _grid(shape: tuple[int, ...], strides: tuple[int, ...], base: int) -> NDArray[np.int64]:
    found = np.full(shape, base, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        found += (np.arange(size) * stride).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return found


def _within(bounds: Sequence[MeshBound], shape: tuple[int, ...], counters: MeshCounters) -> NDArray[np.bool_]:
    found = np.ones(shape, bool)
    for bound in bounds:
        found &= _grid(shape, bound.strides, bound.base.at(counters)) < 0
    return found


def places(access: MeshAccess, counters: MeshCounters) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which elements a tile has, and which of them are there."""
    within = _within(access.mask, access.shape, counters)
    return _grid(access.shape, access.strides, access.base.at(counters)), within


def take(tensors: Mapping[str, MeshArray], load: MeshLoad, counters: MeshCounters) -> MeshArray:
    where, within = places(load.access, counters)
    flat = tensors[load.access.tensor]
    return np.where(within, flat[np.where(within, where, 0)], flat.dtype.type(load.other))


def put(tensors: MeshTensors, store: MeshStore, counters: MeshCounters, value: MeshArray) -> None:
    where, within = places(store.access, counters)
    flat = tensors[store.access.tensor]
    flat[where[within]] = np.broadcast_to(value, store.access.shape).astype(flat.dtype)[within]


def run_instance(program: TileProgram, tensors: MeshTensors, counters: dict[int, int], fetch: MeshFetch) -> None:
    with np.errstate(all="ignore"):
        _run(program, program.body, tensors, counters, fetch, {})


def _run(
    program: TileProgram, body: Sequence[MeshStatement], tensors: MeshTensors, counters: dict[int, int],
    fetch: MeshFetch,
    values: dict[int, MeshArray],
) -> None:  # fmt: skip
    for statement in body:
        match statement:
            case MeshLoad():
                values[statement.result] = fetch(statement, counters)
            case MeshStore():
                put(tensors, statement, counters, values[statement.value])
            case MeshCompute():
                values[statement.result] = _computed(statement, [values[i] for i in statement.operands], counters)
            case MeshLoop():
                for row in statement.carried:
                    values[row.inside] = values[row.first]
                for trip in range(statement.extent.at(counters)):
                    counters[statement.counter] = trip
                    _run(program, statement.body, tensors, counters, fetch, values)
                    # all at once: one may be another's next value
                    for inside, last in [(row.inside, values[row.last]) for row in statement.carried]:
                        values[inside] = last
                for row in statement.carried:
                    values[row.after] = values[row.inside]


def _computed(statement: MeshCompute, operands: list[MeshArray], counters: MeshCounters) -> MeshArray:
    kind, setting, dtype = statement.kind, statement.setting, numpy_type(statement.dtype)
    bounds = [one for one in setting if isinstance(one, MeshBound)] if isinstance(setting, tuple) else []
    axes: tuple[int, ...] = ()
    if isinstance(setting, tuple):
        axes = tuple(one for one in setting if isinstance(one, int))
    if kind in _PAIRS:
        found = _PAIRS[kind](*operands)
    elif kind in _SINGLES:
        found = _SINGLES[kind](operands[0])
    elif kind == "dot":
        found = operands[0].astype(dtype) @ operands[1].astype(dtype)
    elif kind == "where":
        found = np.where(*operands)
    elif kind == "full":
        found = np.full(statement.shape, setting)
    elif kind == "reshape":
        found = operands[0].reshape(statement.shape)
    elif kind == "mask":
        found = _within(bounds, statement.shape, counters)
    elif kind == "index":
        found = _grid(statement.shape, bounds[0].strides, bounds[0].base.at(counters))
    elif kind == "cumsum":
        found = np.cumsum(operands[0], axis=min(axes))
    elif kind.startswith("reduce_"):
        reduce: Callable[..., MeshArray] = {"sum": np.sum, "max": np.max, "min": np.min}[kind.removeprefix("reduce_")]
        found = reduce(operands[0], axis=axes)
    else:
        found = operands[0]
    return np.asarray(found, dtype)


def interpret(program: TileProgram, tensors: MeshTensors) -> None:
    """Run all instances on flat tensors, in place."""
    for place in itertools.product(*(range(dim.extent) for dim in program.grid)):
        counters = {dim.counter: at for dim, at in zip(program.grid, place, strict=True)}
        run_instance(program, tensors, counters, lambda load, now: take(tensors, load, now))
