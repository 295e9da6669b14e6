"""A layer of whole numbers, y = x @ w.T, of any size: its blocks are left to the planner.

penstock array examples/meshes/linear_int8.py --on ecp5-85-4x4 --shape ROWS=64,INNER=96,WIDE=40
"""

import triton
import triton.language as tl

ROWS, INNER, WIDE = 64, 64, 64
MESH = "ecp5-85-4x4"
x, w, y = "int8", "int8", "int32"  # the types of the tensors


def grid(meta):
    return triton.cdiv(ROWS, meta["BLOCK_M"]), triton.cdiv(WIDE, meta["BLOCK_N"])


@triton.jit
def linear(
    x, w, y,
    ROWS: tl.constexpr, INNER: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    wide = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(0, INNER, BLOCK_K):
        inner = k + tl.arange(0, BLOCK_K)
        left = tl.load(x + rows * INNER + inner[None, :], mask=(rows < ROWS) & (inner[None, :] < INNER), other=0)
        right = tl.load(
            w + wide[:, None] * INNER + inner[None, :],
            mask=(wide[:, None] < WIDE) & (inner[None, :] < INNER), other=0,
        )  # fmt: skip
        total = tl.dot(left, tl.trans(right), total)
    tl.store(y + rows * WIDE + wide[None, :], total, mask=(rows < ROWS) & (wide[None, :] < WIDE))
