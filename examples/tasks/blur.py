"""A stencil on an image that comes pixel by pixel: two rows are kept, and a window of nine pixels moves along them."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false

from penstock.tasks import Stream, feed, grid, int8, int32, program, task, unroll

H, W = 6, 8


@program
def blur(image: int8[H, W], sums: int32[H - 2, W - 2]):
    pixels = Stream[int8]
    feed(image, pixels)

    @task
    def stencil():
        rows: int8[2, W] = 0
        window: int32[3, 3] = 0
        for r, c in grid(H, W):
            pixel = pixels.get()
            column = [rows[0, c], rows[1, c], pixel]
            rows[0, c] = rows[1, c]
            rows[1, c] = pixel
            for k in unroll(3):
                window[k, 0] = window[k, 1]
                window[k, 1] = window[k, 2]
                window[k, 2] = column[k]
            if r >= 2 and c >= 2:
                sums[r - 2, c - 2] = sum(window)
