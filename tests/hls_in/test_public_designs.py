"""Designs that others made, from source alone, against csynth's loops and RTL's cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import hls_in
from penstock.profiling.kernels.analysis import analyse_kernel
from penstock.profiling.kernels.page import page_of

DATA = Path(__file__).parents[1] / "data" / "hls-sources"


@pytest.fixture(scope="module")
def figures() -> hls_in.Figures:
    return hls_in.run(DATA)


def test_every_design_is_read_with_the_tools_own_ii(figures: hls_in.Figures) -> None:
    assert figures.summary["n"] == 4
    assert figures.summary["read_pct"] == 100
    assert figures.summary["ii_exact_pct"] == 100


def test_cycles_are_those_of_rtl(figures: hls_in.Figures) -> None:
    """csynth is off by up to 44 % on these."""
    assert figures.summary["worst_error_pct"] is not None
    assert float(figures.summary["worst_error_pct"]) < 0.2
    assert float(figures.summary["csynth_mean_error_pct"] or 0) > 10


def test_areas_and_depths_are_those_of_csynth(figures: hls_in.Figures) -> None:
    """Of all 67 designs DSPs are right in 53, LUTs off by 7 % and flip-flops by 10 % in the middle."""
    summary = figures.summary
    assert summary["dsp_exact_pct"] == 100
    assert float(summary["depth_within_1_pct"] or 0) > 94
    assert float(summary["lut_median_error_pct"] or 100) < 10
    assert float(summary["ff_median_error_pct"] or 100) < 5


def test_each_generator_has_its_own_figures(figures: hls_in.Figures) -> None:
    rows = [row for row in figures.rows if "design" not in row]
    assert {row["generator"] for row in rows} == {"allo", "heterocl", "streamhls", "vitis"}


def test_a_kernel_is_analysed_to_the_line() -> None:
    found = analyse_kernel(
        DATA / "streamhls__polybench__streamhls__2560_DSPs__opt1__gesummv" / "gesummv.cpp", "forward"
    )
    assert found.deadlock is None
    loop = next(loop for loop in found.loops if loop.loop == "loop2_loop3")
    assert (loop.ii, loop.evidence, loop.limit_at) == (4, "modelled", "gesummv.cpp:69")
    assert "v20" in loop.limit
    fifo = next(fifo for fifo in found.fifos if fifo.name == "v46")
    assert fifo.needed < fifo.depth == 250
    assert found.latency_with_needed_depths == found.latency
    assert {task.name for task in found.tasks} == {"node0", "node1", "node2", "node3"}
    page = page_of(found)
    assert "gesummv.cpp:69" in page
    assert "<svg" in page
