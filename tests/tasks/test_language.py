"""What expressions, loops, conditions and functions mean: the same in the text, in streams and in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.task_answers import Array
from penstock.compiler.design import Design
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.layout import pack, unpack
from penstock.compiler.transforms.lower_tasks import write_instances
from tests.tasks.programs import answered, drawn, read

PROGRAM = """
def twice(x):
    y = x + x
    return y

@program
def p(A: int8[4, 8], B: int32[4, 8]):
    s = Stream[int8, 8]

    @task
    def load():
        for i in range(4):
            s.put(A[i, :])

    @task
    def work():
{body}
"""
IF_ON_VALUES = """total: int32 = 0
if x[0] > x[1]:
    total = x[0]
    if x[2] > 0:
        total += 1
elif x[0] < -9:
    total -= 1
else:
    half = x[1]
    total = half + half
B[i, :] = 0 * x + total"""


def _by_sides(x: Array) -> Array:
    """What `IF_ON_VALUES` leaves in its total."""
    first = np.where(x[2] > 0, x[0] + 1, x[0])
    return np.where(x[0] > x[1], first, np.where(x[0] < -9, -1, 2 * x[1]))


def _chosen(rows: Array, at: Array) -> Array:
    """Of each row the element at its index, 0 where there is none."""
    inside = (at >= 0) & (at < rows.shape[1])
    return np.where(inside, rows[np.arange(len(rows)), np.where(inside, at, 0)], 0)


LINES: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "B[i, :] = int32(x)": ("cast", lambda a: a),
    "B[i, :] = x * x - 3": ("arithmetic", lambda a: a * a - 3),
    "B[i, :] = where(x > 0, x, -x)": ("where", lambda a: abs(a)),
    "B[i, :] = where(x > -9 and x < 50 and x != 7, x, 0)": (
        "three conditions", lambda a: np.where((a > -9) & (a < 50) & (a != 7), a, 0)
    ),
    "B[i, :] = max(x, min(x, 5) >> 1)": ("extremes", lambda a: np.maximum(a, np.minimum(a, 5) >> 1)),
    "B[i, :] = sum(x) + x[0]": ("sum", lambda a: np.repeat(a.sum(1, keepdims=True) + a[:, :1], 8, axis=1)),
    "B[i, :] = stack([x[7 - n] for n in range(8)])": ("order", lambda a: a[:, ::-1]),
    "B[i, :] = twice(x) + twice(1)": ("function", lambda a: 2 * a + 2),
    "B[i, :] = stack([matmul(x[0:4], x[4:8])] * 8) if False else broadcast(matmul(x[0:4], x[4:8]), 8)": (
        "matmul", lambda a: np.repeat((a[:, :4] * a[:, 4:]).sum(1, keepdims=True), 8, axis=1)
    ),
    "B[i, :] = x if i == 2 else 0 * x": ("choice", lambda a: np.where(np.arange(4)[:, None] == 2, a, 0)),
    "y: int4 = 0\nB[i, :] = y + (x if i % 2 == 0 else -x)": (
        "rounds", lambda a: np.where(np.arange(4)[:, None] % 2 == 0, a, -a)
    ),
    "z = int4(x[3])\nB[i, :] = z + 0 * x": (
        "narrow", lambda a: np.repeat((((a[:, 3] + 8) & 15) - 8)[:, None], 8, axis=1)
    ),
    "B[i, :] = x if x[0] > x[1] else -x": (
        "choice of values", lambda a: np.where(a[:, :1] > a[:, 1:2], a, -a)
    ),
    "u, v = x[0:2]\nB[i, :] = 0 * x + (u - 2 * v)": (
        "a tile apart", lambda a: np.repeat(a[:, :1] - 2 * a[:, 1:2], 8, axis=1)
    ),
    "u: int32 = x[0]\nv: int32 = x[1]\nu, v = v, u + v\nB[i, :] = 0 * x + (u - 3 * v)": (
        "all before any", lambda a: np.repeat(a[:, 1:2] - 3 * (a[:, :1] + a[:, 1:2]), 8, axis=1)
    ),
    "u: int32 = x[0]\nold = [u, x[1]]\nu = 7\nfor y in old:\n    u += y\nB[i, :] = 0 * x + (u - 3 * old[0])": (
        "a list of values", lambda a: np.repeat(7 + a[:, 1:2] - 2 * a[:, :1], 8, axis=1)
    ),
    "y: int32 = 0\ny = x[x[0] & 7] - x[(x[1] >> 3) + 2]\nB[i, :] = 0 * x + y": (
        "an element chosen by a value", lambda a: np.repeat((_chosen(a, a[:, 0] & 7) - _chosen(a, (a[:, 1] >> 3) + 2))
                                                            [:, None], 8, axis=1)
    ),
    IF_ON_VALUES: ("if on values", lambda a: np.repeat(_by_sides(a.T)[:, None], 8, axis=1)),
}  # fmt: skip


@pytest.mark.parametrize("lines", LINES, ids=[name for name, _ in LINES.values()])
def test_what_a_line_means(lines: str) -> None:
    body = ["for i in range(4):", "    x = s.get()", *(f"    {line}" for line in lines.splitlines())]
    both(PROGRAM.format(body="\n".join(" " * 8 + line for line in body)), LINES[lines][1])


def test_arrays_and_loops_that_follow_each_other() -> None:
    """What is kept from one loop to the next, and written in turns of another order."""
    body = """
        kept: int32[4, 8] = 0
        for i in range(4):
            kept[i, :] = s.get()
        for i in range(4):
            for j in range(2):
                kept[i, :] = kept[i, :] + 1
            B[i, :] = kept[3 - i, :] if i < 2 else kept[i, :]
