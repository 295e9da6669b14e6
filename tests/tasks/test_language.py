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


def both(text: str, wanted: Callable[[Array], Array]) -> None:
    """The text, and the streams that it becomes, answer as NumPy does."""
    network = read(text)
    inputs = drawn(network)
    answer = wanted(inputs["A"].astype(np.int32))
    np.testing.assert_array_equal(answered(network, inputs), answer)
    module = write_instances(network, network.instances, Design("ecp5-85k", 100.0, {}))
    module.verify()
    top = next(iter(module.ops))
    layouts = [top.layout(i) for i in range(2)]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    held = {"A": pack(inputs["A"], layouts[0]) if layouts[0] else inputs["A"]}
    found = stream_interpreter.run(module, held, {})["B"]
    np.testing.assert_array_equal(unpack(found, layouts[1], (4, 8)) if layouts[1] else found, answer)
