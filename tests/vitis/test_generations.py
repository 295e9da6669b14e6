"""How tools of other generations write, in short: what a report contains decides, never its version number."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from profiling.protocol import ProfilingError
from profiling.vitis.cosim_rpt import find_cosim_report, read_cosim_report
from profiling.vitis.csynth_rpt import read_csynth_report
from profiling.vitis.csynth_xml import read_csynth_xml
from profiling.vitis.implemented_rpt import read_utilization
from profiling.vitis.records import Span, Usage
from profiling.vitis.timing_rpt import read_timing


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(dedent(text))
    return path


NESTED_XML = """\
    <profile>
    <ReportVersion><Version>2019.9</Version></ReportVersion>
    <UserAssignments><unit>ns</unit><Part>xa1</Part><TopModelName>blur</TopModelName>
    <TargetClockPeriod>5.00</TargetClockPeriod></UserAssignments>
    <PerformanceEstimates><PipelineType>none</PipelineType>
    <SummaryOfTimingAnalysis><unit>ns</unit><EstimatedClockPeriod>4.091</EstimatedClockPeriod></SummaryOfTimingAnalysis>
    <SummaryOfOverallLatency><Best-caseLatency>14</Best-caseLatency><Average-caseLatency>undef</Average-caseLatency>
    <Worst-caseLatency>632</Worst-caseLatency>
    <DataflowPipelineThroughput><range><min>15</min><max>633</max></range></DataflowPipelineThroughput>
    </SummaryOfOverallLatency>
    <SummaryOfLoopLatency><rows><Slack>7.30</Slack><TripCount>12</TripCount><Latency>undef</Latency>
    <IterationLatency>17 ~ 52</IterationLatency><InstanceList/>
    <columns><TripCount><range><min>1</min><max>50</max></range></TripCount><Latency>3 ~ 52</Latency>
    <PipelineII>1</PipelineII><PipelineDepth>3</PipelineDepth></columns></rows></SummaryOfLoopLatency>
    </PerformanceEstimates>
    <AreaEstimates><Resources><BRAM_18K>4</BRAM_18K><DSP48E>0</DSP48E><FF>2217</FF><LUT>188</LUT></Resources>
    <AvailableResources><BRAM_18K>624</BRAM_18K><DSP48E>1728</DSP48E><FF>460800</FF><LUT>230400</LUT>
    </AvailableResources></AreaEstimates>
    </profile>
    """


def test_nested_loops_ranges_and_old_names_of_resources(tmp_path: Path):
    report = read_csynth_xml(written(tmp_path, "csynth.xml", NESTED_XML))
    assert report.latency == Span(14, 632)
    assert report.interval == Span(15, 633)
    assert report.latency_average is None
    assert report.used == Usage(lut=188, ff=2217, dsp=0, bram18=4, uram=None)
    outer, inner = report.loops
    assert (outer.name, outer.parents, outer.latency, outer.iteration_latency) == ("rows", (), None, Span(17, 52))
    assert (inner.name, inner.parents, inner.trip, inner.depth) == ("columns", ("rows",), Span(1, 50), Span(3, 3))
    assert (outer.pipelined, inner.pipelined) == (False, True)
    assert any("uram" in note for note in report.notes)
    assert any("clock uncertainty" in note for note in report.notes)


def test_a_figure_that_the_tool_does_not_know_is_none_with_a_note(tmp_path: Path):
    text = NESTED_XML.replace("<Worst-caseLatency>632<", "<Worst-caseLatency>undef<").replace(">2217<", ">?<")
    report = read_csynth_xml(written(tmp_path, "csynth.xml", text))
    assert report.latency is None
    assert report.used.ff is None
    assert "latency, most: the report says 'undef'" in report.notes


OLD_TEXT = """\


    ================================================================
    == Vivado HLS Report for 'blur'
    ================================================================
    * Date:           Thu Mar 21 11:21:00 2019

    * Version:        2018.9 (Build 1 on Thu Dec 06 23:56:15 MST 2018)
    * Solution:       solution1
    * Product family: aartix7
    * Target device:  xa7a12tcsg325-1q


    ================================================================
    == Performance Estimates
    ================================================================
    + Timing (ns):
        * Summary:
        +--------+-------+----------+------------+
        |  Clock | Target| Estimated| Uncertainty|
        +--------+-------+----------+------------+
        |ap_clk  |  10.00|     8.144|        1.25|
        +--------+-------+----------+------------+

    + Latency (clock cycles):
        * Summary:
        +-----+---------+-----+---------+---------+
        |    Latency    |    Interval   | Pipeline|
        | min |   max   | min |   max   |   Type  |
        +-----+---------+-----+---------+---------+
        |  157|  2089111|  158|  2089112|   none  |
        +-----+---------+-----+---------+---------+

        + Detail:
            * Instance:
            N/A

            * Loop:
            +---------------+-----+---------+-----------+-----------+-----------+-----------+----------+
            |               |    Latency    | Iteration |  Initiation Interval  |    Trip   |          |
            |   Loop Name   | min |   max   |  Latency  |  achieved |   target  |   Count   | Pipelined|
            +---------------+-----+---------+-----------+-----------+-----------+-----------+----------+
            |- Loop 1       |    2|        2|          1|          -|          -|          3|    no    |
            |- rows         |  153|  2089107| 17 ~ 1929 |          -|          -|  9 ~ 1083 |    no    |
            | + columns     |   13|     1925|          5|          2|          1| 10 ~ 1922 |    yes   |
            +---------------+-----+---------+-----------+-----------+-----------+-----------+----------+



    ================================================================
    == Utilization Estimates
    ================================================================
    * Summary:
    +-----------------+---------+-------+-------+------+
    |       Name      | BRAM_18K| DSP48E|   FF  |  LUT |
    +-----------------+---------+-------+-------+------+
    |Expression       |        -|      -|      0|  2538|
    +-----------------+---------+-------+-------+------+
    |Total            |        9|      0|   1070|  3099|
    +-----------------+---------+-------+-------+------+
    |Available        |       40|     40|  16000|  8000|
    +-----------------+---------+-------+-------+------+

    + Detail:
        * FIFO:
        +-----------+---------+---+----+------+-----+---------+
        |    Name   | BRAM_18K| FF| LUT| Depth| Bits| Size:D*B|
        +-----------+---------+---+----+------+-----+---------+
        |im_1_U     |        0|  5|  20|     2|    8|       16|
        +-----------+---------+---+----+------+-----+---------+
        |Total      |        0|  5|  20|     2|    8|       16|
        +-----------+---------+---+----+------+-----+---------+
    """


def test_text_with_loops_in_loops_and_four_resources(tmp_path: Path):
    report = read_csynth_report(written(tmp_path, "blur_csynth.rpt", OLD_TEXT))
    assert (report.top, report.version, report.part) == ("blur", "2018.9", "xa7a12tcsg325-1q")
    assert (report.clock_target_ns, report.clock_estimated_ns) == (10.0, 8.144)
    assert (report.latency, report.interval) == (Span(157, 2089111), Span(158, 2089112))
    assert report.used == Usage(lut=3099, ff=1070, dsp=0, bram18=9)
    assert [(loop.name, loop.parents) for loop in report.loops] == [
        ("Loop 1", ()), ("rows", ()), ("columns", ("rows",)),
    ]  # fmt: skip
    columns = report.loops[2]
    assert (columns.trip, columns.ii, columns.target_ii) == (Span(10, 1922), Span(2, 2), 1)
    assert [(fifo.name, fifo.depth, fifo.used.lut) for fifo in report.fifos] == [("im_1_U", 2, 20)]


def test_the_summary_of_all_modules(tmp_path: Path):
    text = """\
        == Synthesis Summary Report of 'array'
        ================================================================
            * Version:        2024.9 (Build 1)
            PS: '+' for module; 'o' for loop; '*' for dataflow
            +-------------------+--------+-------+---------+--------+----------+---------+------+----------+-----------+
            |      Modules      |  Issue |       | Latency | Latency| Iteration|         | Trip |          |           |
            |      & Loops      |  Type  | Slack | (cycles)|  (ns)  |  Latency | Interval| Count| Pipelined|    LUT    |
            +-------------------+--------+-------+---------+--------+----------+---------+------+----------+-----------+
            |+ array*           |  Timing|  -0.37|      140|   1e+03|         -|      131|     -|  dataflow| 9516 (~0%)|
            | + inner           |       -|   5.30|      131|   1e+03|         -|      131|     -|        no|   44 (~0%)|
            |  o outer_loop     |       -|   7.30|      130|   1e+03|        13|        -|    10|        no|          -|
            |   o inner_loop    |       -|   7.30|       11|      99|         3|        1|    10|       yes|          -|
            +-------------------+--------+-------+---------+--------+----------+---------+------+----------+-----------+
        """
    report = read_csynth_report(written(tmp_path, "csynth.rpt", text))
    assert (report.top, report.kind, report.latency, report.interval) == (
        "array", "dataflow", Span(140, 140), Span(131, 131),
    )  # fmt: skip
    assert [(module.name, module.used.lut) for module in report.modules] == [("array", 9516), ("inner", 44)]
    outer, inner = report.loops
    assert (outer.module, outer.ii, outer.iteration_latency) == ("inner", None, Span(13, 13))
    assert (inner.parents, inner.ii, inner.depth) == (("outer_loop",), Span(1, 1), Span(3, 3))


def test_a_cosimulation_report_without_totals(tmp_path: Path):
    text = """\
        Report time       : Mon Dec  3 19:34:23 PST 2018.
        Solution          : solution1.
        Simulation tool   : xsim.

        +----------+----------+-----------------------------+-----------------------------+
        |          |          |           Latency           |           Interval          |
        +   RTL    +  Status  +-----------------------------+-----------------------------+
        |          |          |   min   |   avg   |   max   |   min   |   avg   |   max   |
        +----------+----------+-----------------------------+-----------------------------+
        |      VHDL|        NA|       NA|       NA|       NA|       NA|       NA|       NA|
        |   Verilog|      Pass|      175|      180|      190|       20|       21|       22|
        +----------+----------+-----------------------------+-----------------------------+
        """
    report = read_cosim_report(written(tmp_path, "top_cosim.rpt", text))
    assert (report.verdict, report.language, report.latency_max, report.interval_average) == (
        "pass", "Verilog", 190, 21,
    )  # fmt: skip
    assert report.total_cycles is None
    written(tmp_path, "_cosim.rpt", text.replace("Pass", "Fail"))
    assert find_cosim_report(tmp_path).verdict == "fail", "a failure that ran is never hidden by a pass beside it"


def test_no_cosimulation_report_is_said_to_be_missing(tmp_path: Path):
    with pytest.raises(ProfilingError) as caught:
        find_cosim_report(tmp_path)
    assert caught.value.kind == "report-missing"


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
    assert routed.used == Usage(lut=25278, ff=29422, dsp=7, bram18=43)
    assert routed.available == Usage(lut=70560, ff=141120, dsp=360, bram18=432)
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
    assert report.used == Usage(lut=6723, ff=6839, dsp=0, bram18=7)
    assert report.available == Usage(lut=52321, ff=119228, dsp=360, bram18=396)
    assert [(part.name, part.parent) for part in report.parts] == [("blur", None), ("blur_1", "blur")]


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
    assert report.used == Usage(lut=100, ff=77, dsp=3, bram18=5, uram=0)
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
    assert report.used == Usage(lut=1200, ff=2300, dsp=38, bram18=25, uram=4)
    assert [(part.name, part.used.bram18) for part in report.parts] == [("SLR0", 21), ("SLR1", 4)]


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
    assert read_utilization(path).used == Usage(lut=219, ff=352, dsp=4, bram18=2)
    timing = read_timing(path)
    assert (timing.met, timing.worst_slack_ns) == (True, 4.894)
    assert timing.clocks[0].fmax_mhz == pytest.approx(1e3 / 5.106)
