"""The count of memories against those that the real tool reported of arrays with pragmas."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from penstock.compiler.schedule import bram18_count, uram_count
from tests.fixtures.hls_memories import read_functions
from tests.vitis.corpus import NO_CORPUS, SAMPLE, Row, rows, whole_corpus

WHOLE = whole_corpus()
ABSENT = pytest.mark.skipif(WHOLE is None, reason=NO_CORPUS)
FOLDERS = [pytest.param(SAMPLE, id="sample"), pytest.param(WHOLE, id="all", marks=ABSENT)]

ATAX = """
void forward(float v0[410]) {
  float v48[410][390];
  #pragma HLS array_partition variable=v48 cyclic dim=1 factor=10
  #pragma HLS array_partition variable=v48 cyclic dim=2 factor=15
}
"""
"""The array of streamhls__polybench__streamhls__2560_DSPs__opt3__atax."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_blocks_of_reported_memories(folder: Path) -> None:
    """All UltraRAM; of block RAM all but what lies above 8,192 words, where the tool rounds in ways of its own."""
    found = Counter(
        (kind, int(row[column]) == count(int(row["words"]), int(row["bits"])))
        for design in rows(folder, "memories").values()
        for row in design
        for kind, column, count in (("bram", "BRAM_18K", bram18_count), ("uram", "URAM", uram_count))
        if int(row[column])
    )
    assert found["uram", False] == 0 < found["uram", True]
    assert found["bram", False] <= 1 + 0.02 * found["bram", True]
    below = [row for design in rows(folder, "memories").values() for row in design if int(row["words"]) <= 8192]
    for row in below:
        count = bram18_count(int(row["words"]), int(row["bits"]))
        assert int(row["BRAM_18K"]) in (0, count, 2 * count), "once, or twice where it is a ping-pong buffer"


def reported(design: list[Row], function: str, name: str) -> Counter[tuple[int, int]]:
    """Words and bits of the memories that an array became: it bears a number behind its name for every bank."""
    own = re.compile(rf"{name}(_\d+)*_U")
    return Counter(
        (int(r["words"]), int(r["bits"])) for r in design if r["module"] == function and own.fullmatch(r["mem"])
    )


def test_partitioned_dims_are_so_many_memories() -> None:
    ((function, _, variables, _),) = read_functions(ATAX)
    design = rows(SAMPLE, "memories")["streamhls__polybench__streamhls__2560_DSPs__opt3__atax"]
    array = variables["v48"]
    assert reported(design, function, "v48") == {(array.words, 32): array.banks} == {(1066, 32): 150}


@ABSENT
def test_every_partitioned_array_of_the_published_designs() -> None:
    assert WHOLE is not None
    sources = Path(os.environ["PENSTOCK_DATA"]) / "hls-sources"
    same = different = 0
    for source in sorted(sources.glob("*/*.cpp")):
        design = rows(WHOLE, "memories").get(source.parent.name, [])
        for function, _, variables, _ in read_functions(source.read_text()):
            for name, array in variables.items():
                found = reported(design, function, name)
                if found and array.banks > 1:
                    agrees = found == {(array.words, 32): array.banks}
                    same, different = same + agrees, different + (not agrees)
    assert (same > 40, different) == (True, 1), "of one array, a bank that nobody meets is left away"
