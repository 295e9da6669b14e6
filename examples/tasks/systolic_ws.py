"""A weight-stationary array: each element keeps one weight, rows of A pass from the west, sums pass to the south."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int8, int32, program, stack, task

K, N = 4, 4
M = 8


@program
def systolic_ws(A: int8[M, K], W: int8[K, N], C: int32[M, N]):
    words, weights = Stream[int8, K][K], Stream[int8][K, N]
    a, sums = Stream[int8][K, N], Stream[int32][K, N]
    rows = Stream[int32, N][N]

    @task
    def load_a():
        for m in range(M):
            words[0].put(A[m, :])

    @task
    def load_w():
        for k in range(K):
            for n in range(N):
                weights[k, n].put(W[k, n])

    @task(grid=(K,))
    def edge(k):
        for _ in range(M):
            word = words[k].get()
            a[k, 0].put(word[k])
            if k + 1 < K:
                words[k + 1].put(word)

    @task(grid=(K, N))
    def element(k, n):
        weight = weights[k, n].get()
        for _ in range(M):
            x = a[k, n].get()
            total = x * weight
            if k > 0:
                total += sums[k - 1, n].get()
            if n + 1 < N:
                a[k, n + 1].put(x)
            sums[k, n].put(total)

    @task(grid=(N,))
    def gather(n):
        for _ in range(M):
            own = sums[K - 1, n].get()
            row: int32[N] = 0
            if n > 0:
                row = rows[n - 1].get()
            rows[n].put(stack([own if q == n else row[q] for q in range(N)]))

    @task
    def store():
        for m in range(M):
            C[m, :] = rows[N - 1].get()
