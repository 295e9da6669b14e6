"""What comes back from one turn to the next through integers takes the cycles that its operations fill."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import time_kernel


def _ii(tmp_path: Path, text: str) -> int:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    timed = time_kernel(read_kernel(path, "top"), delays_for(300))
    return max(one.ii for one in timed.schedules.values())


CHASE = """void top(int table[256], int *r) {{
{pragma}
  int c = 1;
  for (int i = 0; i < 64; i++) {{
#pragma HLS pipeline II=1
    {body}
  }}
  *r = c;
}}
"""


@pytest.mark.parametrize("reads", [2, 3])
def test_each_load_at_an_address_that_comes_back_takes_its_cycle(tmp_path: Path, reads: int) -> None:
    """With more ports than loads: a memory of one piece would have the II by its ports."""
    body = "c = " + "table[" * reads + "c" + "]" * reads + ";"
    assert _ii(tmp_path, CHASE.format(pragma="", body=body)) == reads


def test_an_address_that_comes_back_from_external_memory_waits_for_it(tmp_path: Path) -> None:
    pragma = "#pragma HLS interface m_axi port=table"
    assert _ii(tmp_path, CHASE.format(pragma=pragma, body="c = table[c];")) >= 64


ROUNDS = """void top(int data[64], int *r) {
#pragma HLS array_partition variable=data cyclic factor=8 dim=1
  int c = 1;
  for (int i = 0; i < 64; i += 8) {
#pragma HLS pipeline II=1
    for (int j = 0; j < 8; j++) c = %s;
  }
  *r = c;
}
"""


def test_rounds_that_wait_for_each_other_fill_cycles(tmp_path: Path) -> None:
    assert _ii(tmp_path, ROUNDS % "(c ^ data[i + j]) + 12345") == 4  # two rounds of 1.17 ns fill the 2.43 ns of a cycle


def test_sums_that_may_be_put_in_another_order_do_not_wait(tmp_path: Path) -> None:
    assert _ii(tmp_path, ROUNDS % "c + data[i + j]") == 1
    assert _ii(tmp_path, CHASE.format(pragma="", body="if (table[i] > c) c = table[i];")) == 1


KEPT = """void top(const short at[256], const int z[256], int held[128], int seen[128]) {{
  for (int i = 0; i < 256; i++) {{
#pragma HLS pipeline II=1
{pragma}
    {body}
  }}
}}
"""


@pytest.mark.parametrize(
    ("body", "ii"),
    [
        ("if (z[i] < held[at[i] & 127]) held[at[i] & 127] = z[i];", 2),  # a word decides whether the next is written
        ("held[held[i & 127] & 127] = z[i];", 2),  # and where
        ("if (z[i] < held[at[i] & 127]) seen[at[i] & 127] = z[i];", 1),
        ("if (z[i] < 0) held[at[i] & 127] = z[i];", 1),
    ],
)
def test_a_word_that_decides_of_a_store_is_waited_for(body: str, ii: int, tmp_path: Path) -> None:
    assert _ii(tmp_path, KEPT.format(pragma="", body=body)) == ii
    assert _ii(tmp_path, KEPT.format(pragma="#pragma HLS dependence variable=held inter false", body=body)) == 1
