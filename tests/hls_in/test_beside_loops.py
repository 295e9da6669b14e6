"""What is computed beside a loop that its loop around is flattened with, and what is changed through a pointer."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.profiling.kernels.values import check_values

CLIPPED = """static int least(int a, int b) { return a < b ? a : b; }
static bool clipped(int a, int *to) {
  if (a < 0) return true;
  *to = least(a, 9);
  return false;
}
static void most(int a, int *to) { if (a > *to) *to = a; }
void top(const int a[64], int b[16][4]) {
"""
BODIES = {
    "changed once more before the loop": """
  for (int i = 0; i < 16; i++) {
    int v = -1;
    bool over = a[i] < 0;
    if (!over) v = a[i] < 9 ? a[i] : 9;
    for (int j = 0; j < 4; j++) b[i][j] = v + j;
  }""",
    "changed through a pointer before the loop": """
  for (int i = 0; i < 16; i++) {
    int v = -1;
    bool over = clipped(a[i], &v);
    for (int j = 0; j < 4; j++) b[i][j] = over ? j : v + j;
  }""",
    "changed through a pointer from turn to turn": """
  int v = 0;
  for (int i = 0; i < 16; i++) {
    most(a[4 * i], &v);
    b[i][0] = v;
  }""",
    "one of two that counters lead to": """
  for (int i = 0; i < 16; i++) {
    bool over = a[i] < 0;
    for (int j = 0; j < 4; j++) b[i][j] = over ? j : 2 * j;
  }""",
    "one of a count and a number": """
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 4; j++) b[i][j] = a[i] < 0 ? a[j] : 2 * i + j;""",
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_values_are_the_source_s(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(CLIPPED + BODIES[name] + "\n}\n")
    found = check_values(path, "top")
    assert found.equal, found.to_json()
