"""How long a program takes on an array, to the cycle: loading it, running it, and what multipliers did meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.compiler.jit import Compiled
from penstock.compiler.mesh.instructed import clock
from penstock.compiler.mesh.instructed.array import LEVELS, LINK, ROOM, CoreArray
from penstock.compiler.mesh.instructed.loading import tokens_of
from penstock.compiler.mesh.instructed.programs import ArrayProgram, EngineFields

_COMPILED = Compiled(
    "array", ("penstock.compiler.mesh.instructed.clock",), "run_array",
    before_loading=30_000, before_compiling=300_000,  # steps of cores
)  # fmt: skip
MOST_CYCLES = 50_000_000
_BEGINS, _ENDS = 1, 1
"""Cycles between the last token and the first cycle of the engines, and from the last word to the end."""


@dataclass(frozen=True)
class ArrayRun:
    """`loading`: cycles in which the program is loaded; `cycles`: all of them, loading included."""

    cycles: int
    loading: int
    steps: int
    """Of all multipliers."""
    channel_words: int
    array: CoreArray

    @property
    def running(self) -> int:
        return self.cycles - self.loading

    @property
    def used_pct(self) -> float:
        """Of what all multipliers could do while the program ran."""
        return 100 * self.steps / (self.running * self.array.cores)


def simulate_program(program: ArrayProgram) -> ArrayRun:
    array, engines = program.array, program.engines
    cores, readers = array.cores, array.readers
    words = [0] * array.ports
    for (kind, row, column), fields in engines.items():
        if kind in ("rows", "columns", "writers"):
            words[array.port(kind, row, column)] = _port_words(fields)
    bodies, states = np.zeros((3 * cores, 6), np.int64), np.zeros((3 * cores, 4), np.int64)
    for way, kind in enumerate(("left", "right", "out")):
        for core in range(cores):
            fields = engines[kind, core // array.columns, core % array.columns]
            if fields[9]:
                bodies[way * cores + core] = [
                    fields[0] + 1, fields[16] + 1, fields[17], fields.get(24, 0) + 1, fields.get(25, 0), fields[8] + 1,
                ]  # fmt: skip
                states[way * cores + core][clock.RUNS] = 1
    first = engines["mac", 0, 0]
    counts = [first[level] + 1 for level in range(LEVELS)]
    steps = math.prod(first[at] + 1 for at in (10, 11, 12))
    mac = [steps, LEVELS, first[14], first[16], first[18], first[25], first[26], first[27], *counts]
    tokens, inner = np.zeros((cores, 6), np.int64), np.zeros((cores, 6), np.int64)
    for core in range(cores):
        tokens[core] = [first[25], 0, first[26], 0, first[27], 0]
        inner[core][1] = engines["mac", core // array.columns, core % array.columns][9]
    served = [port for channel in array.used_channels for part in reversed(array.clients(channel)) for port in part]
    channels = [array.channel_of(port) for port in range(array.ports)]
    busy = np.zeros(array.channels, np.int64)
    if steps * math.prod(counts) > MOST_CYCLES:
        raise _too_slow(program)
    work = program.rows * program.columns * steps * math.prod(counts)
    run = _COMPILED.function() if _COMPILED.pays(work) else clock.run_array
    ints = np.int64
    found = run(
        np.array([array.rows, array.columns, ROOM, LINK, LEVELS, array.ports, MOST_CYCLES], ints), np.array(mac, ints),
        np.array(channels, ints), np.array(served, ints), np.array(words, ints), bodies, states,
        np.zeros((2 * cores, 1), ints), np.zeros((readers + cores, 3), ints), tokens, inner,
        np.zeros((cores, LEVELS), ints), np.zeros(3 * cores, ints), np.zeros(array.ports, ints),
        np.zeros(array.channels, ints), busy,
    )  # fmt: skip
    if found < 0:
        raise _too_slow(program)
    loading = len(tokens_of(program)) + _BEGINS
    return ArrayRun(int(found) + loading + _ENDS, loading, int(inner[:, 5].sum()), int(busy.sum()), array)


def _too_slow(program: ArrayProgram) -> PenstockError:
    return PenstockError(
        code="array-too-slow", what=f"a program of more than {MOST_CYCLES:,} cycles is not simulated",
        where=program.product.program.name, hint="use smaller sizes, or a larger array",
    )  # fmt: skip


def _port_words(fields: EngineFields) -> int:
    if not fields[9]:
        return 0
    turns = math.prod(fields[level] + 1 for level in range(LEVELS))
    return turns * sum(fields[16 + 8 * slot + 1] + 1 for slot in range(fields[8] + 1))
