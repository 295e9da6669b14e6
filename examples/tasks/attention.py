"""Attention in one pass over keys and values, with the softmax worked out as they come (one head, float32)."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, exp, float32, grid, matmul, program, task

L, D = 4, 8
SCALE = 0.35355339


@program
def attention(Q: float32[L, D], K: float32[L, D], V: float32[L, D], Y: float32[L, D]):
    scores = Stream[float32]
    shrunk, weights = Stream[float32], Stream[float32]
    last = Stream[float32]

    @task
    def score():
        held: float32[D] = 0.0
        keys: float32[L, D] = 0.0
        for k in range(L):
            keys[k, :] = K[k, :]
        for q, k in grid(L, L):
            if k == 0:
                held = Q[q, :]
            scores.put(matmul(keys[k, :], held) * SCALE)

    @task
    def softmax():
        for _ in range(L):
            top: float32 = -1e30
            total: float32 = 0.0
            for _ in range(L):
                s = scores.get()
                higher = max(top, s)
                shrink = exp(top - higher)
                weight = exp(s - higher)
                total = total * shrink + weight
                top = higher
                shrunk.put(shrink)
                weights.put(weight)
            last.put(total)

    @task
    def gather():
        values: float32[L, D] = 0.0
        for k in range(L):
            values[k, :] = V[k, :]
        for q in range(L):
            row: float32[D] = 0.0
            for k in range(L):
                row = row * shrunk.get() + values[k, :] * weights.get()
            Y[q, :] = row / last.get()
