"""Workers over shards of a tensor, on fewer elements than there are workers.

Dato's first example, with a sum that is kept, and a mapping: each task has an instance a shard, and `bundle` lets SHARE
of them take turns on one element. All that load, or store, share one, since a tensor has one port.
"""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Layout, Stream, bundle, int8, int32, program, task

N, SHARDS, SHARE = 32, 8, 4


@program
def shared_elements(A: int8[N], B: int32[N]):
    given, back = Stream[int8][SHARDS], Stream[int32][SHARDS]

    @task(grid=(SHARDS,))
    def load(p, A: int8[N] @ Layout("S0")):
        for i in range(N // SHARDS):
            given[p].put(A[i])

    @task(grid=(SHARDS,))
    def worker(p):
        total: int32 = 0
        for _ in range(N // SHARDS):
            total += given[p].get()
            back[p].put(total)

    @task(grid=(SHARDS,))
    def store(p, B: int32[N] @ Layout("S0")):
        for i in range(N // SHARDS):
            B[i] = back[p].get()

    bundle(load)
    bundle(worker, SHARE)
    bundle(store)
