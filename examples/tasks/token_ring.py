"""A ring of stations: one puts a token in, the others pass it on, each with something done to it, until it is back."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int32, program, task

STATIONS, LAPS = 4, 8


@program
def token_ring(A: int32[LAPS], B: int32[LAPS]):
    ring = Stream[int32][STATIONS]

    @task
    def first():
        for lap in range(LAPS):
            ring[1].put(A[lap])
            B[lap] = ring[0].get()

    @task(grid=(STATIONS - 1,))
    def station(i):
        for _ in range(LAPS):
            ring[(i + 2) % STATIONS].put(ring[i + 1].get() * 2 + i)
