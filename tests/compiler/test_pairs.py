"""Lanes that share a multiplier: which find each other, what they are counted as, and that they compute the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.compiler.analysis.pairs import PAIRED, Pairing, pair_up
from penstock.compiler.backend import hls
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.schedule import load_library, schedule_nest
from tests.compiler.test_bindings import GOLDENS, bound
from tests.compiler.test_chain import check_csim, check_levels
from tests.compiler.test_hls import emitted
from tests.goldens import check_golden

INCLUDES = Path(hls.__file__).parent / "include"
PAIRS = {(1, 2, 2): 2, (1, 3, 2): 4, (2, 3, 2): 6, (2, 1, 1): 1, (1, 6, 1): 3}
"""Lanes of rows, outputs and inputs, and the multipliers that they take: outputs share an input, rows a weight."""

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


def written(unroll: tuple[int, ...], folder: Path) -> str:
    return (emitted(bound("int8", {"arith.muli": PAIRED}, unroll=unroll), folder) / "hls/penstock_top.cpp").read_text()


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


def test_what_finds_no_partner_has_a_multiplier_of_its_own(tmp_path: Path) -> None:
    """Lanes along the reduction multiply other inputs by other weights."""
    assert multipliers((1, 1, 4), PAIRED) == multipliers((1, 1, 4), "dsp")
    text = written((1, 1, 4), tmp_path)
    assert "two_products" not in text
    assert "op=mul impl=dsp" in text


def test_the_fewest_multipliers_are_taken() -> None:
    assert pair_up((2, 3), [{0}, {1}]) == Pairing(0, 1), "three pairs, where the other way takes four multipliers"
    assert pair_up((3, 3), [{0}, {1}]) == Pairing(0, 1)
    assert Pairing(0, 1).operators((3, 3)) == 6
    assert pair_up((4, 4), [{0, 1}, {0, 1}]) is None, "a product of each lane's own factors, as in a depthwise layer"
    assert pair_up((1, 1), [{0}, {1}]) is None


def test_they_compute_the_same(tmp_path: Path) -> None:
    batch = [bound("int8", {"arith.muli": PAIRED}, unroll=unroll) for unroll in (*PAIRS, (1, 1, 4))]
    for lowered in batch:
        check_levels(lowered)
    check_csim(batch, tmp_path)


def test_both_products_of_all_factors_are_exact(tmp_path: Path) -> None:
    source, program = tmp_path / "every.cpp", tmp_path / "every"
    source.write_text(EVERY_PRODUCT)
    command = ["g++", "-std=c++14", "-O2", "-Wno-unknown-pragmas", f"-I{INCLUDES}", "-o", program, source]
    subprocess.run(command, check=True)
    assert subprocess.run([program], check=False).returncode == 0


@pytest.mark.parametrize("binding", ["2 paired, dsp", "2 dsp, paired"])
def test_some_lanes_are_not_paired_and_others_not(binding: str) -> None:
    with pytest.raises(PenstockError, match="all together or not at all") as caught:
        bound("int8", {"arith.muli": binding})
    assert caught.value.where == "fc0: bindings.arith.muli"


def test_floats_and_the_open_route_have_no_pairs() -> None:
    with pytest.raises(PenstockError, match="computes no"):
        bound("float32", {"arith.muli": PAIRED})
    with pytest.raises(PenstockError, match=r"'paired'|nothing to choose"):
        bound("int8", {"arith.muli": PAIRED}, platform="ecp5-85k")
