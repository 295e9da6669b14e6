"""Kernels mean what NumPy says, as text and as plans on meshes; what cannot be read is said with its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.description import load_machine
from penstock.compiler.mesh.triton.blocks import plan_kernel
from penstock.compiler.mesh.triton.read import open_kernel, read_kernel
from penstock.compiler.tasks.source import ProgramText
from tests.mesh.answers import CASES

HEAD = """import triton
import triton.language as tl
grid = (4,)
@triton.jit
def kernel(x, y, n_stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
"""
MISTAKES = {
    "not affine": ("    i = tl.load(x + at)\n    tl.store(y + i, at)", "depends on data.*not affine", 9),
    "mask of data": ("    i = tl.load(x + at)\n    tl.store(y + at, i, mask=i > 0)", "mask depends on data", 9),
    "square": ("    tl.store(y + pid * pid, 1.0)", "product of two places is not affine", 8),
    "wraps": ("    tl.store(y + at % 7, 1.0)", "not affine", 8),
    "unknown function": ("    tl.store(y + at, tl.atomic_add(x, 1))", "no function that is read", 8),
    "python": ("    import os", "statement is not read", 8),
    "while": ("    while True:\n        pass", "statement is not read", 8),
    "shapes": ("    tl.store(y + at, tl.zeros((3,), tl.float32))", "is stored to places", 8),
    "data decides": ("    if tl.load(x + at) > 0:\n        pass", "known in a run only", 8),
    "no store": ("    tl.load(x + at)", "stores nothing", 5),
    "a lot": ("    for i in range(100000000000):\n        tl.store(y + at, 1.0)", "the loop runs", 8),
    "recursion": ("    kernel(x, y, 1, 2)", "not known here", 8),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_mean_what_numpy_says(name: str) -> None:
    assert CASES[name].interpreted() < 2e-3


@pytest.mark.parametrize("mesh", ["mesh-4x8", "triple-ring"])
@pytest.mark.parametrize("name", ["gemm", "causal_attention", "norm_gemm"])
def test_plans_executed_core_by_core_give_the_same(name: str, mesh: str) -> None:
    assert CASES[name].check(load_machine(mesh)) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "mesh", ["mesh-1x8", "mesh-4x8", "mesh-8x8", "triple-ring", "wormhole", "u55c-8x8", "ryzen-ai-npu"]
)
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_runs_on_every_mesh(name: str, mesh: str) -> None:
    case = CASES[name]
    if (name, mesh) == ("mlp", "ryzen-ai-npu"):  # all of a hidden layer for 32 rows is more than 64 KiB
        case = replace(case, given={"BLOCK_M": 16, "BLOCK_H": 16})
    assert case.check(load_machine(mesh)) < 2e-3


@pytest.mark.parametrize(("body", "said", "line"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_have_a_place_and_advice(body: str, said: str, line: int) -> None:
    with pytest.raises(PenstockError, match=said) as caught:
        read_kernel(open_kernel(ProgramText("k.py", HEAD + body)), {"BLOCK": 16, "n_stride": 1})
    assert caught.value.where.startswith(f"k.py:{line}")


def test_what_is_larger_than_memory_is_refused() -> None:
    kernel = open_kernel(ProgramText("k.py", HEAD + "    tl.store(y + at * 100000000000, 1.0)"))
    with pytest.raises(PenstockError, match=r"need .* bytes"):
        plan_kernel(kernel, {"BLOCK": 16, "n_stride": 1}, load_machine("mesh-1x8"))
