"""Files as people have them: host code around kernels, launches in functions, helpers that kernels call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.description import load_machine
from penstock.compiler.mesh.planner import Reuse, plan_programs
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.mesh.triton.blocks import BLOCKS, programs_of
from penstock.compiler.mesh.triton.read import open_kernel, read_kernel
from penstock.compiler.tasks.source import ProgramText
from tests.mesh.answers import Tensors
from tests.mesh.plan_execution import execute
from tests.mesh.tile_values import MeshArray, interpret

HOST = """
import torch
import triton
import triton.language as tl

DEVICE = torch.device("cuda")
try:
    import apex
except ImportError:
    apex = None

for _ in range(3):
    torch.manual_seed(0)

"""
ADD = """
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def run(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    assert x.is_cuda
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    add[grid](x, y, out, n, BLOCK=1024)
    return out


print(run(torch.rand(8), torch.rand(8)))
"""
SOFTMAX = """
@triton.jit
def softmax(out, x, row_stride, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    for row in tl.range(first, rows, step, num_stages=num_stages):
        at = tl.arange(0, BLOCK)
        mask = at < columns
        values = tl.load(x + row * row_stride + at, mask=mask, other=-float("inf"))
        raised = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * row_stride + at, raised / tl.sum(raised, axis=0), mask=mask)
"""
NORM = """
@triton.jit
def mean_of(x, at, n):
    total = tl.sum(tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), axis=0)
    return total / n


