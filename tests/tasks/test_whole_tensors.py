"""`feed` and `collect`: whole tensors sent into streams and stored out of them, as elements, tiles and lanes."""

from __future__ import annotations

import pytest

from penstock.compiler.errors import PenstockError
from tests.tasks.programs import answered, drawn, read

TILES = """
@program
def p(A: int8[4, 8], B: int8[4, 8]):
    tiles, rows = Stream[int8, (2, 4)], Stream[int8, 4]
    feed(A, tiles)

    @task
    def upper_rows_first():
        held: int8[2, 8] = 0
        for _ in range(2):
            for k in range(2):
                held[:, k * 4 : k * 4 + 4] = tiles.get()
            for r in range(2):
                for k in range(2):
                    rows.put(held[r, k * 4 : k * 4 + 4])

    collect(rows, B)
"""
LANES = """
@program
def p(A: int8[4, 8], B: int8[4, 8]):
    own, sums = Stream[int8, 8][4], Stream[int8][4, 8]
    feed(A, own)

    @task(grid=(4,))
    def work(i):
        row = own[i].get()
        for k in unroll(8):
            sums[i, k].put(row[k])

    collect(sums, B)
"""


@pytest.mark.parametrize("text", [TILES, LANES], ids=["tiles", "arrays of streams"])
def test_a_tensor_goes_in_and_comes_out_in_its_order(text: str) -> None:
    network = read(text)
    inputs = drawn(network)
    assert (answered(network, inputs) == inputs["A"]).all()
    assert {"feed_A", "collect_B"} <= {one.task.name for one in network.instances}


WRONG = {
    "feed(A)": "feed takes two arguments",
    "feed(B, a)": "a carries int8[8], and B is int32[4, 8]",
    "feed(a, A)": "the stream a is no tensor",
    "feed(A, b[0])": "no elements",
    "feed(A, c)": "does not come apart into tokens int8[3] of c",
    "feed(A, e)": "does not come apart into tokens int8 of e",
    "collect(A, a)": "the stream a is no tensor",
    "feed(A, a)": "there is a task 'feed_A' already",
}


@pytest.mark.parametrize("call", WRONG)
def test_what_cannot_be_sent_is_refused_at_the_call(call: str) -> None:
    streams = "a, b, c, e = Stream[int8, 8], Stream[int8][4], Stream[int8, 3], Stream[int8][3]"
    text = f"@program\ndef p(A: int8[4, 8], B: int32[4, 8]):\n    {streams}\n    feed(A, a)\n    {call}"
    with pytest.raises(PenstockError) as caught:
        read(text)
    assert WRONG[call] in caught.value.what
    assert call in caught.value.excerpt
