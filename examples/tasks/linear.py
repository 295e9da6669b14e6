"""A linear layer of a model, in its place: `penstock compile examples/digits_mlp.py:model#examples/tasks/linear.py`.

One task keeps the layer's input and meets the weights as they come, a word of WIDE numbers a cycle.
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
        for n in range(N):
            for k in range(WORDS):
                rows.put(weight[n, k * WIDE : (k + 1) * WIDE])

    @task
    def multiply():
        kept: float32[WORDS, WIDE] = 0
        for k in range(WORDS):
            kept[k, :] = inputs.get()
        for _ in range(N):
            total: float32 = 0
            for k in range(WORDS):
                total += matmul(rows.get(), kept[k, :])
            sums.put(total)

    @task
    def store():
        for n in range(N):
            y[n] = sums.get() + bias[n]
