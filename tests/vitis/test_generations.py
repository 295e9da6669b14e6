"""How tools of other generations write, in short: what a report contains decides, never its version number."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.cosim_rpt import find_cosim_report, read_cosim_report
from penstock.profiling.vitis.csynth_rpt import read_csynth_report
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.records import CountSpan, ReportedUsage


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
    assert report.latency == CountSpan(14, 632)
    assert report.interval == CountSpan(15, 633)
    assert report.latency_average is None
    assert report.used == ReportedUsage(lut=188, ff=2217, dsp=0, bram18=4, uram=None)
    outer, inner = report.loops
    assert (outer.name, outer.parents, outer.latency, outer.iteration_latency) == ("rows", (), None, CountSpan(17, 52))
    assert (inner.name, inner.parents, inner.trip, inner.depth) == (
        "columns",
        ("rows",),
        CountSpan(1, 50),
        CountSpan(3, 3),
    )
    assert (outer.pipelined, inner.pipelined) == (False, True)
    assert any("uram" in note for note in report.notes)
    assert any("clock uncertainty" in note for note in report.notes)


def test_a_figure_that_the_tool_does_not_know_is_none_with_a_note(tmp_path: Path):
    text = NESTED_XML.replace("<Worst-caseLatency>632<", "<Worst-caseLatency>undef<").replace(">2217<", ">?<")
    report = read_csynth_xml(written(tmp_path, "csynth.xml", text))
    assert report.latency == CountSpan(14, None), "the end that it knows is kept"
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
    assert (report.latency, report.interval) == (CountSpan(157, 2089111), CountSpan(158, 2089112))
    assert report.used == ReportedUsage(lut=3099, ff=1070, dsp=0, bram18=9)
    assert [(loop.name, loop.parents) for loop in report.loops] == [
        ("Loop 1", ()), ("rows", ()), ("columns", ("rows",)),
    ]  # fmt: skip
    columns = report.loops[2]
    assert (columns.trip, columns.ii, columns.target_ii) == (CountSpan(10, 1922), CountSpan(2, 2), 1)
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
        "array", "dataflow", CountSpan(None, 140), CountSpan(None, 131),
    )  # fmt: skip
    assert [(module.name, module.used.lut) for module in report.modules] == [("array", 9516), ("inner", 44)]
    outer, inner = report.loops
    assert (outer.module, outer.ii, outer.iteration_latency) == ("inner", None, CountSpan(None, 13))
    assert (inner.parents, inner.ii, inner.depth) == (("outer_loop",), CountSpan(1, 1), CountSpan(3, 3))


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
