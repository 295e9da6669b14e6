"""A gated layer, silu(x @ gate) * (x @ up): in one kernel (swiglu), and as two products, one after the other.

penstock mesh examples/meshes/swiglu.py:swiglu --on ryzen-ai-npu
"""

import triton
import triton.language as tl

ROWS, WIDE, HIDDEN = 128, 128, 256
x, w_gate, w_up, gated, y = "bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16"


def grid(meta):
    return ROWS // meta["BLOCK_M"], HIDDEN // meta["BLOCK_N"]


@triton.jit
def swiglu(
    x, w_gate, w_up, y, WIDE: tl.constexpr, HIDDEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, WIDE, BLOCK_K):
        inner = k + tl.arange(0, BLOCK_K)
        here = tl.load(x + rows[:, None] * WIDE + inner[None, :])
        gate = tl.dot(here, tl.load(w_gate + inner[:, None] * HIDDEN + columns[None, :]), gate)
        up = tl.dot(here, tl.load(w_up + inner[:, None] * HIDDEN + columns[None, :]), up)
    tl.store(y + rows[:, None] * HIDDEN + columns[None, :], gate * tl.sigmoid(gate) * up)


@triton.jit
def gate(
    x, w_gate, gated, WIDE: tl.constexpr, HIDDEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, WIDE, BLOCK_K):
        inner = k + tl.arange(0, BLOCK_K)
        here = tl.load(x + rows[:, None] * WIDE + inner[None, :])
        total = tl.dot(here, tl.load(w_gate + inner[:, None] * HIDDEN + columns[None, :]), total)
    tl.store(gated + rows[:, None] * HIDDEN + columns[None, :], total * tl.sigmoid(total))


@triton.jit
def up(
    x, w_up, gated, y, WIDE: tl.constexpr, HIDDEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, WIDE, BLOCK_K):
        inner = k + tl.arange(0, BLOCK_K)
        here = tl.load(x + rows[:, None] * WIDE + inner[None, :])
        total = tl.dot(here, tl.load(w_up + inner[:, None] * HIDDEN + columns[None, :]), total)
    before = tl.load(gated + rows[:, None] * HIDDEN + columns[None, :])
    tl.store(y + rows[:, None] * HIDDEN + columns[None, :], total * before)
