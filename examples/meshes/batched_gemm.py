"""One product of matrices for each of a batch."""

import triton
import triton.language as tl

B, M, N, K = 4, 128, 128, 128

grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]), B)  # noqa: E731


@triton.jit
def batched_gemm(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        left = tl.load(a + batch * M * K + rows[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        right = tl.load(b + batch * K * N + at[:, None] * N + columns[None, :], mask=at[:, None] < K, other=0.0)
        total += tl.dot(left, right)
    tl.store(c + batch * M * N + rows[:, None] * N + columns[None, :], total, mask=rows[:, None] < M)
