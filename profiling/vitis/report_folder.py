"""All reports that high-level synthesis wrote for one design, as one record.

Newer tools put every module into csynth.xml. Older ones say there only what concerns the top, and the rest in a report
for each module; some figures stand in text alone. What one report lacks is taken from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.csynth_rpt import read_csynth_report
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.reading import missing, unreadable
from penstock.profiling.vitis.records import (
    CountSpan,
    Module,
    ReportedFifo,
    ReportedMemory,
    ReportedUsage,
    SynthesisReport,
)

_MOST_FILES = 5000
_FIGURES = (
    "latency", "interval", "clock_target_ns", "clock_uncertainty_ns", "clock_estimated_ns", "part", "flow",
)  # fmt: skip
_Item = TypeVar("_Item")
Reader = Callable[[Path], SynthesisReport]


def read_report_folder(folder: Path, top: str | None = None) -> SynthesisReport:
    """Read `syn/report` of a solution; `top` is needed only where csynth.xml is missing.

    A text beside XML that is damaged costs what it alone would have said, and is noted.
    """
    main = _main(folder, top)
    parts = [report for report in _parts(folder, main) if report.top not in (None, main.top)]
    if parts or not main.modules:
        loops = _joined([main.loops, *(part.loops for part in parts)])
        own = main if main.modules else _as_module(main)
        main = replace(main, modules=_joined(part.modules for part in (own, *parts)), loops=loops)
    bound = bool(main.fifos or main.memories or main.operators)
    unsized = {item.module for item in (*main.fifos, *main.memories) if _unsized(item)}
    own = [f"{name}_csynth.rpt" for name in sorted({main.top or "", *(name or "" for name in unsized)})]
    texts, damaged = _texts(folder, own if bound else None)
    fifos, memories = (_joined(text.fifos for text in texts), _joined(text.memories for text in texts))
    main = replace(
        main, fifos=tuple(_sized(fifo, fifos) for fifo in main.fifos) or fifos,
        memories=tuple(_sized(memory, memories) for memory in main.memories) or memories,
    )  # fmt: skip
    if not main.instances:
        main = replace(main, instances=_joined(text.instances for text in texts))
    main = _filled(main, next((text for text in texts if text.top == main.top), None))
    return replace(main, notes=(*main.notes, *damaged)) if damaged else main


def _texts(folder: Path, names: list[str] | None) -> tuple[list[SynthesisReport], list[str]]:
    """Texts that complete the XML: those of all modules, or of these files where the XML lists its bindings itself."""
    found: list[SynthesisReport] = []
    damaged: list[str] = []
    for path in _files(folder, "_csynth.rpt"):
        if names is not None and path.name not in names:
            continue
        try:
            found.append(read_csynth_report(path))
        except ProfilingError as error:
            damaged.append(f"{path.name} is left out: {error.what}")
    return found, damaged


_Stored = TypeVar("_Stored", ReportedFifo, ReportedMemory)


def _unsized(item: ReportedFifo | ReportedMemory) -> bool:
    return item.bits is None or (item.depth if isinstance(item, ReportedFifo) else item.words) is None


def _sized(item: _Stored, texts: tuple[_Stored, ...]) -> _Stored:
    """A binding of 2021.2 to 2023.1, which has no sizes, with those of its module's text."""
    if not _unsized(item):
        return item
    name = item.name.removesuffix("_U")
    own = [text for text in texts if item.module in (None, text.module) and text.name.removesuffix("_U") == name]
    if not own:
        return item
    said = vars(own[0])
    lacking = {
        key: said[key]
        for key in ("depth", "words", "bits", "banks")
        if said.get(key) is not None and getattr(item, key) is None
    }
    return replace(item, **lacking)


def _main(folder: Path, top: str | None) -> SynthesisReport:
    candidates: list[tuple[str, Reader]] = [("csynth.xml", read_csynth_xml), ("csynth.xml.gz", read_csynth_xml)]
    if top is not None:
        candidates += [(f"{top}_csynth.xml", read_csynth_xml), (f"{top}_csynth.rpt", read_csynth_report)]
    candidates.append(("csynth.rpt", read_csynth_report))
    for name, read in candidates:
        if (folder / name).is_file():
            return read(folder / name)
    raise missing(folder / "csynth.xml", "there is no report of the synthesis")


def _parts(folder: Path, main: SynthesisReport) -> list[SynthesisReport]:
    """Each module once, its XML where there is one, else its text; none where the main report lists them."""
    if any(module.name != main.top for module in main.modules):
        return []
    found: dict[str, SynthesisReport] = {}
    readers: tuple[tuple[str, Reader], ...] = (("_csynth.xml", read_csynth_xml), ("_csynth.rpt", read_csynth_report))
    for ending, read in readers:
        for path in _files(folder, ending):
            name = path.name.removesuffix(ending)
            if name != main.top and name not in found:
                found[name] = read(path)
    return [_as_module(report) for report in found.values()]


def _as_module(report: SynthesisReport) -> SynthesisReport:
    """An older module's XML describes it as a top; it is one of the design's modules."""
    own = Module(
        report.top or "?", report.clock_estimated_ns, report.latency, report.interval, report.kind, report.used,
        report.available, report.depth,
    )  # fmt: skip
    return replace(report, modules=(own,))


def _files(folder: Path, ending: str) -> list[Path]:
    paths = sorted(path for path in folder.glob(f"*{ending}") if path.is_file())
    if len(paths) > _MOST_FILES:
        raise unreadable(folder, f"{len(paths)} reports", limit=f"at most {_MOST_FILES} are read")
    return paths


def _joined(parts: Iterable[tuple[_Item, ...]]) -> tuple[_Item, ...]:
    return tuple(item for part in parts for item in part)


def _filled(main: SynthesisReport, text: SynthesisReport | None) -> SynthesisReport:
    """Figures of the top that its XML lacks and its text has."""
    if text is None:
        return main
    lacking = {
        name: getattr(text, name)
        for name in _FIGURES
        if _vague(getattr(main, name)) and not _vague(getattr(text, name))
    }
    if not lacking and not (main.used.missing or main.available.missing):
        return main
    more = (f"from {text.source}: {', '.join(lacking)}",) if lacking else ()
    return replace(
        main, **lacking, used=_both(main.used, text.used), available=_both(main.available, text.available),
        notes=main.notes + more,
    )  # fmt: skip


def _vague(value: object) -> bool:
    """Whether a figure is missing, or only one end of its range is known."""
    return value is None or (isinstance(value, CountSpan) and None in (value.low, value.high))


def _both(first: ReportedUsage, second: ReportedUsage) -> ReportedUsage:
    return ReportedUsage(
        **{name: count if count is not None else getattr(second, name) for name, count in vars(first).items()}
    )
