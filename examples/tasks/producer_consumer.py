"""The smallest program: a producer that sends all of A, and a consumer that adds 1 to each number."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, feed, int8, int32, program, task

N = 16


@program
def producer_consumer(A: int8[N], B: int32[N]):
    z = Stream[int8]
    feed(A, z)

    @task
    def consumer():
        for i in range(N):
            B[i] = z.get() + 1
