"""A sender that may be a few tokens ahead, and no more: the receiver sends a credit back for each that it has used."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int2, int8, int32, program, task

N, CREDITS = 24, 4


@program
def credits(A: int8[N], B: int32[N]):
    data, credit = Stream[int8], Stream[int2]

    @task
    def send():
        for i in range(N):
            if i >= CREDITS:
                credit.get()
            data.put(A[i])
        for _ in range(CREDITS):
            credit.get()

    @task
    def receive():
        total: int32 = 0
        for i in range(N):
            total += data.get()
            B[i] = total
            credit.put(1)
