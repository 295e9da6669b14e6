"""A linear layer of a model, in its place: `penstock compile examples/digits_mlp.py:model#examples/tasks/linear.py`.

Weights come column by column, a word of WIDE numbers a cycle: a sum is met again after N rounds, when it is back.
"""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, float32, implements, matmul, program, task

N, K, WIDE = 32, 64, 8  # outputs and inputs of the layer; products side by side
WORDS = K // WIDE


@implements("fc1")
@program
def linear(x: float32[K], weight: float32[N, K], bias: float32[N], y: float32[N]):
    inputs, rows = Stream[float32, WIDE], Stream[float32, WIDE]
    sums = Stream[float32]

    @task
    def load_input():
        for k in range(WORDS):
            inputs.put(x[k * WIDE : (k + 1) * WIDE])

    @task
    def load_weight():
        for k in range(WORDS):
            for n in range(N):
                rows.put(weight[n, k * WIDE : (k + 1) * WIDE])

    @task
    def multiply():
        held: float32[WIDE] = 0
        total: float32[N] = 0
        for k in range(WORDS):
            for n in range(N):
                if n == 0:
                    held = inputs.get()
                now = matmul(rows.get(), held) + (0.0 if k == 0 else total[n])
                total[n] = now
                if k == WORDS - 1:
                    sums.put(now)

    @task
    def store():
        for n in range(N):
            y[n] = sums.get() + bias[n]
