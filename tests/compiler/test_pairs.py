"""Lanes that share a multiplier: which find each other, what they are counted as, and that they compute the same."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.pairs import CHAINED, LONGEST_CHAIN, PAIRED, Cascade, Pairing, pair_up
from penstock.compiler.backend import hls
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.schedule import load_library, schedule_nest
from tests.compiler.frames import imported
from tests.compiler.test_bindings import GOLDENS, bound
from tests.compiler.test_chain import check_csim, check_levels
from tests.compiler.test_hls import emitted
from tests.goldens import check_golden

INCLUDES = Path(hls.__file__).parent / "include"
PAIRS = {(1, 2, 2): 2, (1, 3, 2): 4, (2, 3, 2): 6, (2, 1, 1): 1, (1, 6, 1): 3}
"""Lanes of rows, outputs and inputs, and the multipliers that they take: outputs share an input, rows a weight."""
SUMMED = {(1, 2, 4): 1, (1, 3, 2): 2, (1, 6, 1): 0}
"""And in how many places of the text they are added up as they are made: pairs, and what is left of an odd number."""

FEW_WAYS = [(PAIRED, (2, 3, 2)), (CHAINED, (1, 2, 4)), (CHAINED, (1, 3, 2))]
OTHER_WAYS = [
    way
    for way in (*((PAIRED, unroll) for unroll in (*PAIRS, (1, 1, 4))), (CHAINED, (1, 6, 1)), (CHAINED, (1, 1, 4)))
    if way not in FEW_WAYS
]

EVERY_PRODUCT = """
#include "penstock_ops.h"
int main() {
    for (int a = -128; a < 128; ++a)
        for (int b = -128; b < 128; ++b)
            for (int c = -128; c < 128; ++c) {
                int32_t one = 0, other = 0;
                pk::two_products((int8_t)a, (int8_t)b, (int8_t)c, one, other);
                if (one != a * c || other != b * c) return 1;
            }
    return 0;
}
"""


EVERY_SUM = """
#include "penstock_ops.h"
static bool same(const int *a, const int *b, const int *c) {
    ap_int<48> sums = 0;
    int first = 0, second = 0;
    for (int n = 0; n < 7; ++n) {
        sums = pk::two_more((int8_t)a[n], (int8_t)b[n], (int8_t)c[n], sums);
        first += a[n] * c[n];
        second += b[n] * c[n];
        int32_t one = 0, other = 0;
        pk::take_apart(sums, one, other);
        if (one != first || other != second) return false;
    }
    return true;
}
int main() {
    const int extremes[4] = {-128, -1, 0, 127};
    for (int x = 0; x < 64; ++x) {
        int a[7], b[7], c[7];
        for (int n = 0; n < 7; ++n) {
            a[n] = extremes[x & 3];
            b[n] = extremes[x >> 2 & 3];
            c[n] = extremes[x >> 4];
        }
        if (!same(a, b, c)) return 1;
    }
    unsigned state = 1;
    for (int x = 0; x < 1000000; ++x) {
        int number[21];
        for (int n = 0; n < 21; ++n) {
            state = state * 1664525u + 1013904223u;
            number[n] = (int)(state >> 24) - 128;
        }
        if (!same(number, number + 7, number + 14)) return 1;
    }
    return 0;
}
"""


def written(unroll: tuple[int, ...], folder: Path, kind: str = PAIRED) -> str:
    return (emitted(bound("int8", {"arith.muli": kind}, unroll=unroll), folder) / "hls/penstock_top.cpp").read_text()


def multipliers(unroll: tuple[int, ...], binding: str) -> Resources:
    board = load_platform("u55c")
    lowered = bound("int8", {"arith.muli": binding}, unroll=unroll)
    nest = next(n for t, n in lowered.nests if t.sym_name.data == "fc0")
    return schedule_nest(nest, load_library(board.operators, 100.0)).logic


@pytest.mark.parametrize(("unroll", "count"), PAIRS.items())
def test_pairs_are_counted_and_written(unroll: tuple[int, ...], count: int, tmp_path: Path) -> None:
    assert multipliers(unroll, PAIRED).dsp == count
    assert multipliers(unroll, "dsp").dsp == unroll[0] * unroll[1] * unroll[2]
    text = written(unroll, tmp_path)
    assert text.count("pk::two_products(") == 1
    if unroll == (1, 3, 2):
        check_golden(GOLDENS / "paired.cpp", text)


@pytest.mark.parametrize(("unroll", "count"), SUMMED.items())
def test_sums_stay_in_the_slices(unroll: tuple[int, ...], count: int, tmp_path: Path) -> None:
    assert multipliers(unroll, CHAINED).dsp == multipliers(unroll, PAIRED).dsp
    text = written(unroll, tmp_path, CHAINED)
    assert text.count("pk::two_more(") == text.count("pk::take_apart(") == count
    assert ("two_products" in text) == (count == 0)
    if unroll == (1, 3, 2):
        check_golden(GOLDENS / "chained.cpp", text)


def test_summed_products_take_fewer_luts_than_products_that_are_added_up_outside() -> None:
    """Of four terms by two: four slices, one borrow, and no adder but the running sum's."""
    alone, summed = multipliers((1, 2, 1), CHAINED), multipliers((1, 2, 4), CHAINED)
    assert summed.dsp == 4 * alone.dsp
    assert summed.lut < alone.lut + 3 * 8 + 2 * 18, "each of three products more its two factors' sum, no adders"


