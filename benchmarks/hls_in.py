"""Public HLS C++ from source alone: II, depth and area against csynth, cycles against RTL, beside csynth's error."""

from __future__ import annotations

import csv
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from benchmarks.read_back import own_rows
from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.area import area_of
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import Timed, time_kernel
from penstock.compiler.simulator import VITIS, Network, simulate
from penstock.profiling.kernels.fix import fix_kernel
from penstock.profiling.kernels.values import check_values

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "data" / "hls-sources"


def run(data: Path | None = None, only: str | None = None) -> Figures:
    if only is not None and (only == "own" or only.startswith("own/")):
        found = list(own_rows(only.partition("/")[2]))
        return Figures("modelled", found, _part_summary(found))
    folder = find_sources(data)
    for part, row in {"values": _value_row, "rtl": _rtl_row, "fix": _fix_row}.items():
        if only is not None and (only == part or only.startswith(f"{part}/")):
            wanted = only.partition("/")[2]
            found = [row(folder / d["name"], d) for d in _csv(folder / "index.csv") if wanted in d["name"]]
            return Figures("simulated", found, _part_summary(found))
    loops = _loops(folder)
    rows = [
        _row(folder / design["name"], design, loops.get(design["name"], []))
        for design in _csv(folder / "index.csv")
        if only is None or only in design["name"]
    ]
    rows += list(_without_generator(rows))
    return Figures("simulated", rows, summarise(row for row in rows if "design" in row))


def _asked(design: Mapping[str, str], ask: Callable[[str, float], Mapping[str, Value]]) -> Mapping[str, Value]:
    """What came of a design, of its top and its clock in MHz; what is refused is a row with its reason."""
    row: dict[str, Value] = {"design": design["name"], "generator": generator_of(design["name"])}
    started = time.process_time()
    try:
        found = ask(design["top"], 1000 / float(design["clk"]))
    except PenstockError as error:
        found = {"better": None, "refused": error.one_line()}
    return {**row, **found, "seconds": time.process_time() - started}


def _value_row(folder: Path, design: Mapping[str, str], rtl: bool = False) -> Mapping[str, Value]:
    """Whether a design's nests, and the C++ of these, compute what its source does."""

    def ask(top: str, clock_mhz: float) -> Mapping[str, Value]:
        found = check_values(_required(folder), top, clock_mhz, rtl=rtl)
        last = found.levels[-1]
        cycles: dict[str, Value] = {"cycles": last.cycles, "simulated_cycles": last.simulated_cycles} if rtl else {}
        different: dict[str, Value] = {f"{level.level} different": level.different for level in found.levels}
        return {**different, **cycles, "rolled": found.rolled, "better": found.equal}

    return _asked(design, ask)


def _rtl_row(folder: Path, design: Mapping[str, str]) -> Mapping[str, Value]:
    """The same of its SystemVerilog, whose cycles are those of the simulator."""
    return _value_row(folder, design, rtl=True)


def _fix_row(folder: Path, design: Mapping[str, str]) -> Mapping[str, Value]:
    """What better pragmas are worth."""

    def ask(top: str, clock_mhz: float) -> Mapping[str, Value]:
        found = fix_kernel(_required(folder), top, clock_mhz)
        before, after = found.latency_before, found.latency
        slower = after is None or (before is not None and after > before)
        return {
            "cycles_before": before, "cycles": after, "fifo_bits_before": found.fifo_bits_before,
            "fifo_bits": found.fifo_bits, "changes": len(found.changes), "slower": slower,
            "better": not slower and bool(found.changes),
        }  # fmt: skip

    return _asked(design, ask)


def _required(folder: Path) -> Path:
    source = _source(folder)
    if source is None:
        raise PenstockError(code="no-data", what="there is no source", where=folder.name)
    return source


def _part_summary(rows: list[Mapping[str, Value]]) -> dict[str, Value]:
    """How many designs there are, how many were refused, and of how many the part's claim holds."""
    return {
        "n": len(rows), "refused": sum("refused" in row for row in rows),
        "equal_or_better": sum(row["better"] is True for row in rows),
        "worse": sum(row.get("slower") is True or ("slower" not in row and row["better"] is False) for row in rows),
        "max_s": max(_floats(rows, "seconds"), default=None),
    }  # fmt: skip


def find_sources(data: Path | None = None) -> Path:
    """A folder of designs: the one asked for, PENSTOCK_DATA's, one beside the repository, the tests' sample."""
    if data is None and "PENSTOCK_DATA" in os.environ:
        data = Path(os.environ["PENSTOCK_DATA"])
    beside = [parent / part for parent in ROOT.parents for part in ("data", "shared/data")]
    folders = [data] if data is not None else [*beside, SAMPLE.parent]
    for folder in folders:
        for found in (folder, folder / "hls-sources"):
            if (found / "index.csv").is_file() and (found / "loops.csv").is_file() and _has_sources(found):
                return found
    raise PenstockError(
        code="no-data", what="there are no designs of HLS C++", where=str(data),
        limit="index.csv, loops.csv and a folder with the source for each name of index.csv",
        hint="name the folder that holds them",
    )  # fmt: skip


