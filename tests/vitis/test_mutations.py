"""Damaged reports: typed failures or fewer figures with a note; no figure that the text does not have, no new 0."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.cosim_rpt import read_cosim_report
from penstock.profiling.vitis.csynth_rpt import read_csynth_report
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.implemented_rpt import read_utilization
from penstock.profiling.vitis.timing_rpt import read_timing
from tests.standin import report_text, report_xml
from tests.standin.results import synthesise
from tests.vitis.corpus import SAMPLE
from tests.vitis.mutations import MUTATIONS
from tests.vitis.test_generations import NESTED_XML, OLD_TEXT
from tests.vitis.test_implemented_reports import ROUTED_EXPORT, SITES, TIMING

Reader = Callable[[Path], Any]


def sources() -> list[tuple[str, Reader, str]]:
    """Whole reports, by the ending that their reader expects."""
    small = SAMPLE / "streamhls__polybench__vitis__atax"
    stream = SAMPLE / "streamhls__polybench__streamhls__2560_DSPs__opt1__atax"
    found: list[tuple[str, Reader, str]] = [
        ("csynth.xml", read_csynth_xml, gzip.decompress((folder / "csynth.xml.gz").read_bytes()).decode())
        for folder in (small, stream)
    ]
    found += [
        ("csynth.rpt", read_csynth_report, file.read_text()) for f in (small, stream) for file in f.glob("*_csynth.rpt")
    ]
    found += [("cosim.rpt", read_cosim_report, (small / "results_rtl_cosim.rpt").read_text())]
    found += [
        ("csynth.xml", read_csynth_xml, dedent(NESTED_XML)), ("csynth.rpt", read_csynth_report, dedent(OLD_TEXT)),
        ("util.rpt", read_utilization, dedent(SITES.format(state="Routed"))), ("timing.rpt", read_timing, TIMING),
        ("export_impl.rpt", read_utilization, dedent(ROUTED_EXPORT)),
        ("export_impl.rpt", read_timing, dedent(ROUTED_EXPORT)),
    ]  # fmt: skip
    return found + list(of_generations())


def of_generations() -> Iterator[tuple[str, Reader, str]]:
    """Reports in the forms of other releases, as the stand-in writes them."""
    text = (Path(__file__).parents[1] / "compiler" / "goldens" / "penstock_top.cpp").read_text()
    old, new = (
        synthesise("penstock_top.cpp", text, "penstock_top", "xcu55c-fsvh2892-2L-e", 3.333, release, {})
        for release in ("2021.1", "2025.1")
    )
    yield "csynth.xml", read_csynth_xml, report_xml.csynth_xml(old)
    yield "csynth.xml", read_csynth_xml, report_xml.csynth_xml(new)
    yield "csynth.rpt", read_csynth_report, report_text.summary_report(new)
    yield "csynth.rpt", read_csynth_report, report_text.module_report(old, old.modules[0])
    yield "cosim.rpt", read_cosim_report, report_text.cosim_report(old.style, 4000, 3000, ran=True, passed=True)


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item, path + "[]")
    else:
        yield path, value


def zeros(record: object) -> int:
    return sum(
        1 for path, value in leaves(record) if value == 0 and type(value) in (int, float) and "notes" not in path
    )


def figures(record: object) -> set[int]:
    return {value for path, value in leaves(record) if type(value) is int and "bram18" not in path}


def check_refusal(error: ProfilingError) -> None:
    assert error.kind in ("report-unreadable", "report-missing")
    assert error.what
    assert error.where
    assert len(error.one_line()) < 2000


def check_case(number: int, folder: Path, whole: list[tuple[str, Reader, str]], originals: dict[int, Any]) -> str:
    chance = random.Random(number)
    index = number % len(whole)
    name, read, text = whole[index]
    mutate = MUTATIONS[(number // len(whole)) % len(MUTATIONS)]
    damaged = mutate(text, chance)
    path = folder / name
    path.write_text(damaged)
    if index not in originals:
        (folder / f"whole_{name}").write_text(text)
        originals[index] = read(folder / f"whole_{name}")
    before = originals[index]
    try:
        after = read(path)
    except ProfilingError as error:
        check_refusal(error)
        return "refused"
    assert zeros(after) <= zeros(before), "a figure became 0"
    numbers = {int(token) for token in re.findall(r"(?<![0-9])[0-9]{1,18}(?![0-9])", damaged)}
    assert figures(after) <= numbers | {1}, "a figure that the report does not have"
    for field in fields(before):
        if getattr(before, field.name) is not None and getattr(after, field.name) is None and field.name in NOTED:
            assert after.notes, f"{field.name} went without a note"
    return "read"


# Fields whose absence is always noted; of others, as the part, there is nothing to decide.
NOTED = {
    "clock_target_ns", "clock_estimated_ns", "latency", "interval", "latency_max", "worst_slack_ns", "met",
    "failing_endpoints",
}  # fmt: skip


def run_cases(numbers: range, folder: Path) -> dict[str, int]:
    whole, originals = sources(), {}
    ends = {"read": 0, "refused": 0}
    for number in numbers:
        try:
            ends[check_case(number, folder, whole, originals)] += 1
        except Exception as error:
            raise AssertionError(f"case {number}: {error}") from error
    return ends


def test_some_hundreds_of_damaged_reports(tmp_path: Path):
    ends = run_cases(range(400), tmp_path)
    assert ends["refused"] > 50
    assert ends["read"] > 50


@pytest.mark.slow
def test_four_thousand_damaged_reports(tmp_path: Path):
    ends = run_cases(range(400, 4_400), tmp_path)
    assert ends["refused"] > 500
    assert ends["read"] > 500
