"""Random tokens for a body, and what its task answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.tasks.interpret import answers_of, stored_as
from penstock.compiler.tasks.kinds import TileKind, bits_of, is_float
from penstock.profiling.injected.contract import BodyCase

_CLOSE = 1e-3


@dataclass(frozen=True)
class BodyTokens:
    """By channel, of several runs one after the other: a row of lanes a token."""

    given: Mapping[str, Array]
    wanted: Mapping[str, Array]


def draw(case: BodyCase, runs: int) -> BodyTokens:
    """The same in every process."""
    generator = np.random.default_rng(7)
    body, channels = case.body, case.network.channels
    given: dict[str, list[Array]] = {}
    wanted: dict[str, list[Array]] = {}
    reads = dict(zip(body.channels, [count for _, count in body.reads], strict=False))
    for _ in range(runs):
        drawn = {name: _drawn(channels[name].kind, count, generator) for name, count in reads.items()}
        for name, answers in answers_of(case.instance, drawn).items():
            wanted.setdefault(name, []).append(np.stack([np.asarray(one).reshape(-1) for one in answers]))
        for name, rows in drawn.items():
            given.setdefault(name, []).append(np.stack([np.asarray(one).reshape(-1) for one in rows]))
    joined: Sequence[dict[str, Array]] = [{n: np.concatenate(x) for n, x in side.items()} for side in (given, wanted)]
    return BodyTokens(*joined)


def _drawn(kind: TileKind, count: int, generator: np.random.Generator) -> list[Array]:
    shape = (count, *kind.shape)
    if is_float(kind.dtype):
        return list(generator.standard_normal(shape).astype(stored_as(kind.dtype)))
    bits = bits_of(kind.dtype)
    if bits == 1:
        return list(generator.integers(0, 2, shape).astype(bool))
    return list(generator.integers(-(1 << (bits - 1)), 1 << (bits - 1), shape).astype(stored_as(kind.dtype)))


def first_difference(found: Array, wanted: Array) -> int | None:
    """The first token that is not as it should be; floats within a thousandth of the largest number."""
    found = found.reshape(wanted.shape)
    if wanted.dtype.kind != "f":
        wrong = found.astype(np.int64) != wanted.astype(np.int64)
    else:
        wrong = ~(np.abs(found - wanted) <= _CLOSE * max(1.0, float(np.max(np.abs(wanted)))))
    rows = np.flatnonzero(wrong.any(axis=1))
    return int(rows[0]) if rows.size else None
