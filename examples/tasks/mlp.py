"""Three layers as three tasks in a row: while one works on an input, the one before it works on the next."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, int8, int32, matmul, program, task

B, D0, D1, D2, D3 = 4, 16, 8, 8, 8


def relu8(x):
    """As an eight-bit number that is not negative."""
    return int8(min(max(x >> 6, 0), 127))


@program
def mlp(x: int8[B, D0], w1: int8[D1, D0], w2: int8[D2, D1], w3: int8[D3, D2], y: int32[B, D3]):
    first, second, third = Stream[int8, D0], Stream[int8], Stream[int8]

    @task
    def load():
        for n in range(B):
            first.put(x[n, :])

    @task
    def layer1():
        held: int8[D0] = 0
        for _ in range(B):
            for o in range(D1):
                if o == 0:
                    held = first.get()
                second.put(relu8(matmul(w1[o, :], held)))

    @task
    def layer2():
        row: int8[D1] = 0
        for _ in range(B):
            for i in range(D1):
                row[i] = second.get()
            for o in range(D2):
                third.put(relu8(matmul(w2[o, :], row)))

    @task
    def layer3():
        row: int8[D2] = 0
        for n in range(B):
            for i in range(D2):
                row[i] = third.get()
            for o in range(D3):
                y[n, o] = matmul(w3[o, :], row)
