"""A model's layers as a block between tasks written by hand: pixels are scaled, scores become a margin.

The model is named, here one of the zoo; its layers become tasks and streams as if they stood here, with its weights.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false

from penstock.tasks import Stream, block, float32, int8, program, task

PIXELS, CLASSES = 16, 10


@program
def margin(image: int8[PIXELS], best: float32[2]):
    pixels = Stream[float32]
    scores = Stream[float32]

    @task
    def scale():
        for i in range(PIXELS):
            pixels.put(image[i] * 0.0078125)

    block("zoo:mlp?inputs=16&hidden=8", pixels, scores, lanes=4)

    @task
    def two_best():
        first: float32 = -1000000.0
        second: float32 = -1000000.0
        for _ in range(CLASSES):
            score = scores.get()
            second = max(second, min(first, score))
            first = max(first, score)
        for place in range(2):
            best[place] = first if place == 0 else first - second
