"""What Vivado says of area and timing, by site, kernel, instance or die, and HLS' own export reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.profiling.vitis.doubts import doubts_of_timing
from penstock.profiling.vitis.implemented_rpt import read_utilization
from penstock.profiling.vitis.records import ReportedUsage
from penstock.profiling.vitis.timing_rpt import read_timing
from tests.vitis.test_generations import written

SITES = """\
    | Tool Version : Vivado v.2020.9 (lin64) Build 1
    | Device       : xczu3eg
    | Design State : {state}
    1. CLB Logic
    ------------
    +----------------------------+-------+-------+-----------+-------+
    |          Site Type         |  Used | Fixed | Available | Util% |
    +----------------------------+-------+-------+-----------+-------+
    | CLB LUTs                   | 25278 |     0 |     70560 | 35.82 |
    |   LUT as Logic             | 21567 |     0 |     70560 | 30.57 |
    | CLB Registers              | 29422 |     0 |    141120 | 20.85 |
    +----------------------------+-------+-------+-----------+-------+
    3. BLOCKRAM
    -----------
    +-------------------+------+-------+-----------+-------+
    |     Site Type     | Used | Fixed | Available | Util% |
    +-------------------+------+-------+-----------+-------+
    | Block RAM Tile    | 21.5 |     0 |       216 |  9.95 |
    |   RAMB36/FIFO*    |   16 |     0 |       216 |  7.41 |
    +-------------------+------+-------+-----------+-------+
    4. ARITHMETIC
    -------------
    +-----------+------+-------+-----------+-------+
    | Site Type | Used | Fixed | Available | Util% |
    +-----------+------+-------+-----------+-------+
    | DSPs      |    7 |     0 |       360 |  0.00 |
    +-----------+------+-------+-----------+-------+
    """


def test_area_after_routing_and_before(tmp_path: Path):
    routed = read_utilization(written(tmp_path, "full.rpt", SITES.format(state="Routed")))
    assert routed.used == ReportedUsage(lut=25278, ff=29422, dsp=7, bram18=43)
    assert routed.available == ReportedUsage(lut=70560, ff=141120, dsp=360, bram18=432)
    assert (routed.evidence, routed.version) == ("implemented", "2020.9")
    early = read_utilization(written(tmp_path, "full.rpt", SITES.format(state="Synthesized")))
    assert early.evidence is None
    assert any("not routed" in note for note in early.notes)


def test_area_of_kernels_beside_a_platform(tmp_path: Path):
    text = """\
        | Design State : Routed
        +---------------------+-----------------+------------------+---------------+---------------+
        | Name                | LUT             | REG              | BRAM          | DSP           |
        +---------------------+-----------------+------------------+---------------+---------------+
        | Platform            | 18239 [ 25.85%] |  21892 [ 15.51%] |  18 [  8.33%] |   0 [  0.00%] |
        | User Budget         | 52321 [100.00%] | 119228 [100.00%] | 198 [100.00%] | 360 [100.00%] |
        |    Used Resources   |  6723 [ 12.85%] |   6839 [  5.74%] | 3.5 [  1.52%] |   0 [  0.00%] |
        |    Unused Resources | 45598 [ 87.15%] | 112389 [ 94.26%] | 195 [ 98.48%] | 360 [100.00%] |
        | blur                |  6723 [ 12.85%] |   6839 [  5.74%] | 3.5 [  1.52%] |   0 [  0.00%] |
        |    blur_1           |  6723 [ 12.85%] |   6839 [  5.74%] | 3.5 [  1.52%] |   0 [  0.00%] |
        +---------------------+-----------------+------------------+---------------+---------------+
        """
    report = read_utilization(written(tmp_path, "kernel_util_routed.rpt", text))
    assert report.used == ReportedUsage(lut=6723, ff=6839, dsp=0, bram18=7)
    assert report.available == ReportedUsage(lut=52321, ff=119228, dsp=360, bram18=396)
    assert [(part.name, part.parent) for part in report.parts] == [("blur", None), ("blur_1", "blur")]
    placed = written(tmp_path, "kernel_util_routed.rpt", text.replace("State : Routed", "State : Fully Placed"))
    assert read_utilization(placed).evidence == "implemented", "v++ wrote it after routing, whatever its head says"
    assert any("believed" in note for note in read_utilization(placed).notes)
    early = tmp_path / "kernel_util_placed.rpt"
    placed.rename(early)
    assert read_utilization(early).evidence is None


def test_area_by_instances(tmp_path: Path):
    text = """\
        | Design State : Fully Routed
        +------------+--------+------------+-----+--------+--------+------+------------+
        |  Instance  | Module | Total LUTs | FFs | RAMB36 | RAMB18 | URAM | DSP Blocks |
        +------------+--------+------------+-----+--------+--------+------+------------+
        | top        |  (top) |        100 |  77 |      2 |      1 |    0 |          3 |
        |   (top)    |  (top) |         10 |   7 |      0 |      0 |    0 |          0 |
        |   a        |      a |         90 |  70 |      2 |      1 |    0 |          3 |
        |     b      |      b |         40 |  30 |      0 |      1 |    0 |          1 |
        +------------+--------+------------+-----+--------+--------+------+------------+
        """
    report = read_utilization(written(tmp_path, "hierarchical.rpt", text))
    assert report.used == ReportedUsage(lut=100, ff=77, dsp=3, bram18=5, uram=0)
    assert [(part.name, part.parent, part.used.bram18) for part in report.parts] == [
        ("top", None, 5), ("(top)", "top", 0), ("a", "top", 5), ("b", "a", 1),
    ]  # fmt: skip


def test_area_by_dies(tmp_path: Path):
    text = """\
        | Design State : Physopt postRoute
        +----------------------------+-------+-------+--------+--------+
        |          Site Type         |  SLR0 |  SLR1 | SLR0 % | SLR1 % |
        +----------------------------+-------+-------+--------+--------+
        | CLB LUTs*                  |  1000 |   200 |   0.10 |   0.02 |
        | CLB Registers              |  2000 |   300 |   0.10 |   0.02 |
        | Block RAM Tile             |  10.5 |     2 |   1.00 |   0.20 |
        | URAM                       |     4 |     0 |   1.00 |   0.00 |
        | DSPs                       |    31 |     7 |   1.00 |   0.20 |
        +----------------------------+-------+-------+--------+--------+
        """
    report = read_utilization(written(tmp_path, "slr_util_routed.rpt", text))
    assert report.evidence == "implemented"
    assert report.used == ReportedUsage(lut=1200, ff=2300, dsp=38, bram18=25, uram=4)
    assert [(part.name, part.used.bram18) for part in report.parts] == [("SLR0", 21), ("SLR1", 4)]


DIES = """\
    12. SLR CLB Logic and Dedicated Block Utilization
    -------------------------------------------------
    +----------------------------+-------+-------+--------+--------+
    |          Site Type         |  SLR0 |  SLR1 | SLR0 % | SLR1 % |
    +----------------------------+-------+-------+--------+--------+
    | CLB LUTs                   | 25000 |   270 |  70.86 |   0.77 |
    | CLB Registers              | 29000 |   422 |  41.11 |   0.60 |
    | DSPs                       |     7 |     0 |   3.89 |   0.00 |
    +----------------------------+-------+-------+--------+--------+
    """


def test_a_design_on_several_dies_is_counted_by_its_sites(tmp_path: Path):
    """The section of the dies stands below the sites, misses what no die has and says nothing of what is there."""
    text = SITES.format(state="Routed") + DIES
    report = read_utilization(written(tmp_path, "full_util_routed.rpt", text))
    assert report.used == ReportedUsage(lut=25278, ff=29422, dsp=7, bram18=43)
    assert report.available == ReportedUsage(lut=70560, ff=141120, dsp=360, bram18=432)
    assert [(part.name, part.used.lut) for part in report.parts] == [("SLR0", 25000), ("SLR1", 270)]


RULE = "-" * 96
TIMING = f"""\
| Tool Version      : Vivado v.2020.9 (lin64) Build 1
| Device            : xczu3eg-sbva484
{RULE}
| Design Timing Summary
| ---------------------
{RULE}

    WNS(ns)      TNS(ns)  TNS Failing Endpoints  TNS Total Endpoints      WHS(ns)      THS(ns)  THS Failing Endpoints
    -------      -------  ---------------------  -------------------      -------      -------  ---------------------
     -2.339      -10.500                      6                93640        0.010        0.000                      0


