"""How many numbers fall into each of sixteen bins: the index of a memory is a value, counted up round by round."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, feed, int8, int32, program, task

N, BINS = 64, 16


@program
def histogram(A: int8[N], B: int32[BINS]):
    numbers = Stream[int8]
    feed(A, numbers)

    @task
    def count():
        bins: int32[BINS] = 0
        for _ in range(N):
            bins[(numbers.get() >> 4) + BINS // 2] += 1
        for k in range(BINS):
            B[k] = bins[k]
