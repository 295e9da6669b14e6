"""Links of a chain: each adds its own number to what passes, and hands it on."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int8, int32, program, task

N, LINKS = 16, 4


@program
def daisy_chain(A: int8[N], B: int32[N]):
    chain = Stream[int32][LINKS + 1]

    @task
    def load():
        for n in range(N):
            chain[0].put(A[n])

    @task(grid=(LINKS,))
    def link(i):
        for _ in range(N):
            chain[i + 1].put(chain[i].get() + (i + 1))

    @task
    def store():
        for n in range(N):
            B[n] = chain[LINKS].get()