def test_chains_are_as_even_as_can_be_and_none_is_too_long() -> None:
    for terms in range(2, 200):
        chains = Cascade((0,), terms)
        beside = [chains.longer_than(link) for link in range(chains.length)]
        assert sum(beside) == terms
        assert beside[0] == chains.count == -(-terms // LONGEST_CHAIN)
        assert len(beside) <= LONGEST_CHAIN
    assert Cascade((0, 2), 18).left((9, 4, 2)) == (3, 4, 1)


def test_what_finds_no_partner_has_a_multiplier_of_its_own(tmp_path: Path) -> None:
    """Lanes along the reduction multiply other inputs by other weights."""
    assert multipliers((1, 1, 4), CHAINED) == multipliers((1, 1, 4), PAIRED) == multipliers((1, 1, 4), "dsp")
    text = written((1, 1, 4), tmp_path)
    assert "two_products" not in text
    assert "op=mul impl=dsp" in text


def test_the_fewest_multipliers_are_taken() -> None:
    assert pair_up((2, 3), [{0}, {1}]) == Pairing(0, 1), "three pairs, where the other way takes four multipliers"
    assert pair_up((3, 3), [{0}, {1}]) == Pairing(0, 1)
    assert Pairing(0, 1).operators((3, 3)) == 6
    assert pair_up((4, 4), [{0, 1}, {0, 1}]) is None, "a product of each lane's own factors, as in a depthwise layer"
    assert pair_up((1, 1), [{0}, {1}]) is None


@pytest.mark.parametrize("ways", [FEW_WAYS, pytest.param(OTHER_WAYS, marks=pytest.mark.slow)], ids=["few", "others"])
def test_they_compute_the_same(ways: list[tuple[str, tuple[int, int, int]]], tmp_path: Path) -> None:
    batch = [bound("int8", {"arith.muli": kind}, unroll=unroll) for kind, unroll in ways]
    for lowered in batch:
        check_levels(lowered)
    check_csim(batch, tmp_path)


def windows(channels: int) -> Lowered:
    """Three outputs, of which one is left over, of all that lies in a window."""
    program = prepare(imported(nn.Conv2d(channels, 3, 3, padding=1), (1, channels, 4, 5)), "w8a8")
    graph = read_graph(program.module)
    design = default_design(graph, "u55c", 300.0, "w8a8")
    summed = next(op for op in graph.operations if op.reductions)
    lanes = (3, 1, 1, *summed.trips[3:])
    whole = replace(design.kernels[summed.layer], tile=lanes, unroll=lanes, bindings={"arith.muli": CHAINED})
    return lower(program, replace(design, kernels={**design.kernels, summed.layer: whole}))


@pytest.mark.slow
def test_windows_compute_the_same_in_several_chains(tmp_path: Path) -> None:
    """Of nine terms, five and four; of eighteen, three times six: chains end where no dim does."""
    batch = [windows(1), windows(2)]
    for lowered in batch:
        check_levels(lowered)
    check_csim(batch, tmp_path)
    for number in range(len(batch)):
        text = (tmp_path / f"design_{number}/hls/penstock_top.cpp").read_text()
        assert text.count("pk::two_more(") == 2, "of the pair, and of the odd one"


@pytest.mark.parametrize("text", [EVERY_PRODUCT, EVERY_SUM], ids=["products", "sums"])
def test_products_of_all_factors_and_their_sums_are_exact(text: str, tmp_path: Path) -> None:
    source, program = tmp_path / "every.cpp", tmp_path / "every"
    source.write_text(text)
    command = ["g++", "-std=c++14", "-O2", "-Wno-unknown-pragmas", f"-I{INCLUDES}", "-o", program, source]
    subprocess.run(command, check=True)
    assert subprocess.run([program], check=False).returncode == 0


@pytest.mark.parametrize("binding", ["2 paired, dsp", "2 dsp, chained"])
def test_some_lanes_are_not_paired_and_others_not(binding: str) -> None:
    with pytest.raises(PenstockError, match="all together or not at all") as caught:
        bound("int8", {"arith.muli": binding})
    assert caught.value.where == "fc0: bindings.arith.muli"


def test_floats_and_the_open_route_have_no_pairs() -> None:
    with pytest.raises(PenstockError, match="computes no"):
        bound("float32", {"arith.muli": PAIRED})
    with pytest.raises(PenstockError, match=r"'paired'|nothing to choose"):
        bound("int8", {"arith.muli": PAIRED}, platform="ecp5-85k")
