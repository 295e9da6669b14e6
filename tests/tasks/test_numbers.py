"""float16 and numbers with a fixed point: what they mean, and the same at every level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import emit
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels
from penstock.compiler.tasks.interpret import interpret
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import drawn, read
from tests.tasks.test_circles import lowered_of

HALVES = np.array(
    [0.0, -0.0, 1.0, -2.5, 65504, 65519.9, 65520, -70000, 3e38, 1e-40, np.inf, -np.inf, np.nan, 1 + 2**-11,
     1 + 3 * 2**-11, 2**-14, 2**-14 - 2**-25, 2**-24, 2**-25, 3 * 2**-25, -5 * 2**-26, 1e-9, 6e-5, -6.1e-5], np.float32,
)  # fmt: skip
HALF = f"""
@program
def half(A: float32[{len(HALVES)}], C: float32[{len(HALVES)}]):
    s = Stream[float16]

    @task
    def load():
        for i in range({len(HALVES)}):
            s.put(A[i])

    @task
    def store():
        for i in range({len(HALVES)}):
            C[i] = s.get()
"""
FIXED = """
@program
def steps(A: int32[16, 4], B: float32[16], C: int32[16], D: float32[16], E: int32[16]):
    a = Stream[fixed(16, 8), 4]
    b = Stream[fixed(12, 4)]
    c, e = Stream[int32], Stream[int32]
    d = Stream[fixed(20, 12)]

    @task
    def load():
        for i in range(16):
            a.put(fixed(32, 24)(A[i, :]) * 0.25)

    @task
    def load_too():
        for i in range(16):
            b.put(B[i])

    @task
    def work():
        most: fixed(16, 8) = -3.5
        kept: fixed(12, 4)[16] = 0.125
        for i in range(16):
            x = a.get()
            y = b.get()
            most = max(most, x[0])
            kept[i] = y - 1
            c.put(matmul(x, x))
            d.put(where(y > 0.5, x[1] * y + 3, -y) + most)
            e.put(max(x) >> 1)

    @task
    def store():
        for i in range(16):
            C[i] = c.get()

    @task
    def store_too():
        for i in range(16):
            D[i] = float32(d.get())

    @task
    def store_three():
        for i in range(16):
            E[i] = e.get()
"""


def wrapped(values: np.ndarray, bits: int) -> np.ndarray:
    return (values + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def test_a_float16_is_numpys() -> None:
    generator = np.random.default_rng(0)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    for values in (HALVES, generator.permutation(every)[: len(HALVES)]):
        answers = interpret(read(HALF), {"A": values})["C"]
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(answers, values.astype(np.float16).astype(np.float32))


def test_fixed_points_are_whole_numbers_of_steps() -> None:
    network = read(FIXED)
    inputs = drawn(network)
    a, b = inputs["A"].astype(np.int64), inputs["B"]
    x = wrapped(wrapped(a << 8, 32) * 64 >> 8, 16)  # by 0.25, which is 64 steps of 2 ** -8
    y = wrapped(np.trunc(b * np.float32(256)).astype(np.int64), 12)
    answers = interpret(network, inputs)
    np.testing.assert_array_equal(answers["C"], wrapped((x * x).sum(axis=1), 32) >> 16)
    np.testing.assert_array_equal(answers["E"], x.max(axis=1) >> 9)
    most = np.maximum.accumulate(np.maximum(x[:, 0], -896))
    product = wrapped(wrapped(x[:, 1] * y, 32) + (3 << 16), 32)
    chosen = np.where(y > 128, product, -y << 8)
    d = wrapped(wrapped(chosen + (most << 8), 32) >> 8, 20)
    np.testing.assert_array_equal(answers["D"], d / np.float32(256))


@pytest.mark.parametrize("text", [HALF, FIXED])
def test_streams_equal_the_text(text: str, tmp_path: Path) -> None:
    lowered = lowered_of(tmp_path, text)
    inputs = [*make_inputs(lowered, random_sets=1), *([[HALVES]] if text is HALF else [])]
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("text", [HALF, FIXED])
def test_hardware_equals_the_text(text: str, tmp_path: Path) -> None:
    lowered = lowered_of(tmp_path, text)
    inputs = [*make_inputs(lowered, random_sets=1), *([[HALVES]] if text is HALF else [])]
    emit(lowered, tmp_path / "out", part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path / "out", ToolRunner()), inputs).equal
    assert_equal_in_verilator(lowered, inputs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("fixed(12, 4)]", "fixed(40, 4)]"), r"fixed\(40, 4\) is no type"),
        (("fixed(12, 4)]", "fixed(12, -25)]"), "is no type"),
        (("matmul(x, x)", "x[0] * x[0] * x[0] * x[0]"), "has 32 bits behind its point"),
        (("max(x) >> 1", "max(x) & 1"), "and of fixed"),
        (("max(x) >> 1", "max(x) >> y"), "a shift by a number with a fixed point"),
        (("kept[i] = y - 1", "kept[i] = sqrt(y)"), r"sqrt of fixed.*cast it: float32"),
        (("= -3.5", "= 128.5"), "128.5 does not fit fixed"),
        (("C: int32[16]", "C: fixed(16, 8)[16]"), "C is a tensor of fixed"),
    ],
)
def test_what_a_fixed_point_cannot_is_named(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    assert change[0] in FIXED
    with pytest.raises(PenstockError, match=said):
        lowered_of(tmp_path, FIXED.replace(*change))
