"""Plain C kernels made fast: the same values bit for bit, never above the limits, and nothing moved that may not."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.parsing import parse
from penstock.profiling.kernels.explore import search
from penstock.profiling.kernels.explore.accesses import Accesses, CounterSum, WordAccess
from penstock.profiling.kernels.explore.legality import Span, directions, may_permute, may_split, may_tile
from penstock.profiling.kernels.explore.moves import fused, nests_of
from penstock.profiling.kernels.explore.search import ExploredKernel, explore_kernel
from penstock.profiling.kernels.explore.source import read_source
from penstock.services.cli.main import run

SOURCES = {
    "a product": """
void top(float A[12][20], float B[20][16], float C[12][16]) {
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 16; j++) {
      C[i][j] = 0; // a sum in one word
      for (int k = 0; k < 20; k++) C[i][j] += A[i][k] * B[k][j];
    }
}
""",
    "in place, each from its neighbours": """
void top(float A[24][24]) {
  for (int t = 0; t < 3; t++)
    for (int i = 1; i < 23; i++)
      for (int j = 1; j < 23; j++) A[i][j] = (A[i - 1][j + 1] + A[i][j - 1] + A[i + 1][j]) / 3.0f;
}
""",
    "bounds that do not begin at nought, and steps": """
#define N 30
void top(int a[N], int b[N]) {
  for (int x = 0; x < 4; x++)
    for (int i = 2; i <= 28; i += 2) {
      int twice = a[i] * 2;
      if (twice > x) { b[i] += twice; } else b[i - 1] = x;
    }
}
""",
    "counters declared before the loops": """
#define N 24
void top(float A[N][N], float x[N], float y[N]) {
  int i, j;
  for (i = 0; i < N; i++) y[i] = 0;
  for (i = 0; i < N; i++)
    for (j = 0; j < N; j++) /* along a row */ y[i] += A[i][j] * x[j];
}
""",
    "loops of one turn": """
void top(int A[1][8], int y[1]) {
  for (int i = 0; i < 1; i++)
    for (int j = 0; j < 8; j++) A[i][j] += j;
  for (int i = 0; i < 1; i++) y[i] = A[0][i] * 3;
}
""",
    "letters of several bytes": """\ufeff// \u00e9
void top(int A[8]) {
  /* \u00e9\u4e2d */ for (int i = 0; i < 8; i++) /* \U0001f600 */ A[i] += 3; /* \u00e9 */ A[1] = 2;
}
""",
    "no loop": """
void top(int a, int *b, int c[4]) {
  *b = a + 1;
  c[1] = c[2];
}
""",
    "names that several variables have": """
int k;
void top(float A[16][8], float x[8], float y[16], float i) {
  float z = i;
  for (int i = 0; i < 16; i++) {
    float s = 0; // s, the first
    for (int j = 0; j < 8; j++) s += A[i][j] * x[j];
    y[i] = s;
  }
  for (int k = 0; k < 16; k++) {
    float s = y[k];
    if (s > z) { float z = s * 2; s = z; }
    y[k] = s - z;
  }
}
""",
    "a head with several counters": """
void top(const int a[64], int b[8][8], int c[8]) {
  int j = 3;
  for (int n = 0, i = 0, j = 0; n < 64; n++, j++) { if (j == 8) { j = 0; i++; } b[i][j] = a[n]; }
  for (int i = 0; i < 8; i++) {
    int r = j;
    for (int j = 0; j < 8; j++) r += b[i][j];
    c[i] = r;
  }
}
""",
    "a sum in a variable": """
