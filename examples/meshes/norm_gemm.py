"""Layer norm, then a product of matrices: two loops over a row, one for its sums, one for what is made of them."""

import triton
import triton.language as tl

M, N, K = 128, 128, 256
EPS = 1e-5

grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))  # noqa: E731


@triton.jit
def norm_gemm(x, w, y, M, N, K, EPS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    squares = tl.zeros([BLOCK_M], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        part = tl.load(x + rows[:, None] * K + (k + tl.arange(0, BLOCK_K))[None, :]).to(tl.float32)
        total += tl.sum(part, axis=1)
        squares += tl.sum(part * part, axis=1)
    mean = total / K
    scale = 1.0 / tl.sqrt(squares / K - mean * mean + EPS)
    result = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + tl.arange(0, BLOCK_K)
        part = tl.load(x + rows[:, None] * K + at[None, :]).to(tl.float32)
        normal = (part - mean[:, None]) * scale[:, None]
        weights = tl.load(w + at[:, None] * N + columns[None, :])
        result += tl.dot(normal.to(tl.float16), weights)
    tl.store(y + rows[:, None] * N + columns[None, :], result)
