"""The smallest program with a grid: each producer sends its part of A to a consumer, which adds 1."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int8, int32, program, task

N = 16


@program
def producer_consumer(A: int8[N], B: int32[N]):
    z = Stream[int8]

    @task
    def producer():
        for i in range(N):
            z.put(A[i])

    @task
    def consumer():
        for i in range(N):
            B[i] = z.get() + 1
