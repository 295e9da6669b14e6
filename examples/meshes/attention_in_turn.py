"""Attention as three kernels, called one after the other: scores and weights go out to memory and come back.

penstock mesh examples/meshes/attention_in_turn.py:scores --on ryzen-ai-npu
"""

import triton
import triton.language as tl

HEADS, LENGTH, D = 2, 256, 64
Q, K, V, S, P, Out = "bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16"


@triton.jit
def scores(Q, K, S, LENGTH: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    head = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = tl.arange(0, D)
    q = tl.load(Q + head * LENGTH * D + rows[:, None] * D + wide[None, :])
    k = tl.load(K + head * LENGTH * D + columns[None, :] * D + wide[:, None])
    tl.store(S + head * LENGTH * LENGTH + rows[:, None] * LENGTH + columns[None, :], tl.dot(q, k) * 0.125)


@triton.jit
def softmax(S, P, LENGTH: tl.constexpr, BLOCK_M: tl.constexpr):
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, LENGTH)
    at = head * LENGTH * LENGTH + rows[:, None] * LENGTH + columns[None, :]
    score = tl.load(S + at)
    weight = tl.exp(score - tl.max(score, 1)[:, None])
    tl.store(P + at, weight / tl.sum(weight, 1)[:, None])


@triton.jit
def values(P, V, Out, LENGTH: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    wide = tl.arange(0, D)
    total = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, LENGTH, BLOCK_N):
        inner = start + tl.arange(0, BLOCK_N)
        p = tl.load(P + head * LENGTH * LENGTH + rows[:, None] * LENGTH + inner[None, :])
        v = tl.load(V + head * LENGTH * D + inner[:, None] * D + wide[None, :])
        total = tl.dot(p, v, total)
    tl.store(Out + head * LENGTH * D + rows[:, None] * D + wide[None, :], total)


def attention(Q, K, V, S, P, Out):
    scores[lambda meta: (LENGTH // meta["BLOCK_M"], LENGTH // meta["BLOCK_N"], HEADS)](Q, K, S, LENGTH, D)
    softmax[lambda meta: (LENGTH // meta["BLOCK_M"], HEADS)](S, P, LENGTH)
    values[lambda meta: (LENGTH // meta["BLOCK_M"], HEADS)](P, V, Out, LENGTH, D)
