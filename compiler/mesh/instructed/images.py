"""What lies in the memory around an array: operands as the tiles that its ports read, sums as those that they write."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.mesh.instructed.programs import ArrayProgram, EngineKey, OperandPlan
from penstock.compiler.mesh.instructed.tile_elements import places, tile_of


def memories_of(program: ArrayProgram, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """What lies in every memory that is read, by the name of its port, as rows of bytes."""
    array, words = program.array, program.words
    found = {name: np.zeros((words[name], array.word), np.int8) for name in words if name.startswith("in_")}
    for key, image in _images(program, tensors).items():
        first = program.regions[key]
        found[program.memory(key)][first : first + len(image)] = image
    return found


def _images(program: ArrayProgram, tensors: Mapping[str, Array]) -> dict[EngineKey, Array]:
    """By reader, its words."""
    found: dict[EngineKey, Array] = {}
    for row in range(program.rows):
        cores = [(row, column) for column in range(1 if program.left.shared else program.columns)]
        found["rows", row, 0] = np.concatenate([_left(program, tensors, core) for core in cores])
    for column in range(program.columns):
        cores = [(row, column) for row in range(1 if program.right.shared else program.rows)]
        found["columns", 0, column] = np.concatenate([_right(program, tensors, core) for core in cores])
    return found


def _left(program: ArrayProgram, tensors: Mapping[str, Array], core: tuple[int, int]) -> Array:
    """Rows of `tall`, then depth, then the bytes of a step: row by row, `deep` each."""
    array = program.array
    tiles = _tiles(program, program.left, tensors, core)
    rows, _, deep = program.steps
    padded = np.zeros((len(tiles), rows * array.tall, deep * array.deep), np.int8)
    padded[:, : tiles.shape[1], : tiles.shape[2]] = tiles
    parts = padded.reshape(len(tiles), rows, array.tall, deep, array.deep).transpose(0, 1, 3, 2, 4)
    return _words(program, program.left, parts.reshape(len(tiles), -1))


def _right(program: ArrayProgram, tensors: Mapping[str, Array], core: tuple[int, int]) -> Array:
    array = program.array
    tiles = _tiles(program, program.right, tensors, core)
    _, columns, deep = program.steps
    padded = np.zeros((len(tiles), deep * array.deep, columns * array.wide), np.int8)
    padded[:, : tiles.shape[1], : tiles.shape[2]] = tiles
    parts = padded.reshape(len(tiles), deep, array.deep, columns, array.wide).transpose(0, 3, 1, 4, 2)
    return _words(program, program.right, parts.reshape(len(tiles), -1))


def _words(program: ArrayProgram, one: OperandPlan, flat: Array) -> Array:
    found = np.zeros((len(flat), one.words * program.array.word), np.int8)
    found[:, : flat.shape[1]] = flat
    return found.reshape(-1, program.array.word)


def _tiles(program: ArrayProgram, one: OperandPlan, tensors: Mapping[str, Array], core: tuple[int, int]) -> Array:
    """The tiles of a core that differ, in the order of the loops that they change with; what is not there is 0."""
    access = one.operand.load.access
    shape = access.shape[::-1] if one.operand.transposed else access.shape
    turns = [range(loop.count) if d else range(1) for loop, d in zip(program.loops, one.depends, strict=True)]
    flat = np.ravel(tensors[access.tensor]).astype(np.int8)
    found: list[Array] = []
    for at in itertools.product(*turns):
        counters, there = _counters(program, at, core)
        # beyond an edge a core computes what nobody stores
        found.append(tile_of(one.operand, flat, counters) if there else np.zeros(shape, np.int8))
    return np.stack(found)


def _counters(program: ArrayProgram, at: tuple[int, ...], core: tuple[int, int]) -> tuple[dict[int, int], bool]:
    """The kernel's counters in a turn of a core, and whether there is such an instance."""
    mapping, grid = program.plan.mapping, program.plan.facts.program.grid
    turn = {loop.dim: value for loop, value in zip(program.loops, at, strict=True)}
    place = program.place(*core)
    found: dict[int, int] = {}
    there = True
    for dim, axis in enumerate(grid):
        index = turn.get(dim, 0) * mapping.width(dim) + mapping.offset(dim, place)
        found[axis.counter] = index
        there = there and index < axis.extent
    if program.product.loop is not None:
        found[program.product.loop.counter] = turn.get(None, 0)
    return found, there


def stored_of(program: ArrayProgram, written: Mapping[str, Array]) -> Array:
    """The tensor that the kernel stores, from the memories that are written, by the names of their ports."""
    store, array = program.product.store, program.array
    size = program.plan.facts.program.tensors[store.access.tensor].elements
    flat = np.zeros(size, np.int32)
    rows, columns, _ = program.product.sizes
    tall, wide, _ = program.steps
    turns = [range(loop.count) if loop.dim is not None else range(1) for loop in program.loops]
    for column in range(program.columns):
        key = ("writers", 0, column)
        first = program.regions[key]
        own = written[program.memory(key)].reshape(-1, array.word)[first : first + program.sizes()[key]]
        words = np.ascontiguousarray(own.view(np.int8)).reshape(-1).view(np.int32)
        shape = (program.rows, program.waves, tall, wide, array.tall, array.wide)
        tiles = words.reshape(shape).transpose(0, 1, 2, 4, 3, 5)
        tiles = tiles.reshape(program.rows, program.waves, tall * array.tall, wide * array.wide)
        for row in range(program.rows):
            for wave, at in enumerate(itertools.product(*turns)):
                counters, there = _counters(program, at, (row, column))
                if there:
                    where, within = places(store.access, counters)
                    flat[where[within]] = tiles[row, wave, :rows, :columns][within]
    return flat
