"""An array for given shapes of a kernel: grid, multipliers, scratchpads and links, within what a chip has.

Every array of the space is counted (`area.py`) and its time for every shape estimated with the best of all blocks
(`estimate.py`). The best few are planned and simulated to the cycle, and the fastest is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.description import machine_of, module_of_toml
from penstock.compiler.mesh.instructed.area import ArrayTable, area_of, areas_of
from penstock.compiler.mesh.instructed.array import WIDEST, CoreArray, sized_array
from penstock.compiler.mesh.instructed.estimate import EstimatedCycles, ProductShape, moved_bytes, product_steps
from penstock.compiler.mesh.instructed.planned import ArrayPlan, plan_product
from penstock.compiler.mesh.instructed.product import product_of
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.platforms.platform import Platform
from penstock.compiler.platforms.resources import RESOURCE_NAMES, Resources

SIDES = (1, 2, 3, 4, 6, 8, 12, 16)
MULTIPLIERS = (1, 2, 4, 8, 16)
DEPTHS = (1, 2, 4, 8)
SCRATCHPADS = tuple(1 << n for n in range(9, 20))
SIMULATED = 4
_CHUNK = 2048
NO_MEMORY = (4, 4)
"""Channels of a chip that has no memory of its own, and bytes a cycle: pins to whatever stands around it."""


@dataclass(frozen=True)
class DesignedArray:
    array: CoreArray
    scratchpad: int
    area: Resources
    estimated: float
    plans: Mapping[str, ArrayPlan]

    @property
    def cycles(self) -> int:
        return sum(plan.run.cycles for plan in self.plans.values())


@dataclass(frozen=True)
class ArrayDesign:
    """The arrays that were simulated, the fastest first; `considered` fit the limits, `estimated` were weighed."""

    found: tuple[DesignedArray, ...]
    considered: int
    limits: Resources
    bound: int
    reason: str

    @property
    def best(self) -> DesignedArray:
        return self.found[0]


def channels_of(platform: Platform, clock_mhz: float) -> tuple[int, int]:
    """Channels, and bytes that one carries in a cycle."""
    memory = platform.fastest_memory
    if memory is None:
        return NO_MEMORY
    rate = min(memory.port_bits / 8, memory.port_bits_a_cycle(clock_mhz) / 8)
    return memory.ports, 1 << int(math.log2(rate))


def design_array(
    shapes: Mapping[str, Sequence[TileProgram]], platform: Platform, limits: Mapping[str, int], top: int
) -> ArrayDesign:
    """`shapes`: by name, the kernel with all blocks."""
    clock = platform.clock_mhz
    channels, widest = channels_of(platform, clock)
    most = {**platform.limits.as_dict(), **{k: min(v, platform.limits.as_dict()[k]) for k, v in limits.items()}}
    arrays, sizes = _fitting(platform, most, channels, min(widest, WIDEST))
    if not arrays:
        raise PenstockError(
            code="nothing-fits", what="no array fits", where=platform.name,
            limit=", ".join(f"{name} {most[name]:,}" for name in RESOURCE_NAMES), hint="allow more",
        )  # fmt: skip
    products = {name: [ProductShape.of(product_of(p)) for p in programs] for name, programs in shapes.items()}
    bound, reason = _bound(products, most["dsp"], channels * widest)
    ranked = _ranked(arrays, products)
    if not ranked:
        raise PenstockError(
            code="nothing-fits", what="no array that fits holds a tile of every shape", where=platform.name,
            limit=f"{len(arrays):,} arrays", hint="leave blocks open, or give smaller ones",
        )  # fmt: skip

    def simulated(at: int, cycles: float) -> DesignedArray:
        array = arrays[at]
        machine = machine_of(module_of_toml(description_of(array, sizes[at], "array", platform.title), "array"))
        plans = {name: plan_product(rows, machine, array, top) for name, rows in shapes.items()}
        return DesignedArray(array, sizes[at], area_of(array, platform), cycles, plans)

    found = [simulated(at, cycles) for cycles, at in _distinct(ranked, arrays)[:SIMULATED]]
    found.sort(key=lambda one: (one.cycles, one.area.dsp, one.area.lut))
    # memory is given back where nothing ends later
    best = found[0]
    same = [at for at, one in enumerate(arrays) if _form(one) == _form(best.array) and sizes[at] < best.scratchpad]
    for at in sorted(same, key=lambda at: -sizes[at]):
        smaller = simulated(at, best.estimated)
        if smaller.cycles > best.cycles:
            break
        best = smaller
    return ArrayDesign((best, *found[1:]), len(arrays), Resources(**most), bound, reason)


def _fitting(
    platform: Platform, most: Mapping[str, int], channels: int, widest: int
) -> tuple[list[CoreArray], list[int]]:
    """All arrays of the space within the limits; of equal ones the smallest scratchpad."""
    found: dict[CoreArray, int] = {}
    mats = list(itertools.product(MULTIPLIERS, MULTIPLIERS, DEPTHS))
    words = [1 << n for n in range(widest.bit_length())]
    for grid in itertools.product(SIDES, SIDES):
        for tall, wide, deep in mats:
            if grid[0] * grid[1] * tall * wide * deep > most["dsp"]:
                continue
            for word in words:
                if word % (tall * deep) or word % (wide * deep) or tall * wide * 4 % word:
                    continue
                for size in SCRATCHPADS:
                    one = sized_array(grid, (tall, wide, deep), word, size, channels, platform.clock_mhz)
                    if one is not None:
                        found.setdefault(one, size)
    if not found:
        return [], []
    arrays = list(found)
    areas = areas_of(ArrayTable.of(arrays), platform)
    fits = np.all([areas[name] <= most[name] for name in RESOURCE_NAMES], axis=0)
    kept = [array for array, fit in zip(arrays, fits, strict=True) if fit]
    return kept, [found[array] for array in kept]


def _ranked(arrays: list[CoreArray], products: Mapping[str, Sequence[ProductShape]]) -> list[tuple[float, int]]:
    """Those that are worth simulating, by their estimate: those with more multipliers are looked at first."""
    steps = sum(min(product_steps(shape.product) for shape in shapes) for shapes in products.values())
    order = sorted(range(len(arrays)), key=lambda at: -arrays[at].multipliers)
    best: list[tuple[float, int]] = []
    for start in range(0, len(order), _CHUNK):
        chunk = order[start : start + _CHUNK]
        if len(best) >= SIMULATED and steps / arrays[chunk[0]].multipliers > best[SIMULATED - 1][0]:
            break  # what has as few multipliers is slower, however well they are fed
        table = ArrayTable.of([arrays[at] for at in chunk])
        total: EstimatedCycles = np.zeros(len(chunk))
        for shapes in products.values():
            total += np.minimum.reduce([shape.cycles(table) for shape in shapes])
        best += [(float(total[i]), at) for i, at in enumerate(chunk) if np.isfinite(total[i])]
        best.sort(key=lambda row: (row[0], arrays[row[1]].multipliers, -arrays[row[1]].left))
        best = best[: 32 * SIMULATED]
    return best


def _distinct(ranked: list[tuple[float, int]], arrays: list[CoreArray]) -> list[tuple[float, int]]:
    """Of those that differ in their memories only, the one with the largest: tiles come ahead as far as they reach."""
    found = dict[tuple[int, ...], tuple[float, int]]()
    for cycles, at in ranked:
        found.setdefault(_form(arrays[at]), (cycles, at))
    return list(found.values())


def _form(array: CoreArray) -> tuple[int, ...]:
    return array.rows, array.columns, array.tall, array.wide, array.deep, array.word


def _bound(products: Mapping[str, Sequence[ProductShape]], most: int, rate: int) -> tuple[int, str]:
    """Cycles that no array within the limits is below: products on all multipliers, or every tensor moved once."""
    work = moved = total = 0
    for shapes in products.values():
        steps = min(-(-product_steps(shape.product) // max(most, 1)) for shape in shapes)
        words = min(-(-moved_bytes(shape.product) // rate) for shape in shapes)
        work, moved, total = work + steps, moved + words, total + max(steps, words)
    return total, "all multipliers at work" if work >= moved else "every tensor moved once"


def description_of(array: CoreArray, scratchpad: int, name: str, title: str) -> str:
    """The array as a mesh's description, which `--on` takes."""
    link = f"bandwidth = {float(array.word)}\nstart = 1.0\n"
    open_links = "".join(
        f'\n[[network]]\nname = "{way}"\nof = "l1"\nto = "l1"\nmap = "(d0, d1) -> ({to})"\n{link}open = true\n'
        for way, to in (("noc_v", "d0 + 1, d1"), ("noc_h", "d0, d1 + 1"), ("noc_v_back", "d0 - 1, d1"),
                        ("noc_h_back", "d0, d1 - 1"))
    )  # fmt: skip
    row = array.rows
    return f"""# Found by penstock array --design.
name = "{name}"
title = "{array.rows} x {array.columns} int8 cores on {title}"
clock_mhz = {array.clock_mhz}

[dims]
x = {array.rows}
y = {array.columns}
d = {array.channels}

[[unit]]
name = "mat"
kind = "mat"
shape = [{array.tall}, {array.wide}, {array.deep}]
cycles = 1.0

[[unit]]
name = "vec"
kind = "vec"
shape = [{max(array.tall, array.wide)}]
cycles = 1.0

[[core]]
name = "cores"
over = ["x", "y"]
units = {{ mat = 1, vec = 1 }}

[[memory]]
name = "l1"
over = ["x", "y"]
bytes = {scratchpad}
bandwidth = {2.0 * array.word}

[[memory]]
name = "dram"
over = ["d"]
bytes = {1 << 28}
bandwidth = {float(array.word)}
interleaved = true

[[mux]]
name = "core_to_l1"
of = "cores"
to = "l1"
map = "(d0, d1) -> (d0, d1)"
{open_links}
[[network]]
name = "to_dram"
of = "dram"
to = "l1"
map = "(d0) -> (d0 mod {row}, 0)"
{link}"""
