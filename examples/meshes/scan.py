"""A selective scan as in Mamba: a state for each channel, which shrinks and takes in; step by step along time."""

import triton
import triton.language as tl

LENGTH, CHANNELS, STATES = 32, 128, 16

grid = lambda meta: (triton.cdiv(CHANNELS, meta["BLOCK_C"]),)  # noqa: E731


@triton.jit
def scan(x, delta, a, b, c, y, LENGTH, CHANNELS, STATES: tl.constexpr, BLOCK_C: tl.constexpr):
    channels = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    states = tl.arange(0, STATES)
    decay = tl.load(a + channels[:, None] * STATES + states[None, :])
    state = tl.zeros((BLOCK_C, STATES), dtype=tl.float32)
    for t in range(LENGTH):
        step = tl.load(delta + t * CHANNELS + channels)
        now = tl.load(x + t * CHANNELS + channels)
        into = tl.load(b + t * STATES + states)
        out = tl.load(c + t * STATES + states)
        state = state * tl.exp(step[:, None] * decay) + (step * now)[:, None] * into[None, :]
        tl.store(y + t * CHANNELS + channels, tl.sum(state * out[None, :], axis=1))
