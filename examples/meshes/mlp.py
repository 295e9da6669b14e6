"""Two layers for a block of rows, with a SiLU between; the hidden layer never leaves the core."""

import triton
import triton.language as tl

ROWS, WIDE, HIDDEN = 256, 128, 256

grid = lambda meta: (triton.cdiv(ROWS, meta["BLOCK_M"]),)  # noqa: E731


@triton.jit
def mlp(x, up, down, y, ROWS, WIDE: tl.constexpr, HIDDEN, BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    wide = tl.arange(0, WIDE)
    here = tl.load(x + rows[:, None] * WIDE + wide[None, :])
    total = tl.zeros((BLOCK_M, WIDE), dtype=tl.float32)
    for h in range(0, HIDDEN, BLOCK_H):
        hidden = h + tl.arange(0, BLOCK_H)
        first = tl.load(up + wide[:, None] * HIDDEN + hidden[None, :])
        between = tl.dot(here, first)
        between = between * tl.sigmoid(between)
        second = tl.load(down + hidden[:, None] * WIDE + wide[None, :])
        total += tl.dot(between.to(tl.float16), second)
    tl.store(y + rows[:, None] * WIDE + wide[None, :], total)
