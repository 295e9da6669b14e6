"""Where the real reports lie: a few in the repository, more in a folder of data that PENSTOCK_DATA may name."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.records import SynthesisReport

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests" / "data" / "hls-reports"

NO_CORPUS = "the reports of all published designs are not here: PENSTOCK_DATA names no folder that has hls-reports"

Row = dict[str, str]


def whole_corpus() -> Path | None:
    """The folder with all reports, where PENSTOCK_DATA names one, or None."""
    folder = Path(os.environ.get("PENSTOCK_DATA", "/nowhere")) / "hls-reports"
    return folder if (folder / "index.csv").is_file() else None


@cache
def rows(folder: Path, table: str) -> dict[str, list[Row]]:
    """A table's rows by design."""
    found: dict[str, list[Row]] = {}
    with (folder / f"{table}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["name"], []).append(row)
    return found


@cache
def synthesised(path: Path) -> SynthesisReport:
    return read_csynth_xml(path / "csynth.xml.gz")


def designs(folder: Path) -> Iterator[tuple[Path, Row]]:
    for name, (row,) in rows(folder, "index").items():
        yield folder / name, row
