"""Heat along a line, in two halves: in each step both tasks send the end of theirs, and get that of the other."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, float32, program, stack, task

HALF, STEPS = 4, 12


@program
def heat(x: float32[2 * HALF], y: float32[2 * HALF]):
    begin = Stream[float32, HALF][2]
    edge = Stream[float32][2]
    end = Stream[float32, HALF][2]

    @task
    def load():
        for side in range(2):
            begin[side].put(x[side * HALF : side * HALF + HALF])

    @task(grid=(2,))
    def half(side):
        line: float32[HALF] = begin[side].get()
        for _ in range(STEPS):
            edge[1 - side].put(line[0] if side == 1 else line[HALF - 1])
            beside = edge[side].get()
            last = [line[0], beside] if side == 0 else [beside, line[HALF - 1]]
            left = stack([line[n - 1] if n > 0 else last[0] for n in range(HALF)])
            right = stack([line[n + 1] if n + 1 < HALF else last[1] for n in range(HALF)])
            line = line * 0.5 + (left + right) * 0.25
        end[side].put(line)

    @task
    def store():
        for side in range(2):
            y[side * HALF : side * HALF + HALF] = end[side].get()