def _has_sources(folder: Path) -> bool:
    first = next(iter(_csv(folder / "index.csv")), None)
    return first is not None and _source(folder / first["name"]) is not None


def _source(folder: Path) -> Path | None:
    return next(iter(sorted((*folder.glob("*.cpp"), *folder.glob("*.cc"), *folder.glob("*.c")))), None)


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _loops(folder: Path) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for loop in _csv(folder / "loops.csv"):
        found.setdefault(loop["name"], []).append(loop)
    return found


def _row(folder: Path, design: Mapping[str, str], loops: list[dict[str, str]]) -> Mapping[str, Value]:
    name = design["name"]
    rtl, csynth = _count(design.get("cosim")), _count(design.get("csynth_worst"))
    reported = [loop for loop in loops if loop["ii"]]
    row: dict[str, Value] = {
        "design": name, "generator": generator_of(name), "rtl_cycles": rtl, "csynth_cycles": csynth,
        "csynth_error_pct": _error(csynth, rtl), "loops": len(reported),
    }  # fmt: skip
    started = time.perf_counter()
    try:
        source = _source(folder)
        if source is None:
            raise PenstockError(code="no-data", what="there is no source", where=name)
        delays = delays_for(1000 / float(design["clk"]))
        timed = time_kernel(read_kernel(source, design["top"]), delays)
        result = simulate(timed.design, VITIS)
        area = area_of(timed, delays)
    except PenstockError as error:
        return {**row, "refused": error.one_line(), "seconds": time.perf_counter() - started}
    cycles = None if result.deadlock is not None else result.latency
    exact, near = _compared(timed, reported)
    return {
        **row, "dataflow": isinstance(timed.design, Network), "simulated_cycles": cycles,
        "error_pct": _error(cycles, rtl), "ii_exact": exact, "depth_within_1": near,
        "dsp": area.dsp, "dsp_reported": _count(design.get("DSP")),
        "lut": area.lut, "lut_reported": _count(design.get("LUT")),
        "ff": area.ff, "ff_reported": _count(design.get("FF")), "seconds": time.perf_counter() - started,
    }  # fmt: skip


def _compared(timed: Timed, loops: list[dict[str, str]]) -> tuple[int, int]:
    """How many reported loops have the same II here, and a depth that differs by at most 1. Loops fit by name."""
    rest = [(item, found) for item, found in timed.schedules.items() if hasattr(item, "counters")]
    exact = near = 0
    for loop in loops:
        fitting = [pair for pair in rest if getattr(pair[0], "name", "") == loop["loop"]]
        if fitting:
            rest.remove(fitting[0])
            exact += str(fitting[0][1].ii) == loop["ii"]
            near += abs(fitting[0][1].depth - int(loop["depth"])) <= 1
    return exact, near


def generator_of(name: str) -> str:
    known = ("allo", "heterocl", "hida", "scalehls", "vitis")
    return next((part for part in name.split("__") if part in known), name.split("__")[0])


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _error(cycles: int | None, rtl: int | None) -> float | None:
    return None if cycles is None or not rtl else 100 * abs(cycles / rtl - 1)


def _without_generator(rows: list[dict[str, Value]] | list[Mapping[str, Value]]) -> Iterator[Mapping[str, Value]]:
    """The figures of each generator by itself; compiler/hls_in/README.md says what the rules were found on."""
    for generator in sorted({str(row["generator"]) for row in rows}):
        yield {"generator": generator, **summarise(row for row in rows if row["generator"] == generator)}


def summarise(rows: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    rows = list(rows)
    read = [row for row in rows if "refused" not in row]
    errors = _floats(rows, "error_pct")
    loops = sum(int(row["loops"] or 0) for row in rows)
    return {
        "n": len(rows),
        "read_pct": 100 * len(read) / len(rows) if rows else None,
        "ii_exact_pct": 100 * sum(int(row["ii_exact"] or 0) for row in read) / loops if loops else None,
        "depth_within_1_pct": 100 * sum(int(row["depth_within_1"] or 0) for row in read) / loops if loops else None,
        "mean_error_pct": statistics.mean(errors) if errors else None,
        "median_error_pct": statistics.median(errors) if errors else None,
        "worst_error_pct": max(errors, default=None),
        "csynth_mean_error_pct": statistics.mean(found) if (found := _floats(rows, "csynth_error_pct")) else None,
        "dsp_exact_pct": 100 * sum(row["dsp"] == row["dsp_reported"] for row in read) / len(rows) if rows else None,
        "lut_median_error_pct": _median(read, "lut"),
        "ff_median_error_pct": _median(read, "ff"),
        "max_s": max(_floats(rows, "seconds"), default=None),
    }


def _floats(rows: Iterable[Mapping[str, Value]], key: str) -> list[float]:
    return [value for row in rows if isinstance(value := row.get(key), float)]


def _median(rows: Iterable[Mapping[str, Value]], key: str) -> float | None:
    errors: list[float] = []
    for row in rows:
        ours, theirs = row.get(key), row.get(f"{key}_reported")
        if isinstance(ours, int) and isinstance(theirs, int) and theirs:
            errors.append(100 * abs(ours / theirs - 1))
    return statistics.median(errors) if errors else None
