"""A row of elements, output stationary: A passes along, each element keeps a column of B and makes a column of C."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, grid, int8, int32, program, stack, task

Q = 4
M, N, K = 8, 4, 8


@program
def systolic_1d(A: int8[M, K], B: int8[K, N], C: int32[M, N]):
    a, columns = Stream[int8][Q + 1], Stream[int8, Q][Q + 1]
    rows = Stream[int32, Q][Q + 1]

    @task
    def load_a():
        for m, k in grid(M, K):
            a[0].put(A[m, k])

    @task
    def load_b():
        for k in range(K):
            columns[0].put(B[k, :])

    @task(grid=(Q,))
    def element(j):
        own: int8[K] = 0
        for k in range(K):
            word = columns[j].get()
            own[k] = word[j]
            if j + 1 < Q:
                columns[j + 1].put(word)
        for _ in range(M):
            total: int32 = 0
            for k in range(K):
                x = a[j].get()
                total += x * own[k]
                if j + 1 < Q:
                    a[j + 1].put(x)
            row: int32[Q] = 0
            if j > 0:
                row = rows[j].get()
            rows[j + 1].put(stack([total if q == j else row[q] for q in range(Q)]))

    @task
    def store():
        for m in range(M):
            C[m, :] = rows[Q].get()