void top(float A[16][32], float x[32], float y[16]) {
  for (int i = 0; i < 16; i++) {
    float sum = 0;
    for (int j = 0; j < 32; j++) sum += A[i][j] * x[j];
    y[i] = sum;
  }
}
""",
}


def _written(text: str, folder: Path) -> Path:
    path = folder / "kernel.cpp"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_values_are_the_sources_and_limits_are_kept(name: str, tmp_path: Path) -> None:
    found = explore_kernel(_written(SOURCES[name], tmp_path), "top", limits={"dsp": 40}, trials=10)
    assert found.equal
    assert found.compared > 0
    assert found.area["dsp"] <= 40
    assert found.latency <= found.latency_before


def test_a_product_takes_as_many_lanes_as_its_limit_allows(tmp_path: Path) -> None:
    path = _written(SOURCES["a product"], tmp_path)
    few = explore_kernel(path, "top", limits={"dsp": 20}, trials=20)
    many = explore_kernel(path, "top", limits={"dsp": 80}, trials=20)
    assert few.area["dsp"] <= 20 < many.area["dsp"] <= 80
    assert many.latency < few.latency < few.latency_before / 8
    assert "array_partition" in many.text


def _nest(generator: random.Random) -> tuple[Accesses, list[Span], list[tuple[list[CounterSum], CounterSum]]]:
    """A loop nest with one store of a sum of loads, all of one array of one dimension or two."""
    loops = [
        Span(name, generator.randint(-1, 2), generator.choice((1, 1, 2)), generator.randint(1, 4))
        for name in "ijk"[: generator.randint(2, 3)]
    ]
    rank = generator.randint(1, 2)

    def form() -> CounterSum:
        factors = {s.variable: generator.choice((0, 0, 1, 1, -1, 2)) for s in loops}
        return CounterSum(generator.randint(-2, 2), {n: f for n, f in factors.items() if f})

    index = [tuple(form() for _ in range(rank)) for _ in range(generator.randint(2, 3))]
    touched = tuple(WordAccess("a", one, at == 0) for at, one in enumerate(index))
    return Accesses(touched), loops, [([*one], one[0]) for one in index]


def _at(index: list[CounterSum], values: dict[str, int]) -> tuple[int, ...]:
    return tuple(f.base + sum(factor * values[n] for n, factor in f.factors.items()) for f in index)


def _run(accesses: Accesses, loops: list[Span], turns: list[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    memory: dict[tuple[int, ...], int] = {}
    store, *loads = accesses.touched
    for turn in turns:
        values = {s.variable: s.first + s.step * t for s, t in zip(loops, turn, strict=True)}
        read = 0
        for load in loads:
            place = _at([one for one in load.index if one is not None], values)
            read = read * 31 + memory.get(place, hash(place) % 1009)
        memory[_at([one for one in store.index if one is not None], values)] = (read * 7 + 3) % 1000003
    return memory


def test_what_may_be_moved_changes_no_value_in_random_nests() -> None:
    generator = random.Random(5)
    moved = refused = tiled = 0
    for _ in range(300):
        accesses, loops, _ = _nest(generator)
        turns = list(product(*(range(s.trip) for s in loops)))
        expected = _run(accesses, loops, turns)
        found = directions(accesses, loops)
        for order in permutations(range(len(loops))):
            again = sorted(turns, key=lambda t: [t[i] for i in order])
            if may_permute(found, order):
                moved += order != tuple(range(len(loops)))
                assert _run(accesses, loops, again) == expected
            else:
                refused += 1
            tiles = [generator.choice([d for d in range(1, s.trip + 1) if s.trip % d == 0]) for s in loops]
            if max(tiles) > 1 and may_tile(found, order, tiles):
                tiled += 1
                cut = sorted(turns, key=lambda t: ([t[i] // tiles[i] for i in order], t))
                assert _run(accesses, loops, cut) == expected
    assert moved > 50
    assert tiled > 50
    assert refused > 50


def test_an_order_that_breaks_a_dependence_is_refused() -> None:
    i, j = Span("i", 1, 1, 6), Span("j", 0, 1, 6)
    store = WordAccess("a", (CounterSum(0, {"i": 1}), CounterSum(0, {"j": 1})), True)
    load = WordAccess("a", (CounterSum(-1, {"i": 1}), CounterSum(1, {"j": 1})), False)
    found = directions(Accesses((store, load)), [i, j])
    assert found == {(1, -1)}
    assert not may_permute(found, (1, 0))
    assert not may_tile(found, (0, 1), (2, 2))
    assert may_tile(found, (0, 1), (1, 2))


def test_loops_are_split_only_where_nothing_goes_back() -> None:
    i = Span("i", 0, 1, 8)
    first = Accesses((WordAccess("a", (CounterSum(0, {"i": 1}),), True),))
    behind = Accesses((WordAccess("a", (CounterSum(0, {"i": 1}),), False),))
    ahead = Accesses((WordAccess("a", (CounterSum(1, {"i": 1}),), False),))
    assert may_split(first, behind, [i])
    assert not may_split(first, ahead, [i])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("void top(float a[8]) {\n  for (int i = 0; i < 8; i++) {\n    i += 1;\n    a[i] = 0;\n  }\n}\n", "3:"),
        ("void top(float a[8]) {\n#pragma HLS dataflow\n  for (int i = 0; i < 8; i++) a[i] = 0;\n}\n", "2:"),
        ("void top(float a[8], int n) {\n  for (int i = 0; i < n; i++) a[i] = 0;\n}\n", "2:"),
    ],
)
def test_what_is_not_explored_is_refused_with_its_place(text: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as refused:
        explore_kernel(_written(text, tmp_path), "top", trials=4)
    assert f"kernel.cpp:{place}" in (refused.value.where or "")
    assert refused.value.hint


def test_a_source_that_is_not_bettered_keeps_its_names(tmp_path: Path) -> None:
    text = SOURCES["names that several variables have"]
    assert explore_kernel(_written(text, tmp_path), "top", trials=1).text == text


def test_the_command_writes_source_and_report(tmp_path: Path) -> None:
    path, out = _written(SOURCES["a product"], tmp_path), tmp_path / "out"
    asked = ["explore", str(path), "--top", "top", "--platform", "zu3eg", "--limit", "dsp<=30", "--trials", "10"]
    assert run([*asked, "-o", str(out)]) == 0
    report = json.loads((out / "exploration.json").read_text())
    assert report["equal"]
    assert report["limits"]["dsp"] == 30
    assert "pragma HLS pipeline" in (out / "kernel.cpp").read_text()
    assert np.isfinite(report["latency"])
    assert run(["explore", str(path)]) == 1


@pytest.mark.parametrize(
    "odd", [["--evidence", "csynth"], ["--seed", "4"], ["--save", "x.json"], ["--quantize", "w8a8"]]
)
def test_options_that_a_kernel_does_not_take_are_refused(
    odd: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _written(SOURCES["a product"], tmp_path)
    assert run(["explore", str(path), "--top", "top", *odd]) != 0
    assert f"{odd[0]} of a C++ kernel" in capsys.readouterr().err


def test_a_source_with_other_values_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*given: Any, **asked: Any) -> ExploredKernel:
        return replace(explore_kernel(*given, **asked), different=1)

    monkeypatch.setattr(search, "explore_kernel", wrong)
    path, out = _written(SOURCES["a product"], tmp_path), tmp_path / "out"
    assert run(["explore", str(path), "--top", "top", "--trials", "4", "-o", str(out)]) == 1
    assert not out.exists()
    assert "is not written" in capsys.readouterr().out


def test_a_folder_that_cannot_be_is_told_before_the_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _written(SOURCES["a product"], tmp_path)
    assert run(["explore", str(path), "--top", "top", "-o", str(path)]) != 0
    assert "internal error" not in capsys.readouterr().err


TASKS = """
const int N = 24;
void top(float A[N][N], float B[N][N], float C[N][N], float D[N][N]) {
  float mid[N][N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      mid[i][j] = 0;
      for (int k = 0; k < N; k++) mid[i][j] += A[i][k] * B[k][j];
    }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      D[i][j] = 1;
      for (int k = 0; k < N; k++) D[i][j] += mid[i][k] * C[k][j];
    }
}
"""


def test_loops_become_tasks_with_one_producer_of_each_array(tmp_path: Path) -> None:
    path = _written(TASKS, tmp_path)
    found = explore_kernel(path, "top", limits={"ff": 5000}, objective="throughput", trials=40)
    assert found.equal
    assert found.tasks == 2
    assert "#pragma HLS dataflow" in found.text
    assert found.text.count("static void") == 2
    assert found.interval < found.latency
    assert explore_kernel(path, "top", limits={"dsp": 60}, trials=6).tasks == 1


def test_neighbours_are_joined_only_where_nothing_goes_back(tmp_path: Path) -> None:
    def nests(index: str) -> int:
        text = (
            "void top(int a[40], int b[40], int c[40]) {\n"
            "  for (int i = 1; i < 39; i++) a[i] = c[i] * 3;\n"
            f"  for (int i = 1; i < 39; i++) b[i] = a[{index}] + 1;\n}}\n"
        )
        source = read_source(parse(_written(text, tmp_path)), "top")
        return len(nests_of(fused(source.nodes)))

    assert nests("i") == nests("i - 1") == 1
    assert nests("i + 1") == 2


@pytest.mark.parametrize("trials", [1, 2, 3, 9])
def test_no_more_sources_are_tried_than_were_asked_for(trials: int, tmp_path: Path) -> None:
    """The given one counts: whoever asks for one has one."""
    told: list[int] = []
    found = explore_kernel(
        _written(SOURCES["a product"], tmp_path), "top", trials=trials, watch=lambda one: told.append(one.number)
    )
    assert len(told) == found.trials <= trials
    assert told == list(range(len(told)))
    if trials == 1:
        assert (found.chosen, found.text) == (0, SOURCES["a product"])
