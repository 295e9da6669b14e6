"""All reports below a folder, whatever step of AMD's flow wrote it, as one record; what cannot be read is said."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from penstock.compiler.errors import PenstockError
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.cosim_rpt import find_cosim_report
from penstock.profiling.vitis.doubts import doubts_of_area, doubts_of_link, doubts_of_synthesis, doubts_of_timing
from penstock.profiling.vitis.implemented_rpt import read_utilization
from penstock.profiling.vitis.records import CosimReport, ImplementedReport, SynthesisReport, TimingReport
from penstock.profiling.vitis.report_folder import read_report_folder
from penstock.profiling.vitis.schedule_rpt import ENDING, ModuleSchedule, read_schedule, with_schedules
from penstock.profiling.vitis.timing_rpt import read_timing
from penstock.profiling.vitis.xclbin_info import XclbinInfo, read_xclbin_info

_MOST_FILES, _MOST_DEPTH, _MOST_READ = 200_000, 24, 400
_WHOLE = ("csynth.xml", "csynth.xml.gz", "csynth.rpt")
_PARTS = ("_csynth.xml", "_csynth.rpt")
_EXPORTS = ("_export.rpt", "export_impl.rpt", "export_syn.rpt")
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class FolderReports:
    """`places` name the folder or file of each record, from the folder that was asked for."""

    folder: str
    syntheses: tuple[tuple[str, SynthesisReport], ...]
    cosims: tuple[tuple[str, CosimReport], ...]
    areas: tuple[tuple[str, ImplementedReport], ...]
    timings: tuple[tuple[str, TimingReport], ...]
    links: tuple[tuple[str, XclbinInfo], ...]
    doubts: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        kinds = ("syntheses", "cosims", "areas", "timings", "links")
        return {
            "folder": self.folder,
            **{kind: [{"place": place, **asdict(one)} for place, one in getattr(self, kind)] for kind in kinds},
            "doubts": list(self.doubts),
            "notes": list(self.notes),
        }


def find_reports(folder: Path, top: str | None = None) -> FolderReports:
    """Everything that lies in a solution, a build of v++ or a project of Vivado, of any release."""
    if not folder.is_dir():
        raise PenstockError(
            code="bad-folder", what="there is no such folder", where=str(folder),
            hint="name a solution, its syn/report, or the folder that v++ worked in",
        )  # fmt: skip
    files = list(_files(folder))
    notes: list[str] = []

    def each(paths: list[Path], read: Callable[[Path], _Read]) -> tuple[tuple[str, _Read], ...]:
        """What can be read of them; the rest is noted."""
        found: list[tuple[str, _Read]] = []
        if len(paths) > _MOST_READ:
            notes.append(f"{len(paths)} reports of one kind: the first {_MOST_READ} are read")
        for path in paths[:_MOST_READ]:
            try:
                found.append((str(path.relative_to(folder)), read(path)))
            except ProfilingError as error:
                notes.append(error.one_line())
        return tuple(found)

    schedules = _schedules([path for path in files if path.name.endswith(ENDING)], notes)

    def synthesis(place: Path) -> SynthesisReport:
        report = read_report_folder(place, top or _only_top(place))
        own = {name: one for where, name, one in schedules if where == place.parents[1]}
        return with_schedules(report, own)

    syntheses = each(_folders(files, _WHOLE, _PARTS), synthesis)
    cosims = each(sorted({p.parent for p in files if p.name.endswith("cosim.rpt")}), find_cosim_report)
    areas = each([path for path in files if _is_area(path)], read_utilization)
    timings = each([path for path in files if _is_timing(path)], read_timing)
    links = each([path for path in files if path.name.endswith(".xclbin.info")], read_xclbin_info)
    doubts = [
        *_against_cosim([one for _, one in syntheses], [one for _, one in cosims]),
        *(line for _, one in syntheses for line in doubts_of_synthesis(one)),
        *(line for _, one in areas for line in doubts_of_area(one)),
        *(line for _, one in timings for line in doubts_of_timing(one)),
        *(line for _, one in links for line in doubts_of_link(one)),
        *(line for _, one in cosims if one.verdict == "fail" for line in (f"{one.source}: the co-simulation failed",)),
    ]
    if not (syntheses or cosims or areas or timings or links):
        raise PenstockError(
            code="bad-folder", what=f"none of its {len(files)} files is a report that can be read", where=str(folder),
            limit="csynth.xml, *_csynth.rpt, *_cosim.rpt, *util*.rpt, *timing_summary*.rpt, *.xclbin.info; "
            + ("; ".join(notes[:3]) or "none of these names was found"),
            hint="name the folder in which the tool worked, after it has ended",
        )  # fmt: skip
    every = [*notes, *(f"{place}: {line}" for place, one in (*syntheses, *areas, *timings) for line in one.notes)]
    return FolderReports(
        folder.name or str(folder), syntheses, cosims, areas, timings, links, tuple(dict.fromkeys(doubts)),
        tuple(dict.fromkeys(every)),
    )  # fmt: skip


def _against_cosim(syntheses: list[SynthesisReport], cosims: list[CosimReport]) -> Iterator[str]:
    """csynth takes processes that streams connect as fully overlapped; a measurement says by how much it errs."""
    if len(syntheses) != 1 or len(cosims) != 1 or syntheses[0].latency is None:
        return
    said, measured = syntheses[0].latency.high, cosims[0].latency_max
    if said is not None and measured is not None and cosims[0].verdict == "pass" and measured > 1.01 * said:
        more = 100 * (measured / said - 1)
        yield f"csynth says at most {said:,} cycles, co-simulation measured {measured:,}: {more:.0f} % more"


def _files(folder: Path) -> Iterator[Path]:
    """Files below the folder; links are not followed."""
    count = 0
    for where, folders, names in os.walk(folder):
        folders.sort()
        if len(Path(where).relative_to(folder).parts) >= _MOST_DEPTH:
            folders.clear()
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                raise PenstockError(
                    code="bad-folder", what=f"there are more than {_MOST_FILES:,} files", where=str(folder),
                    hint="name the folder of one solution or one link",
                )  # fmt: skip
            path = Path(where) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _folders(files: list[Path], whole: tuple[str, ...], parts: tuple[str, ...]) -> list[Path]:
    """Folders with reports of a synthesis; the copy that .autopilot and impl keep of some of them is no other one."""
    found = {path.parent for path in files if path.name in whole or path.name.endswith(parts)}
    return sorted(place for place in found if ".autopilot" not in place.parts)


def _only_top(place: Path) -> str | None:
    """The module of a folder that has one module's report alone."""
    names = {path.name.removesuffix(end) for end in _PARTS for path in place.glob(f"*{end}")}
    return names.pop() if len(names) == 1 else None


def _schedules(paths: list[Path], notes: list[str]) -> list[tuple[Path, str, ModuleSchedule]]:
    """(solution, module, its schedule): they lie in the solution's .autopilot/db."""
    found: list[tuple[Path, str, ModuleSchedule]] = []
    for path in paths:
        try:
            one = read_schedule(path)
        except ProfilingError as error:
            notes.append(error.one_line())
            continue
        parts = path.parts
        solution = Path(*parts[: parts.index(".autopilot")]) if ".autopilot" in parts else path.parent
        found.append((solution, one.module, one))
    return found


def _is_area(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith(_EXPORTS) or (name.endswith(".rpt") and "util" in name and "clock_util" not in name)


def _is_timing(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith(_EXPORTS) or (name.endswith(".rpt") and "timing" in name)
