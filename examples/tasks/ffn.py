"""A gated feed-forward block (SwiGLU): two projections side by side, their product, and a third, in float32."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, float32, grid, matmul, program, sigmoid, task

L, D, H = 2, 8, 16


@program
def ffn(x: float32[L, D], up: float32[H, D], gate: float32[H, D], down: float32[H, D], y: float32[L, D]):
    rows = Stream[float32, D][2]
    raised, gated = Stream[float32], Stream[float32]
    mixed = Stream[float32]

    @task
    def load():
        for n in range(L):
            row = x[n, :]
            rows[0].put(row)
            rows[1].put(row)

    @task
    def raise_up():
        held: float32[D] = 0.0
        for _, h in grid(L, H):
            if h == 0:
                held = rows[0].get()
            raised.put(matmul(up[h, :], held))

    @task
    def open_gate():
        held: float32[D] = 0.0
        for _, h in grid(L, H):
            if h == 0:
                held = rows[1].get()
            z = matmul(gate[h, :], held)
            gated.put(z * sigmoid(z))

    @task
    def mix():
        for _ in range(L * H):
            mixed.put(raised.get() * gated.get())

    @task
    def bring_down():
        for n in range(L):
            total: float32[D] = 0.0
            for h in range(H):
                total += mixed.get() * down[h, :]
            y[n, :] = total