"""

    def wanted(a: Array) -> Array:
        return np.stack([a[3], a[2], a[2] + 2, a[3] + 2])

    both(PROGRAM.format(body=body), wanted)


def test_an_array_whose_places_are_known_moves_on_in_a_round() -> None:
    """A delay line by rows, filled anew at first, read as a whole, in part and by a value, and stored into where a
    condition holds."""
    body = """
        line: int32[3, 2] = 5
        for i in range(4):
            x = s.get()
            for k in unroll(2, 0, -1):
                line[k, :] = line[k - 1, :]
            if i >= 1:
                line[0, 0] = x[0]
            line[0, 1] = x[1] + line[2, 0]
            B[i, :] = 0 * x + (sum(line) + 10 * line[1, x[2] & 1])
"""

    def wanted(a: Array) -> Array:
        line, rows = np.full((3, 2), 5), list[Array]()
        for i, x in enumerate(a):
            line[1:] = line[:-1].copy()
            line[0, 0] = x[0] if i else line[0, 0]
            line[0, 1] = x[1] + line[2, 0]
            rows.append(0 * x + (line.sum() + 10 * line[1, x[2] & 1]))
        return np.stack(rows)

    both(PROGRAM.format(body=body), wanted)


def test_a_memory_whose_index_is_a_value() -> None:
    """Read, changed and stored in one round; of two dims; only where a value says so; and a table of five."""
    body = """
        table: int32[5] = (3, 1, 4, 1, 5)
        seen: int32[3, 6] = 1
        for i in range(4):
            x = s.get()
            seen[2, x[0] & 7] += 10
            if x[1] > 0:
                seen[x[0] & 3, 1] = table[x[2] & 7]
            B[i, :] = 0 * x + (100 * seen[1, 1] + seen[2, x[0] & 7])
"""

    def wanted(a: Array) -> Array:
        table, seen, rows = [3, 1, 4, 1, 5, 0, 0, 0], np.ones((3, 6), np.int32), list[Array]()
        for x in a:
            at, row = x[0] & 7, x[0] & 3
            if at < 6:
                seen[2, at] += 10
            if x[1] > 0 and row < 3:
                seen[row, 1] = table[x[2] & 7]
            rows.append(0 * x + 100 * seen[1, 1] + (seen[2, at] if at < 6 else 0))
        return np.stack(rows)

    for seed in range(3):
        both(PROGRAM.format(body=body), wanted, seed)


def test_a_condition_keeps_an_index_where_it_belongs() -> None:
    """What is out of reach in other rounds is not loaded there; and elements of a memory are chosen by values."""
    body = """
        kept: int32[5, 8] = 0
        seen: int32[2] = 5
        for i in range(4):
            x = s.get()
            kept[i + 1, :] = x
            if x[0] > 0:
                seen[1] = x[0]
            if i >= 1:
                B[i, :] = kept[i - 1, :] + seen[1]
            else:
                B[i, :] = x + kept[3 - i, :] if i > 1 else 0 * x + seen[1]
"""

    def wanted(a: Array) -> Array:
        kept, seen = np.concatenate([np.zeros((1, 8), np.int32), a]), 5
        rows: list[Array] = []
        for i in range(4):
            seen = a[i, 0] if a[i, 0] > 0 else seen
            rows.append((kept[i - 1] if i else 0 * a[0]) + seen)
        return np.stack(rows)

    both(PROGRAM.format(body=body), wanted)


def both(text: str, wanted: Callable[[Array], Array], seed: int = 0) -> None:
    """The text, and the streams that it becomes, answer as NumPy does."""
    network = read(text)
    inputs = drawn(network, seed)
    answer = wanted(inputs["A"].astype(np.int32))
    np.testing.assert_array_equal(answered(network, inputs), answer)
    module = write_instances(network, network.instances, Design("ecp5-85k", 100.0, {}))
    module.verify()
    top = next(iter(module.ops))
    layouts = [top.layout(i) for i in range(2)]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    held = {"A": pack(inputs["A"], layouts[0]) if layouts[0] else inputs["A"]}
    found = stream_interpreter.run(module, held, {})["B"]
    np.testing.assert_array_equal(unpack(found, layouts[1], (4, 8)) if layouts[1] else found, answer)
