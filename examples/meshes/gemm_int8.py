"""Whole numbers multiplied on an overlay: blocks as small as a core's multipliers, so that a plan can be built.

penstock mesh examples/meshes/gemm_int8.py --on ecp5-85-4x4 -o out/mesh
penstock compile examples/meshes/gemm_int8.py --platform ecp5-85k
"""

import triton
import triton.language as tl

M, N, K = 32, 32, 32
BLOCK_M, BLOCK_N, BLOCK_K = 2, 2, 1
MESH = "ecp5-85-4x4"
a, b, c = "int8", "int8", "int32"  # the types of the tensors

grid = (M // BLOCK_M, N // BLOCK_N)


@triton.jit
def gemm(
    a, b, c,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)
