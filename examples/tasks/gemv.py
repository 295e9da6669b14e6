"""A cooperative matrix-vector product: each worker takes a part of every row, and the parts are added along a chain."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, grid, int8, int32, matmul, program, task

M, K, P = 16, 16, 4
W = K // P


@program
def gemv(A: int8[M, K], x: int8[K], y: int32[M]):
    rows, parts, sums = Stream[int8, W][P], Stream[int8, W][P], Stream[int32][P]

    @task
    def load_a():
        for m, p in grid(M, P):
            rows[p].put(A[m, p * W : p * W + W])

    @task
    def load_x():
        for p in range(P):
            parts[p].put(x[p * W : p * W + W])

    @task(grid=(P,))
    def worker(p):
        own = parts[p].get()
        for _ in range(M):
            total = matmul(rows[p].get(), own)
            if p > 0:
                total += sums[p - 1].get()
            sums[p].put(total)

    @task
    def store():
        for m in range(M):
            y[m] = sums[P - 1].get()
