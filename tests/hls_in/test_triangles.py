"""Loops whose bounds follow from loops around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import RegionTiming, time_kernel
from penstock.compiler.hls_in.to_nests import nests_of_kernel
from penstock.compiler.simulator import VITIS, simulate


def cycles(tmp_path: Path, text: str) -> tuple[int, int]:
    """Cycles of a run, and the II of its innermost loop."""
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    timed = time_kernel(read_kernel(path, "top"), delays_for(300))
    latency = simulate(timed.design, VITIS).latency
    assert latency is not None
    return latency, max(one.ii for one in timed.schedules.values())


TWO = """void top(const float a[8][8], float o[8], float p[4]) {
  for (int i = 0; i < 8; i++) {
    float s = 0;
    for (int j = %s) s += a[i][j];
    for (int k = 0; k < 4; k++) p[k] = s;
    o[i] = s;
  }
}
"""


@pytest.mark.parametrize("head", ["0; j <= i; j++", "i; j < 8; j++", "i; j >= 0; j--", "7; j >= i; --j"])
def test_each_turn_counts_as_long_as_it_is(tmp_path: Path, head: str) -> None:
    whole, _ = cycles(tmp_path, TWO % "0; j < 8; j++")
    part, ii = cycles(tmp_path, TWO % head)
    assert ii > 1
    assert whole - part == ii * sum(range(8))


def test_turns_of_turns(tmp_path: Path) -> None:
    three = """void top(float a[8][8], const float b[8], float c[4]) {
      for (int i = 0; i < 8; i++)
        for (int j = 0; j <= %s; j++) {
          for (int k = 0; k <= %s; k++) a[i][j] -= a[i][k] * b[k];
          for (int k = 0; k < 4; k++) c[k] = a[i][j];
        }
    }"""
    inner, ii = cycles(tmp_path, three % ("7", "j"))
    whole, _ = cycles(tmp_path, three % ("7", "7"))
    assert whole - inner == 8 * ii * sum(range(8))
    both, _ = cycles(tmp_path, three % ("i", "j"))
    assert both < inner * 0.6


def test_a_loop_is_looked_at_once_where_those_that_decide_it_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four loops in one another, each as long as the one around says, all turns would be 40 to the third power."""
    looks, plain = list[None](), RegionTiming.phase

    def counted(*args: Any, **named: Any) -> Any:
        looks.append(None)
        return plain(*args, **named)

    monkeypatch.setattr(RegionTiming, "phase", counted)
    cycles(
        tmp_path,
        """void top(int a[40]) {
      for (int i = 0; i < 40; i++)
        for (int j = 0; j < i; j++) {
          a[j] += 1;
          for (int k = 0; k < j; k++) {
            a[k] += 2;
            for (int l = 0; l < k; l++) a[l] += i;
          }
        }
    }""",
    )
    assert len(looks) < 4 * 40 * 40


def test_values_of_such_loops_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(TWO % "0; j <= i; j++")
    kernel = read_kernel(path, "top")
    assert kernel.notes == ["loops whose bounds follow from loops around them are counted turn by turn"]
    with pytest.raises(PenstockError, match="whose bound follows from other loops") as refused:
        nests_of_kernel(kernel)
    assert refused.value.where == "kernel.cpp:4:5"


def test_a_loop_inside_of_a_pipeline_needs_constant_bounds(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text((TWO % "0; j <= i; j++").replace("float s", "\n#pragma HLS PIPELINE\nfloat s"))
    with pytest.raises(PenstockError, match="trip count of the loop over 'j' that is no constant"):
        read_kernel(path, "top")
