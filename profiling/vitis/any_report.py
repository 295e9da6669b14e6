"""Reads a report without being told which it is: what it contains decides, not what it is called."""

from __future__ import annotations

from pathlib import Path

from profiling.vitis.cosim_rpt import read_cosim_report
from profiling.vitis.csynth_rpt import read_csynth_report
from profiling.vitis.csynth_xml import read_csynth_xml
from profiling.vitis.implemented_rpt import read_utilization
from profiling.vitis.reading import read_start, unreadable
from profiling.vitis.records import CosimReport, ImplementedReport, SynthesisReport, TimingReport
from profiling.vitis.timing_rpt import read_timing

Report = SynthesisReport | CosimReport | ImplementedReport | TimingReport
_START = 1 << 16


def read_any_report(path: Path) -> Report:
    """The record of csynth's, co-simulation's or Vivado's report; HLS' export report is read as one of area."""
    start = read_start(path, _START)
    if start.lstrip().startswith("<"):
        return read_csynth_xml(path)
    if "Report for '" in start or "Synthesis Summary Report of '" in start:
        return read_csynth_report(path)
    if "== Vivado Place & Route Results" in start or "== Vivado RTL Synthesis Results" in start:
        return read_utilization(path)
    if "RTL" in start and "Status" in start and "Latency" in start:
        return read_cosim_report(path)
    if "report_timing" in start or "Timing Summary Report" in start or "| Design Timing Summary" in start:
        return read_timing(path)
    if any(words in start for words in ("tilization", "Resource usage", "Site Type", "User Budget")):
        return read_utilization(path)
    raise unreadable(path, "no report of these tools", limit="known are csynth, cosim, area and timing")
