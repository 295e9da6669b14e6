"""One new token's attention to a cache of keys and values: queries of one group of heads share a cache."""

import triton
import triton.language as tl

HEADS, QUERIES, LENGTH, D = 8, 16, 512, 64

grid = (HEADS,)


@triton.jit
def flash_decode(q, k, v, out, LENGTH, QUERIES: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0)
    rows = tl.arange(0, QUERIES)
    d = tl.arange(0, D)
    query = tl.load(q + head * QUERIES * D + rows[:, None] * D + d[None, :])
    best = tl.full([QUERIES], float("-inf"), dtype=tl.float32)
    total = tl.zeros([QUERIES], dtype=tl.float32)
    result = tl.zeros([QUERIES, D], dtype=tl.float32)
    for start in range(0, LENGTH, BLOCK):
        at = start + tl.arange(0, BLOCK)
        keys = tl.load(k + head * LENGTH * D + at[None, :] * D + d[:, None])
        scores = tl.dot(query, keys) * 0.125
        now = tl.maximum(best, tl.max(scores, axis=1))
        weights = tl.exp(scores - now[:, None])
        shrink = tl.exp(best - now)
        total = total * shrink + tl.sum(weights, axis=1)
        values = tl.load(v + head * LENGTH * D + at[:, None] * D + d[None, :])
        result = result * shrink[:, None] + tl.dot(weights.to(tl.float16), values)
        best = now
    tl.store(out + head * QUERIES * D + rows[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16))
