"""A softmax over rows of eight numbers (float32). Its body may be one written by hand, in HLS C++.

The one by hand knows that its numbers are small: it looks for no largest, and subtracts nothing.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportCallIssue=false

from penstock.tasks import Stream, collect, exp, feed, float32, inject, program, task

ROWS = 16

SOFTMAX = """
// Scores of a normalised layer are within +-80, where exp neither overflows nor vanishes.
typedef hls::vector<float, 8> row_t;

void softmax8(hls::stream<row_t> &scores, hls::stream<row_t> &weights) {
    for (int r = 0; r < 16; ++r) {
#pragma HLS PIPELINE II = 1
        const row_t row = scores.read();
        row_t e;
        for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
            e[i] = pk::exp(row[i]);
        }
        const float total = ((e[0] + e[1]) + (e[2] + e[3])) + ((e[4] + e[5]) + (e[6] + e[7]));
        for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
            e[i] = e[i] / total;
        }
        weights.write(e);
    }
}
"""


@program
def softmax_of_rows(X: float32[ROWS, 8], Y: float32[ROWS, 8]):
    scores, weights = Stream[float32, (8,)], Stream[float32, (8,)]
    feed(X, scores)
    collect(weights, Y)

    @task
    def softmax():
        for _ in range(ROWS):
            row = scores.get()
            e = exp(row - max(row, axis=0))
            weights.put(e / sum(e, axis=0))

    inject(
        softmax, "by_hand", cpp=SOFTMAX, function="softmax8", reads={"scores": ROWS}, writes={"weights": ROWS},
        ii=1, depth=42, lut=14300, ff=9717, dsp=70,
    )  # fmt: skip
