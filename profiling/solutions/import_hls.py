"""A solution of Vitis HLS as a network of processes: times and depths from its reports, tokens from its source.

No report says which iteration touches which stream, so the source is read as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import KERNELS
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.simulator import Network, Sequence
from penstock.profiling.kernels.from_reports import Reported
from penstock.profiling.networks.writing import as_json
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.solutions.found import FolderReports, find_reports
from penstock.profiling.vitis.reading import read_text
from penstock.profiling.vitis.records import SynthesisReport
from penstock.profiling.vitis.retime import reported_depths
from penstock.profiling.vitis.xml_tree import read_xml

_CONFIGURED = re.compile(r"^\s*(?:syn\.)?file\s*=\s*(\S.*?)\s*$", re.M)


@dataclass(frozen=True)
class ImportedSolution:
    network: Network | Sequence
    source: Path
    top: str
    rtl_cycles: int | None
    csynth_cycles: int | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """A file that `penstock simulate` and `penstock size-fifos` read."""
        return {**as_json(self.network, self.rtl_cycles, self.csynth_cycles), "notes": [*self.notes]}


def import_solution(folder: Path, source: Path | None = None, top: str | None = None) -> ImportedSolution:
    """Read a solution's reports, find its source, and put the reports' II, depths and FIFO depths into its network."""
    found = find_reports(folder, top)
    place, report = _synthesis(found, folder, top)
    top = top or report.top
    if top is None or report.clock_target_ns is None:
        lacking = "top function" if top is None else "clock"
        raise PenstockError(
            code="bad-folder", what=f"the reports do not name the {lacking}", where=f"{folder}/{place}",
            hint="name the top with --top" if top is None else "csynth.xml has the clock: keep it beside csynth.rpt",
        )  # fmt: skip
    source = source or find_source(folder)
    reported = Reported(report)
    kernel = read_kernel(source, top)
    design = time_kernel(kernel, delays_for(1000 / report.clock_target_ns), reported).design
    if isinstance(design, Network):
        design = design.with_depths(reported_depths(design, report))
    measured = [one.latency_max for _, one in found.cosims if one.verdict == "pass"]
    notes = [*kernel.notes, *reported.notes(), *found.doubts]
    if kernel.axi:
        notes.append("the start and burst overheads of m_axi ports are not in the network")
    return ImportedSolution(
        design, source, top, measured[0] if len(measured) == 1 else None,
        report.latency.high if report.latency is not None else None, tuple(notes),
    )  # fmt: skip


def _synthesis(found: FolderReports, folder: Path, top: str | None) -> tuple[str, SynthesisReport]:
    own = [(place, one) for place, one in found.syntheses if top is None or one.top == top]
    if len(own) == 1:
        return own[0]
    names = ", ".join(sorted({f"{one.top} in {place}" for place, one in found.syntheses})[:8])
    raise PenstockError(
        code="bad-folder", what=f"{len(own)} reports of a synthesis fit, one was expected", where=str(folder),
        limit=names or "there is none", hint="name one solution's folder, or the top function with --top",
    )  # fmt: skip


def find_source(folder: Path) -> Path:
    """The one source that the project lists in hls.app or a configuration, or that lies beside the reports."""
    listed: list[Path] = []
    for place in (folder, *folder.resolve().parents[:2]):
        listed += _listed(place)
    if not listed:
        listed = sorted(path for path in folder.glob("*") if path.suffix in KERNELS and path.is_file())
    sources = list(dict.fromkeys(path.resolve() for path in listed if path.suffix in KERNELS and path.is_file()))
    if len(sources) == 1:
        return sources[0]
    names = ", ".join(path.name for path in sources[:8])
    raise PenstockError(
        code="bad-folder", what=f"{len(sources)} sources were found, one was expected", where=str(folder),
        limit=names or "neither hls.app nor hls_config.cfg names one that is there",
        hint="name the file that has the top function with --source",
    )  # fmt: skip


def _listed(place: Path) -> list[Path]:
    """What a project says of its own files; those of its test bench are left out."""
    found: list[Path] = []
    for name in ("hls.app", "vivado_hls.app", "vitis_hls.app"):
        if (place / name).is_file():
            try:
                root = read_xml(place / name, frozenset())
            except ProfilingError:
                continue
            for node in root.every("file"):
                said = node.attributes
                if said.get("tb", "0") in ("0", "false") and (given := said.get("name")):
                    found += [path for base in (place, place.parent) if (path := base / given).is_file()][:1]
    for path in sorted(place.glob("*.cfg"))[:20]:
        found += [place / given for given in _CONFIGURED.findall(read_text(path)) if (place / given).is_file()]
    return found
