"""What a top returns: one more result to whoever asks for values, and nothing to whoever asks for cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline, graphs
from penstock.compiler.hls_in.timed import time_kernel
from penstock.profiling.kernels.values import check_values

RETURNING = {
    "a sum behind a loop": "int top(const int a[8]) { int s = 0; for (int i = 0; i < 8; i++) s += a[i]; return s; }",
    "a choice": "short top(const short a[4], int up) { if (up & 1) return a[0]; return a[1] * 3 - up; }",
    "a bool": "bool top(const int a[9]) { bool f = false; for (int i = 0; i < 9; i++) f |= a[i] == 3; return f; }",
    "few bits": """#include "ap_int.h"
ap_uint<12> top(const ap_uint<12> a[8]) { ap_uint<12> s = 1; for (int i = 0; i < 8; i++) s += a[i]; return s; }""",
    "beside arrays, by a name that an argument has": """float top(const float a[8], float returned[8]) {
  float s = 0; for (int i = 0; i < 8; i++) { returned[i] = a[i] * 2; s += a[i]; } return s; }""",
    "a pipelined function": """float top(const float a[16], const float b[16]) {
#pragma HLS PIPELINE
  float s = 0; for (int i = 0; i < 16; i++) s += a[i] * b[i]; return s; }""",
}


@pytest.mark.parametrize("name", RETURNING)
def test_it_is_compared_at_every_level(tmp_path: Path, name: str) -> None:
    path = tmp_path / "k.cpp"
    path.write_text(RETURNING[name])
    check = check_values(path, "top", sets=4)
    assert check.equal
    results = 1 + 8 * ("returned[8]" in RETURNING[name])
    assert [level.compared for level in check.levels] == [4 * results, 4 * results]


def test_a_wrong_one_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.cpp"
    path.write_text("int top(int a) { return a + 1; }")
    from penstock.profiling.kernels import values

    plain = values.random_memories
    monkeypatch.setattr(values, "random_memories", lambda *given, **more: dict(plain(*given, **more)))
    assert check_values(path, "top").equal
    text = path.read_text()
    found = values.kernel_nests(path, "top", 100)
    path.write_text(text.replace("+ 1", "+ 2"))
    monkeypatch.setattr(values, "kernel_nests", lambda *_, **__: found)
    assert not check_values(path, "top").equal


def test_cycles_do_not_depend_on_who_asks(tmp_path: Path) -> None:
    path = tmp_path / "k.cpp"
    path.write_text(RETURNING["a sum behind a loop"])
    assert read_kernel(path, "top").beyond
    assert not read_kernel(path, "top", values=True).beyond


def test_what_a_pipelined_function_computes_for_its_caller_is_hardware(tmp_path: Path) -> None:
    """Nobody but the caller asks for the sum, and that is enough."""
    path = tmp_path / "k.cpp"
    path.write_text(RETURNING["a pipelined function"])
    delays = delays_for(300)
    timed = time_kernel(read_kernel(path, "top"), delays)
    (item,) = [one for one in graphs(timed.kernel.body) if isinstance(one, Pipeline)]
    found = timed.schedules[item]
    assert found.ii == 8  # two words of each array a cycle
    assert found.depth > 8 + delays.stages(next(n for n in item.graph.nodes if n.op == "mul"))
    assert any("add" in name for name in found.units)


def test_a_number_that_a_dataflow_region_returns_is_still_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.cpp"
    path.write_text("""int top(const int a[8], int b[8]) {
#pragma HLS DATAFLOW
  for (int i = 0; i < 8; i++) b[i] = a[i];
  return a[3];
}""")
    with pytest.raises(PenstockError, match="the number that the top returns"):
        check_values(path, "top")
