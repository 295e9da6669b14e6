"""FlashAttention: a block of queries goes along all keys; causal, if CAUSAL is 1."""

import triton
import triton.language as tl

HEADS, LENGTH, D = 2, 256, 64
CAUSAL = 0

grid = lambda meta: (triton.cdiv(LENGTH, meta["BLOCK_M"]), HEADS)  # noqa: E731


@triton.jit
def attention(
    Q, K, V, Out, LENGTH, D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    start_m = tl.program_id(0)
    head = tl.program_id(1) * LENGTH * D
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + head + offs_m[:, None] * D + offs_d[None, :])
    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    end = (start_m + 1) * BLOCK_M if CAUSAL else LENGTH
    for start_n in range(0, end, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        k = tl.load(K + head + offs_n[None, :] * D + offs_d[:, None])
        qk = tl.dot(q, k) * 0.125
        if CAUSAL:
            qk = tl.where(offs_m[:, None] >= offs_n[None, :], qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp(qk - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V + head + offs_n[:, None] * D + offs_d[None, :])
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), v)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(Out + head + offs_m[:, None] * D + offs_d[None, :], acc.to(tl.float16))
