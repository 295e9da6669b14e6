"""The best local match of two sequences: an element for each letter of the first, past which the second goes."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportPossiblyUnboundVariable=false

from penstock.tasks import Stream, int8, int32, program, task, where

N, M = 4, 8
MATCH, MISMATCH, GAP = 2, -1, -1


@program
def smith_waterman(a: int8[N], b: int8[M], best: int32[1]):
    letters, own, scores, tops = Stream[int8][N + 1], Stream[int8][N], Stream[int32][N + 1], Stream[int32][N + 1]

    @task
    def load():
        for i in range(N):
            own[i].put(a[i])

    @task
    def feed():
        for j in range(M):
            letters[0].put(b[j])
            scores[0].put(0)
        tops[0].put(0)

    @task(grid=(N,))
    def element(i):
        letter = own[i].get()
        left: int32 = 0
        corner: int32 = 0
        top: int32 = 0
        for _ in range(M):
            other = letters[i].get()
            above = scores[i].get()
            score = max(0, corner + where(letter == other, MATCH, MISMATCH), max(above, left) + GAP)
            corner = above
            left = score
            top = max(top, score)
            scores[i + 1].put(score)
            if i + 1 < N:
                letters[i + 1].put(other)
        tops[i + 1].put(max(top, tops[i].get()))

    @task
    def store():
        for _ in range(M):
            last = scores[N].get()
        best[0] = max(tops[N].get(), last)
