"""csynth's own latency against RTL, beside the simulator fed with II, depth and FIFO depths of the same reports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import VITIS, Network, Phase, Repeat, Sequence, simulate
from penstock.compiler.simulator.network import Item
from penstock.profiling.networks.procnet import ProcNet, read_procnet
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.records import ReportedLoop, SynthesisReport
from penstock.profiling.vitis.retime import retime, take_loop, timed_phase

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "data"


def run(data: Path | None = None) -> Figures:
    """Guards and channels from process networks; II, depth and FIFO depths from the reports of the same designs."""
    folder = find_pairs(data)
    rows = [_row(*pair) for pair in pairs(folder)]
    return Figures("simulated", rows, summarise(rows))


def find_pairs(data: Path | None = None) -> Path:
    """A folder with networks and reports: the one asked for, PENSTOCK_DATA's, one beside the repository, a sample."""
    if data is None and "PENSTOCK_DATA" in os.environ:
        data = Path(os.environ["PENSTOCK_DATA"])
    beside = [parent / part for parent in ROOT.parents for part in ("data", "shared/data")]
    folders = [data] if data is not None else [*beside, SAMPLE]
    found = next((folder for folder in folders if next(iter(pairs(folder)), None) is not None), None)
    if found is None:
        raise PenstockError(
            code="no-data", what="there are no designs with a process network and a report", where=str(data),
            limit="process-networks/NAME.json and hls-reports/NAME/csynth.xml[.gz]",
            hint="name the folder that holds both folders",
        )  # fmt: skip
    return found


def figures_beside(networks: Path) -> dict[str, Value]:
    """The summary for a folder of process networks that has a folder of reports beside it; nothing for others."""
    found = list(pairs(networks.parent)) if networks.name == "process-networks" else []
    if not found:
        return {}
    summary = summarise(_row(*pair) for pair in found)
    return {f"with_reports_{name}": value for name, value in summary.items()}


def pairs(folder: Path) -> Iterable[tuple[Path, Path]]:
    """Designs that have a process network and a report."""
    for network in sorted((folder / "process-networks").glob("*.json")):
        for name in ("csynth.xml.gz", "csynth.xml"):
            if (report := folder / "hls-reports" / network.stem / name).is_file():
                yield network, report
                break


def _row(network: Path, report: Path) -> Mapping[str, Value]:
    try:
        return compare(read_procnet(network), read_csynth_xml(report))
    except PenstockError as error:
        return {"network": network.stem, "simulated_cycles": None, "error_pct": None, "refused": error.one_line()}


def compare(design: ProcNet, report: SynthesisReport) -> Mapping[str, Value]:
    """One row. A process whose loops the report does not have is refused: nothing planned is mixed in."""
    kept: tuple[str, ...] = ()
    if isinstance(design.network, Network):
        timed = retime(design.network, report)
        network, kept = timed.network, timed.kept
    else:
        network = retime_sequence(design.network, report)
    if kept:
        raise PenstockError(
            code="bad-report", what=f"the report does not have the loops of {', '.join(kept)}", where=design.name,
            hint="give the report of this very design",
        )  # fmt: skip
    result = simulate(network, VITIS)
    cycles = None if result.deadlock else result.latency
    said = report.latency.exact if report.latency is not None else None
    return {
        "network": design.name,
        "dataflow": isinstance(network, Network),
        "rtl_cycles": design.rtl_cycles,
        "csynth_cycles": said,
        "csynth_error_pct": _error(said, design.rtl_cycles),
        "simulated_cycles": cycles,
        "error_pct": _error(cycles, design.rtl_cycles),
    }


def retime_sequence(sequence: Sequence, report: SynthesisReport) -> Sequence:
    """`retime` for regions that run one after the other: their loops come in the report in the source's order."""
    rest = list(report.loops)

    def take(iterations: int, pipelined: bool) -> ReportedLoop:
        loop = take_loop(rest, iterations, pipelined)
        if loop is None:
            raise _unfit(report, f"expected a loop of {iterations} iterations")
        return loop

    def timed(item: Item) -> Item:
        if isinstance(item, Network):
            return retime(item, report).network
        if isinstance(item, Phase):
            return timed_phase(item, take(item.iterations, True))
        body = tuple(timed_phase(phase, take(phase.iterations, True)) for phase in item.body)
        outer = take(item.times, False)
        latency = outer.iteration_latency.exact if outer.iteration_latency is not None else None
        if latency is None:
            raise _unfit(report, f"loop {outer.name!r} has no iteration latency")
        return Repeat(item.times, latency, body)

    steps = tuple(tuple(timed(item) for item in step) for step in sequence.steps)
    if rest:
        raise _unfit(report, f"loop {rest[0].name!r} fits nothing")
    return replace(sequence, steps=steps)


def _unfit(report: SynthesisReport, what: str) -> ProfilingError:
    return ProfilingError(
        "bad-request", what=f"the report's loops are not those of the design: {what}",
        where=f"{report.source} of {report.top}", hint="give the report of this very design",
    )  # fmt: skip


def _error(cycles: int | None, rtl: int | None) -> float | None:
    return None if cycles is None or rtl is None else 100 * abs(cycles / rtl - 1)


def summarise(rows: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Errors over all designs, and over those with streams, where csynth errs."""
    rows = list(rows)
    figures: dict[str, Value] = {"n": len(rows), "refused": sum("refused" in row for row in rows)}
    for label, chosen in (("", rows), ("dataflow_", [row for row in rows if row.get("dataflow")])):
        for name, column in (("csynth_", "csynth_error_pct"), ("simulated_", "error_pct")):
            errors = [error for row in chosen if isinstance(error := row.get(column), float)]
            figures[f"{label}{name}mean_error_pct"] = float(np.mean(errors)) if errors else None
            figures[f"{label}{name}max_error_pct"] = max(errors, default=None)
    return figures