@triton.jit
def norm(X, Y, W, B, Rstd, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    X += row * stride
    Y += row * stride
    at = tl.arange(0, BLOCK)
    mean = mean_of(X, at, n)
    x = tl.load(X + at, mask=at < n, other=0.0).to(tl.float32)
    x = tl.where(at < n, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(Rstd + row, rstd)
    for k in range(0, n, BLOCK):
        here = k + tl.arange(0, BLOCK)
        mask = here < n
        y = x * rstd * tl.load(W + here, mask=mask) + tl.load(B + here, mask=mask)
        tl.store(Y + here, y, mask=mask)


def launch(x, y, w, b, rstd):
    norm[(24,)](x, y, w, b, rstd, x.stride(0), x.shape[1], 1e-5, BLOCK=64)
"""
MATMUL = """
@triton.autotune(configs=[triton.Config({"BLOCK_M": 64}, num_warps=8)], key=["M", "N", "K"])
@triton.jit
def product(a, b, c, M, N, K, stride_a, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr,
            ACTIVATION: tl.constexpr):
    pid = tl.program_id(axis=0)
    wide = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * wide
    first = pid // in_group * GROUP
    high = min(tl.cdiv(M, BLOCK_M) - first, GROUP)
    m, n = first + pid % in_group % high, pid % in_group // high
    tl.assume(m >= 0)
    rows = (m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    inner = tl.arange(0, 16)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, 16)):
        x = tl.load(a + rows[:, None] * stride_a + (k * 16 + inner)[None, :], mask=inner[None, :] < K - k * 16)
        total = tl.dot(x, tl.load(b + (k * 16 + inner)[:, None] * N + columns[None, :]), total)
    if ACTIVATION == "leaky":
        total = leaky(total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@triton.jit
def leaky(x, slope=0.01):
    return tl.where(x >= 0, x, slope * x)
"""
ATTENTION = """
@triton.jit
def inner(acc, total, top, q, keys, values, start_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
          D: tl.constexpr, STAGE: tl.constexpr, offs_m: tl.constexpr, offs_n: tl.constexpr):
    if STAGE == 1:
        low, high = 0, start_m * BLOCK_M
    elif STAGE == 2:
        low, high = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
    else:
        low, high = 0, 64
    for start_n in range(low, high, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        scores = tl.dot(q, tl.load(keys + (start_n + offs_n)[None, :] * D)) * 0.25
        if STAGE == 2:
            scores = tl.where(offs_m[:, None] >= (start_n + offs_n)[None, :], scores, -1.0e6)
        now = tl.maximum(top, tl.max(scores, 1))
        weights = tl.math.exp2((scores - now[:, None]) * 1.44269504)
        shrink = tl.math.exp2((top - now) * 1.44269504)
        total = total * shrink + tl.sum(weights, 1)
        acc = tl.dot(weights.to(tl.float16), tl.load(values + (start_n + offs_n)[:, None] * D), acc * shrink[:, None])
        top = now
    return acc, total, top


@triton.jit
def forward(Q, K, V, Out, stride_head, HEADS, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            STAGE: tl.constexpr):
    tl.static_assert(BLOCK_N <= D)
    start_m, head = tl.program_id(0), tl.program_id(1)
    base = (head // HEADS).to(tl.int64) * stride_head * HEADS + (head % HEADS).to(tl.int64) * stride_head
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n, offs_d = tl.arange(0, BLOCK_N), tl.arange(0, D)
    q = tl.load(Q + base + offs_m[:, None] * D + offs_d[None, :])
    top = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    keys, values = K + base + offs_d[:, None], V + base + offs_d[None, :]
    if STAGE & 1:
        acc, total, top = inner(acc, total, top, q, keys, values, start_m, BLOCK_M, BLOCK_N, D, 4 - STAGE, offs_m,
                                offs_n)
    tl.store(Out + base + offs_m[:, None] * D + offs_d[None, :], (acc / total[:, None]).to(tl.float16))
"""


def _softmax(x: MeshArray) -> MeshArray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _norm(t: Tensors) -> MeshArray:
    x = t["X"].reshape(24, 50)
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * t["W"] + t["B"]


def _leaky(t: Tensors) -> MeshArray:
    c = t["a"].reshape(64, 32) @ t["b"].reshape(32, 96)
    return np.where(c >= 0, c, 0.01 * c)


def _attention(t: Tensors) -> MeshArray:
    q, k, v = (t[name].reshape(4, 64, 16) for name in "QKV")
    return _softmax(q @ k.transpose(0, 2, 1) * 0.25) @ v


Given = dict[str, int | float | str]
Answer = Callable[[Tensors], MeshArray]
FILES: dict[str, tuple[str, str, Given, str, Answer]] = {
    "add": (ADD, "", {"n": 1000, "BLOCK": 64}, "out", lambda t: t["x"] + t["y"]),
    "softmax": (
        SOFTMAX, "", {"rows": 24, "columns": 50, "row_stride": 50, "BLOCK": 64, "grid": 8}, "out",
        lambda t: _softmax(t["x"].reshape(24, 50)),
    ),
    "norm": (NORM, "", {"stride": 50, "n": 50, "eps": 1e-5, "BLOCK": 64}, "Y", _norm),
    "matmul": (
        MATMUL, "",
        {"M": 64, "N": 96, "K": 32, "stride_a": 32, "BLOCK_M": 16, "BLOCK_N": 32, "GROUP": 2, "ACTIVATION": "leaky",
         "grid": 12}, "c", _leaky,
    ),
    "attention": (
        ATTENTION, "forward",
        {"stride_head": 1024, "HEADS": 2, "D": 16, "BLOCK_M": 16, "BLOCK_N": 16, "STAGE": 1, "grid": "4x4"}, "Out",
        _attention,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_of_others_are_read_and_planned(name: str) -> None:
    text, kernel, given, out, answer = FILES[name]
    program = read_kernel(open_kernel(ProgramText("file.py", HOST + text), kernel, given), given)
    draw = np.random.default_rng(3)
    tensors = {n: draw.standard_normal(t.elements).astype(np.float16) for n, t in program.tensors.items()}
    wanted = answer({n: value.astype(np.float64) for n, value in tensors.items()}).ravel()
    planned = {n: value.copy() for n, value in tensors.items()}
    interpret(program, tensors)
    assert np.abs(tensors[out] - wanted).max() < 4e-3 * np.abs(wanted).max()
    machine = load_machine("mesh-4x8")
    execute(plan_programs([program], machine, 1, Reuse()).best.plan, Traffic(machine), planned)
    assert np.abs(planned[out] - wanted).max() < 4e-3 * np.abs(wanted).max()


MISTAKES: dict[str, tuple[str, Given, str]] = {
    "no grid": (SOFTMAX, {"rows": 8, "columns": 8, "row_stride": 8, "BLOCK": 16}, r"how many inst.*--set grid=8x4"),
    "odd grid": (SOFTMAX, {"rows": 8, "columns": 8, "row_stride": 8, "BLOCK": 16, "grid": "a lot"}, r"a grid of a lot"),
    "no size": (ADD, {"BLOCK": 64}, r"'n' is a tensor here, for it has no value.*--set n="),
    "host's size": ("n = torch.zeros(3).numel()\n" + ADD, {"BLOCK": 64}, r"'n' is a tensor here"),
    "lacking argument": (MATMUL.replace("leaky(total)", "leaky()"), FILES["matmul"][2], r"leaky is called without x"),
    "early return": (
        MATMUL.replace("    return tl.where", "    if 1 > 0:\n        return x\n    return tl.where"),
        FILES["matmul"][2], r"returned before the end",
    ),
    "recursion": (
        MATMUL.replace("return tl.where(x >= 0, x, slope * x)", "return leaky(x)"), FILES["matmul"][2],
        r"leaky is called too deeply.*8 calls",
    ),
    "unknown name": (MATMUL, {**FILES["matmul"][2], "ACTIVATOIN": "leaky"}, r"no argument 'ACTIVATOIN'.*ACTIVATION"),
    "no activation": (
        MATMUL, {k: v for k, v in FILES["matmul"][2].items() if k != "ACTIVATION"},
        r"'ACTIVATION' has no value.*--set ACTIVATION=",
    ),
    "integers": (ADD.replace("mask=inside)\n", "mask=inside).to(tl.int64)\n", 1).replace(
        "tl.load(y + at, mask=inside)", "tl.load(y + at, mask=inside).to(tl.uint32)"), {"n": 64, "BLOCK": 64},
        r"cast to what is no type",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_what_others_forget_is_said(name: str) -> None:
    text, given, said = MISTAKES[name]
    with pytest.raises(PenstockError, match=said) as caught:
        read_kernel(open_kernel(ProgramText("file.py", HOST + text), "", given), given)
    assert caught.value.where.startswith("file.py:")


ROWS = """
@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    here = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    up = tl.exp(here - tl.max(here, axis=0))
    tl.store(out + row * stride + at, up / tl.sum(up, axis=0), mask=at < n)

def run(x, out):
    softmax[(64,)](out, x, x.stride(0), 1000)
"""


@pytest.mark.parametrize(("columns", "stride", "block"), [(1000, 1000, {1024}), (1000, 1024, {1024}), (60, 64, {64})])
def test_blocks_that_leave_a_part_of_the_result_out_are_no_choice(columns: int, stride: int, block: set[int]) -> None:
    """A row has to fit into one block: smaller ones would be faster, since they compute less."""
    kernel = open_kernel(ProgramText("k.py", HOST + ROWS))
    programs = programs_of(kernel, {"n": columns, "stride": stride})
    assert min(program.blocks["BLOCK"] for program in programs) in block
    best = plan_programs(programs, load_machine("mesh-1x8"), 3, Reuse())
    assert best.best.run.cycles >= best.bound


def test_blocks_that_a_grid_covers_are_all_choices() -> None:
    kernel = open_kernel(
        ProgramText("k.py", HOST + ADD + "def run(x, y, out, n):\n    add[(triton.cdiv(n, 16),)](x, y, out, n)\n")
    )
    assert [program.blocks["BLOCK"] for program in programs_of(kernel, {"n": 1000, "grid": 63})] == list(BLOCKS)
