"""Two workers in turns: rows go to the one and the other, and come back in order, while both are busy."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int8, int32, program, task

ROWS, N = 8, 16


@program
def ping_pong(A: int8[ROWS, N], B: int32[ROWS]):
    ball = Stream[int8][2]
    back = Stream[int32][2]

    @task
    def serve():
        for r in range(ROWS // 2):
            for side in range(2):
                for n in range(N):
                    ball[side].put(A[2 * r + side, n])

    @task(grid=(2,))
    def worker(side):
        for _ in range(ROWS // 2):
            total: int32 = 0
            for _ in range(N):
                x = ball[side].get()
                total += x * x
            back[side].put(total)

    @task
    def collect():
        for r in range(ROWS // 2):
            for side in range(2):
                B[2 * r + side] = back[side].get()
