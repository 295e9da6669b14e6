"""bfloat16: kept and sent in 16 bits, rounded as PyTorch rounds, the same at every level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels
from penstock.compiler.tasks.interpret import interpret, rounded_to_bfloat16
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import Array, drawn, read

NUMBERS = np.array(
    [0.0, -0.0, 1.0, -2.5, 3.3e38, -3.3e38, 1e-40, np.inf, -np.inf, np.nan, 1 + 2**-8, 1 + 3 * 2**-8,
     1 + 2**-8 + 2**-20, 1 + 2**-9, 255.5, 256.5], np.float32,
)  # fmt: skip
ROUNDED = """
@program
def rounded(A: float32[16], C: float32[16]):
    s = Stream[bfloat16]

    @task
    def load():
        for i in range(16):
            s.put(A[i])

    @task
    def store():
        for i in range(16):
            C[i] = s.get()
"""
DOTTED = """
@program
def dotted(A: float32[16, 8], B: float32[16, 8], C: float32[16], D: int32[16]):
    a, b = Stream[bfloat16, 8], Stream[bfloat16, 8]
    c, d = Stream[bfloat16], Stream[bfloat16]

    @task
    def load():
        for i in range(16):
            a.put(A[i, :])

    @task
    def load_too():
        for i in range(16):
            b.put(B[i, :])

    @task
    def work():
        bias: bfloat16 = 0.3
        kept: bfloat16[16, 8] = 1
        for i in range(16):
            kept[i, :] = b.get()
        for i in range(16):
            x = a.get()
            c.put(matmul(x, kept[15 - i, :]) + bias)
            d.put(max(where(x > 0, -x, x) * 100))

    @task
    def store():
        for i in range(16):
            C[i] = c.get()

    @task
    def store_too():
        for i in range(16):
            D[i] = int32(d.get())
"""


def as_pytorch(values: Array) -> Array:
    return torch.from_numpy(np.asarray(values, np.float32)).bfloat16().float().numpy()


def test_it_rounds_as_pytorch_does() -> None:
    generator = np.random.default_rng(0)
    many = np.concatenate([NUMBERS, generator.integers(0, 1 << 32, 100_000, np.uint32).view(np.float32)])
    np.testing.assert_array_equal(rounded_to_bfloat16(many), as_pytorch(many))


def test_it_is_computed_as_float32_and_rounded_where_it_is_kept() -> None:
    network = read(DOTTED)
    inputs = drawn(network)
    answers = interpret(network, inputs)
    a, b = as_pytorch(inputs["A"]), as_pytorch(inputs["B"])[::-1]
    np.testing.assert_allclose(answers["C"], as_pytorch((a * b).sum(axis=1) + as_pytorch(np.array(0.3))), rtol=2**-7)
    np.testing.assert_array_equal(answers["C"], as_pytorch(answers["C"]))
    largest = (-np.abs(a) * np.float32(100)).max(axis=1)
    np.testing.assert_array_equal(answers["D"], np.trunc(as_pytorch(largest)).astype(np.int32))


def lowered_of(folder: Path, text: str, board: str = "ecp5-85k") -> Lowered:
    (folder / "program.py").write_text("from penstock.tasks import *\n" + text)
    evaluator = Evaluator.create(prepare(import_model(str(folder / "program.py"))), board)
    return lower(evaluator.program, finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design)


@pytest.mark.parametrize("text", [ROUNDED, DOTTED])
def test_streams_equal_the_text(tmp_path: Path, text: str) -> None:
    lowered = lowered_of(tmp_path, text)
    inputs = [*make_inputs(lowered, random_sets=1), *([[NUMBERS]] if text is ROUNDED else [])]
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    assert any("vector<8xi16>" in str(one.result.type) for one in lowered.channels) == (text is DOTTED)


@pytest.mark.slow
@pytest.mark.parametrize("text", [ROUNDED, DOTTED])
def test_hardware_equals_the_text(tmp_path: Path, text: str) -> None:
    lowered = lowered_of(tmp_path, text)
    inputs = [*make_inputs(lowered, random_sets=1), *([[NUMBERS]] if text is ROUNDED else [])]
    emit(lowered, tmp_path / "out", part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path / "out", ToolRunner()), inputs).equal
    assert_equal_in_verilator(lowered, inputs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("C: float32[16]", "C: bfloat16[16]"), r"C is a tensor of bfloat16\[16\] .*tensors hold"),
        (("s.put(A[i])", "s.put(bfloat16(A[i]) >> 1)"), "shr of float32 .*cast it to an integer first"),
    ],
)
def test_what_it_cannot_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    (tmp_path / "program.py").write_text("from penstock.tasks import *\n" + ROUNDED.replace(*change))
    with pytest.raises(PenstockError, match=said):
        import_model(str(tmp_path / "program.py"))
