"""Block RAMs of deep FIFOs, which csynth counts as one each."""

from __future__ import annotations

import pytest

from penstock.profiling.vitis.fifo_memory import fifo_bram18, with_fifo_memory
from penstock.profiling.vitis.records import ReportedFifo, ReportedUsage
from tests.vitis.corpus import NO_CORPUS, SAMPLE, designs, synthesised, whole_corpus


@pytest.mark.parametrize(
    ("depth", "bits", "implementation", "reported", "blocks"),
    [
        (410, 32, "memory", 1, 1),
        (4096, 32, "memory", 1, 8),
        (100352, 32, "memory", 1, 196),
        (4096, 32, "srl", 0, 0),
        (4096, 72, "uram", 0, 0),
        (2, 32, None, 0, 0),
        (1024, 512, "bram", 40, 40),
    ],
)
def test_blocks_by_depth_and_width(depth: int, bits: int, implementation: str | None, reported: int, blocks: int):
    assert fifo_bram18(ReportedFifo("f", "top", depth, bits, implementation, ReportedUsage(bram18=reported))) == blocks


def test_what_the_report_does_not_count_stays_unknown():
    assert fifo_bram18(ReportedFifo("f", "top", 4096, 32, None, ReportedUsage())) is None


def test_shallow_fifos_leave_a_report_as_it_is():
    report = synthesised(SAMPLE / "streamhls__polybench__streamhls__2560_DSPs__opt1__atax")
    assert with_fifo_memory(report) is report


@pytest.mark.slow
@pytest.mark.skipif(whole_corpus() is None, reason=NO_CORPUS)
def test_a_report_with_deep_fifos_uses_more_than_it_says():
    folder = whole_corpus()
    assert folder is not None
    more = 0
    for path, row in designs(folder):
        report = synthesised(path)
        whole = with_fifo_memory(report)
        assert whole.used.bram18 is not None
        assert whole.used.bram18 >= int(row["BRAM_18K"])
        if whole is not report:
            more += 1
            assert any("block RAMs of FIFOs" in note for note in whole.notes)
            assert sum(fifo.used.bram18 or 0 for fifo in whole.fifos) > sum(f.used.bram18 or 0 for f in report.fifos)
    assert more > 10
