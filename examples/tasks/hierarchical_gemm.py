"""A product in tiles of tiles: workers on a grid, each of which multiplies tiles of its own, 16 products at a time."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, grid, int8, int32, matmul, program, task, unroll

T, P, Q = 2, 2, 2
M, N, K = 8, 8, 8


@program
def hierarchical_gemm(A: int8[M, K], B: int8[K, N], C: int32[M, N]):
    a, b = Stream[int8, (T, T)][P, Q], Stream[int8, (T, T)][P, Q]
    c = Stream[int32, (T, T)][P, Q]

    @task
    def load_a():
        for mt, _, k in grid(M // T // P, N // T // Q, K // T):
            for p in range(P):
                tile = A[(mt * P + p) * T : (mt * P + p) * T + T, k * T : k * T + T]
                for q in unroll(Q):
                    a[p, q].put(tile)

    @task
    def load_b():
        for _, nt, k in grid(M // T // P, N // T // Q, K // T):
            for q in range(Q):
                tile = B[k * T : k * T + T, (nt * Q + q) * T : (nt * Q + q) * T + T]
                for p in unroll(P):
                    b[p, q].put(tile)

    @task(grid=(P, Q))
    def worker(p, q):
        for _ in range(M // T // P * (N // T // Q)):
            total: int32[T, T] = 0
            for _ in range(K // T):
                total += matmul(a[p, q].get(), b[p, q].get())
            c[p, q].put(total)

    @task
    def store():
        for mt, nt, p, q in grid(M // T // P, N // T // Q, P, Q):
            row, column = (mt * P + p) * T, (nt * Q + q) * T
            C[row : row + T, column : column + T] = c[p, q].get()
