"""An output-stationary systolic array: each element multiplies, adds, and hands its operands on to its neighbours.

Words of A and B enter at one corner and pass along the edges; each edge task keeps its lane and hands the word on. Sums
leave down their columns and are gathered into rows, so that one word leaves the array at a time.
"""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, grid, int8, int32, program, stack, task, unroll

P, Q = 4, 4
M, N, K = 8, 8, 8
W = min(Q, 16)  # sums that are stored at once: memory moves 512 bits


@program
def systolic(A: int8[M, K], B: int8[K, N], C: int32[M, N]):
    words_a, words_b = Stream[int8, P][P], Stream[int8, Q][Q]
    a, b = Stream[int8][P, Q], Stream[int8][P, Q]
    sums, down, rows = Stream[int32][P, Q], Stream[int32][P, Q], Stream[int32, Q][Q]

    @task
    def load_a(A: int8[M, K]):
        for mt, _, k in grid(M // P, N // Q, K):
            words_a[0].put(A[mt * P : mt * P + P, k])

    @task
    def load_b(B: int8[K, N]):
        for _, nt, k in grid(M // P, N // Q, K):
            words_b[0].put(B[k, nt * Q : nt * Q + Q])

    @task(grid=(P,))
    def edge_a(i):
        for _ in range(M // P * (N // Q) * K):
            word = words_a[i].get()
            a[i, 0].put(word[i])
            if i + 1 < P:
                words_a[i + 1].put(word)

    @task(grid=(Q,))
    def edge_b(j):
        for _ in range(M // P * (N // Q) * K):
            word = words_b[j].get()
            b[0, j].put(word[j])
            if j + 1 < Q:
                words_b[j + 1].put(word)

    @task(grid=(P, Q))
    def element(i, j):
        for _ in range(M // P * (N // Q)):
            total: int32 = 0
            for _ in range(K):
                x = a[i, j].get()
                y = b[i, j].get()
                total += x * y
                if j + 1 < Q:
                    a[i, j + 1].put(x)
                if i + 1 < P:
                    b[i + 1, j].put(y)
            sums[i, j].put(total)

    @task(grid=(P, Q))
    def drain(i, j):
        for _ in range(M // P * (N // Q)):
            for r in range(i + 1):
                if r == 0:
                    down[i, j].put(sums[i, j].get())
                else:
                    down[i, j].put(down[i - 1, j].get())

    @task(grid=(Q,))
    def gather(j):
        for _ in range(M // P * (N // Q) * P):
            own = down[P - 1, j].get()
            row: int32[Q] = 0
            if j > 0:
                row = rows[j - 1].get()
            rows[j].put(stack([own if q == j else row[q] for q in range(Q)]))

    @task
    def store(C: int32[M, N]):
        for mt, nt, r in grid(M // P, N // Q, P):
            row = rows[Q - 1].get()
            for part in unroll(Q // W):
                C[mt * P + P - 1 - r, nt * Q + part * W : nt * Q + part * W + W] = stack(
                    [row[part * W + q] for q in range(W)]
                )
