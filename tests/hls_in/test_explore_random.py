"""Random kernels with inner loops beside other statements, in any legal shape: all at once by a compiler."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

from penstock.compiler.hls_in.parsing import parse
from penstock.profiling.csim import find_compiler
from penstock.profiling.kernels.explore.moves import NestShape, fused, gathered, nests_of, shaped
from penstock.profiling.kernels.explore.source import KernelSource, named_apart, read_source

_KERNELS = 12
_CALL = """  for (int turn = 0; turn < 3; turn++) {{
    fill();
    given{n}::top(A[0], B[0], C[0]);
    made{n}::top(A[1], B[1], C[1]);
    const bool same = !std::memcmp(A[0], A[1], sizeof A[0]) && !std::memcmp(B[0], B[1], sizeof B[0]);
    if (!same || std::memcmp(C[0], C[1], sizeof C[0])) std::printf("{n} ");
  }}
"""
_MAIN = """int A[2][12][12], B[2][12], C[2][12][12];
static unsigned state = 7;
void fill() {
  for (int i = 0; i < 300; i++) {
    state = state * 1664525u + 1013904223u;
    const int value = (int)(state >> 24) % 11 - 5;
    for (int k = 0; k < 2; k++)
      *(i < 144 ? &A[k][0][0] + i : i < 156 ? B[k] + i - 144 : &C[k][0][0] + i - 156) = value;
  }
}
"""


def _kernel(draw: random.Random) -> str:
    def index(counters: list[str]) -> str:
        return draw.choice(counters) + draw.choice([" - 1", "", "", "", " + 1"])

    def word(counters: list[str]) -> str:
        wide = f"[{index(counters)}][{index(counters)}]"
        return draw.choice([f"a{wide}", f"c{wide}", f"b[{index(counters)}]", str(draw.randint(1, 9))])

    def place(counters: list[str]) -> str:
        return draw.choice([f"a[{index(counters)}][{index(counters)}]", f"b[{index(counters)}]"])

    nests: list[str] = []
    for _ in range(draw.randint(1, 2)):
        known = ["i", "j"]
        body: list[str] = []
        if draw.random() < 0.5:
            body.append(f"int r = {draw.choice(known)} + {draw.choice('01')};")
            known = [*known, "r"]
        body.append(f"int s = {word(known)};")
        for _ in range(draw.randint(1, 2)):
            inner = [*known, "k"]
            turn = f"s += {word(inner)} * {word(inner)};"
            if draw.random() < 0.4:
                turn += f" {place(inner)} = s + {word(inner)};"
            if draw.random() < 0.3:
                turn = f"if ({word(inner)} > 2) {{ {turn} }}"
            body.append(f"for (int k = 1; k < {draw.randint(3, 4)}; k++) {{ {turn} }}")
        body.append(f"c[{index(known)}][{index(known)}] = s;" if draw.random() < 0.5 else f"{place(known)} += s;")
        nests.append(f"for (int i = 1; i < 7; i++) for (int j = 1; j < 5; j++) {{ {' '.join(body)} }}")
    return "void top(int a[12][12], int b[12], int c[12][12]) {\n" + "\n".join(nests) + "\n}\n"


def _moved(source: KernelSource, draw: random.Random) -> tuple[str, int]:
    """The source in random legal shapes, and how many of its nests these change."""
    nodes = gathered(fused(source.nodes))
    shapes: dict[tuple[int, ...], NestShape] = {}
    for nest in nests_of(nodes):
        order = draw.choice(nest.orders())
        tiles = tuple(draw.choice([d for d in range(1, s.trip + 1) if s.trip % d == 0]) for s in nest.spans)
        ways = [NestShape(order, tiles), NestShape(order, nest.plain.tiles)]
        shapes[nest.path] = next(one for one in ways if nest.allows(one, nest.dependences()))
    changed = sum(shapes[nest.path] != nest.plain for nest in nests_of(nodes))
    return replace(source, nodes=nodes).with_nodes(shaped(nodes, shapes, source.names), {}), changed


def test_gathered_loops_keep_their_values_in_any_legal_shape(tmp_path: Path) -> None:
    draw = random.Random(3)
    parts, calls, moved = ["#include <cstdio>\n#include <cstring>\n"], "", 0
    for number in range(_KERNELS):
        path = tmp_path / "kernel.cpp"
        path.write_text(_kernel(draw))
        source = read_source(named_apart(parse(path), "top", tmp_path / f"named{number}"), "top")
        text, changed = _moved(source, draw)
        moved += changed
        parts += [f"namespace given{number} {{\n{path.read_text()}}}\n", f"namespace made{number} {{\n{text}}}\n"]
        calls += _CALL.format(n=number)
    program = tmp_path / "main.cpp"
    program.write_text("".join([*parts, _MAIN, "int main() {\n", calls, "}\n"]))
    built = tmp_path / "main"
    subprocess.run([find_compiler(), "-std=c++14", "-w", "-fwrapv", str(program), "-o", str(built)], check=True)
    assert subprocess.run([str(built)], check=True, capture_output=True, text=True).stdout == ""
    assert moved >= _KERNELS // 2
