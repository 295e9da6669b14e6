"""A convolution along a line: each element keeps one weight, values pass along, and sums grow as they pass."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int8, int32, program, task

N, TAPS = 16, 4


@program
def systolic_conv(x: int8[N], w: int8[TAPS], y: int32[N - TAPS + 1]):
    values, weights, sums = Stream[int8][TAPS], Stream[int8][TAPS], Stream[int32][TAPS]

    @task
    def load():
        for n in range(N):
            values[0].put(x[n])

    @task
    def load_w():
        for t in range(TAPS):
            weights[t].put(w[t])

    @task(grid=(TAPS,))
    def element(t):
        weight = weights[t].get()
        for n in range(N - t):
            value = values[t].get()
            if n >= 1 and t + 1 < TAPS:
                values[t + 1].put(value)
            if n < N - TAPS + 1:
                total = value * weight
                if t > 0:
                    total += sums[t - 1].get()
                sums[t].put(total)

    @task
    def store():
        for n in range(N - TAPS + 1):
            y[n] = sums[TAPS - 1].get()