Timing constraints are not met.

{RULE}
| Clock Summary
| -------------
{RULE}

Clock        Waveform(ns)         Period(ns)      Frequency(MHz)
-----        ------------         ----------      --------------
clk_pl_0     {{0.000 5.000}}        10.000          100.000
clk_in1      {{0.000 5.000}}        10.000          100.000
  clk_out1   {{0.000 3.333}}        6.667           150.000

{RULE}
| Intra Clock Table
| -----------------
{RULE}

Clock            WNS(ns)      TNS(ns)  TNS Failing Endpoints  TNS Total Endpoints      WHS(ns)      THS(ns)
-----            -------      -------  ---------------------  -------------------      -------      -------
clk_pl_0           3.418        0.000                      0                40682        0.010        0.000
clk_in1
  clk_out1        -2.339      -10.500                      6                51626        0.010        0.000

{RULE}
| Inter Clock Table
"""


def test_timing_and_how_fast_each_clock_could_run(tmp_path: Path):
    path = tmp_path / "timing.rpt"
    path.write_text(TIMING)
    report = read_timing(path)
    assert (report.met, report.worst_slack_ns, report.failing_endpoints) == (False, -2.339, 6)
    slow, unused, fast = report.clocks
    assert slow.fmax_mhz == pytest.approx(1e3 / (10 - 3.418))
    assert fast.fmax_mhz == pytest.approx(1e3 / (6.667 + 2.339))
    assert (unused.name, unused.worst_slack_ns, unused.fmax_mhz) == ("clk_in1", None, None)
    path.write_text(TIMING.replace("Timing constraints are not met", "All user specified timing constraints are met"))
    assert read_timing(path).met is False, "slacks are believed, not words"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", "timing was missed, worst slack -2.339 ns, 6 endpoints fail; the"),
        ("-2.339      -10.500                      6                93640        0.010",
         "0.339        0.000                      0                93640       -0.010",
         "timing was missed, worst hold slack -0.01 ns; the"),
    ],
)  # fmt: skip
def test_a_doubt_says_which_slack_is_missed(tmp_path: Path, old: str, new: str, said: str):
    text = TIMING.replace(old, new, 1) if old else TIMING
    (doubt,) = doubts_of_timing(read_timing(written(tmp_path, "timing.rpt", text)))
    assert said in doubt


def test_the_export_report_of_hls(tmp_path: Path):
    text = """\
        Implementation tool: Xilinx Vivado v.2020.9
        Device target:       xc7z020-clg400-1
        #=== Post-Implementation Resource usage ===
        SLICE:           94
        LUT:            219
        FF:             352
        DSP:              4
        BRAM:             2
        #=== Final timing ===
        CP required:    10.000
        CP achieved post-synthesis:    4.855
        CP achieved post-implementation:    5.106
        Timing met
        """
    path = written(tmp_path, "blur_export.rpt", text)
    assert read_utilization(path).used == ReportedUsage(lut=219, ff=352, dsp=4, bram18=2)
    timing = read_timing(path)
    assert (timing.met, timing.worst_slack_ns) == (True, 4.894)
    assert timing.clocks[0].fmax_mhz == pytest.approx(1e3 / 5.106)


ROUTED_EXPORT = """\
    ================================================================
    == Vivado Place & Route Results
    ================================================================
    + General Information:
        * Version:         2025.9 (Build 1 on May 19 2025)
        * Project:         blur
        * Solution:        hls (Vivado IP Flow Target)
        * Target device:   xa7a12tcsg325-1q

    == Place & Route Resource Summary
    ================================================================
    LUT:              2207
    FF:               1703
    DSP:              9
    BRAM:             5
    URAM:             0
    SRL:              41

    == Place & Route Timing Summary
    ================================================================
    * Timing was met
    +----------------+-------------+
    | Timing         | Period (ns) |
    +----------------+-------------+
    | Target         | 4.000       |
    | Post-Synthesis | 2.100       |
    | Post-Route     | 3.750       |
    +----------------+-------------+
    """


def test_the_routed_export_report_of_newer_releases(tmp_path: Path):
    path = written(tmp_path, "export_impl.rpt", ROUTED_EXPORT)
    area, timing = read_utilization(path), read_timing(path)
    assert area.used == ReportedUsage(lut=2207, ff=1703, dsp=9, bram18=5, uram=0)
    assert (area.evidence, area.version, area.part) == ("implemented", "2025.9", "xa7a12tcsg325-1q")
    assert (timing.met, timing.worst_slack_ns, timing.version, timing.part) == (
        True, 0.25, "2025.9", "xa7a12tcsg325-1q",
    )  # fmt: skip
    assert timing.notes == ()
    early = ROUTED_EXPORT.replace("Place & Route", "RTL Synthesis").replace("| Post-Route ", "| Elsewhere ")
    path = written(tmp_path, "export_syn.rpt", early)
    assert read_utilization(path).evidence is None, "what was not placed is no evidence"
    assert read_timing(path).notes == ("achieved after synthesis only: the design was not placed",)
