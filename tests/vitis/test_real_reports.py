"""Every report of published designs, field by field, against rows that were extracted independently of the parsers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock.profiling.vitis.cosim_rpt import find_cosim_report, read_cosim_report
from penstock.profiling.vitis.csynth_rpt import read_csynth_report
from penstock.profiling.vitis.records import CountSpan, ReportedLoop, ReportedMemory, ReportedUsage, SynthesisReport
from tests.vitis.corpus import NO_CORPUS, SAMPLE, Row, designs, rows, synthesised, whole_corpus

WHOLE = whole_corpus()
ABSENT = pytest.mark.skipif(WHOLE is None, reason=NO_CORPUS)
FOLDERS = [pytest.param(SAMPLE, id="sample"), pytest.param(WHOLE, id="all", marks=ABSENT)]
# Unpacking and reading every csynth.xml takes some seconds.
SLOW_FOLDERS = [pytest.param(SAMPLE, id="sample"), pytest.param(WHOLE, id="all", marks=[ABSENT, pytest.mark.slow])]


def used(row: Row, prefix: str = "") -> ReportedUsage:
    return ReportedUsage(
        *(
            None if (text := row[prefix + name]) == "-" else int(text)
            for name in ("LUT", "FF", "DSP", "BRAM_18K", "URAM")
        )
    )


def same_summary(report: SynthesisReport, row: Row) -> None:
    assert (report.version, report.part, report.family, report.top, report.flow, report.kind) == (
        row["version"], row["part"], row["family"], row["top"], row["flow"], row["pipe"],
    )  # fmt: skip
    assert report.clock_target_ns == float(row["clk_target"])
    assert report.clock_uncertainty_ns == float(row["clk_unc"])
    assert report.clock_estimated_ns == float(row["clk_est"])
    assert report.latency == CountSpan(int(row["lat_best"]), int(row["lat_worst"]))
    assert report.interval == CountSpan(int(row["ii_min"]), int(row["ii_max"]))
    assert report.used == used(row)
    assert report.available == used(row, "avail_")
    assert report.evidence == "csynth"
    assert report.notes == ()


def exact(text: str) -> CountSpan | None:
    return CountSpan(int(text), int(text)) if text else None


def same_loop(loop: ReportedLoop, row: Row) -> None:
    assert (loop.module, loop.name, "/".join(loop.parents)) == (row["module"], row["loop"], row["parent"])
    assert loop.trip == exact(row["trip"])
    assert loop.latency == exact(row["latency"])
    assert loop.ii == exact(row["ii"])
    assert loop.kind == row["ptype"]
    assert loop.pipelined == (row["ptype"] == "yes")


@pytest.mark.parametrize("folder", SLOW_FOLDERS)
def test_every_csynth_xml_equals_the_rows(folder: Path):
    seen = 0
    for path, row in designs(folder):
        report = synthesised(path)
        same_summary(report, row)
        assert report.latency_average == int(row["lat_avg"])
        name = path.name
        loops = rows(folder, "loops").get(name, [])
        assert len(report.loops) == len(loops)
        for loop, wanted in zip(report.loops, loops, strict=True):
            same_loop(loop, wanted)
            assert loop.depth == exact(wanted["depth"])
            assert loop.iteration_latency == exact(wanted["iterlat"])
        modules = rows(folder, "modules")[name]
        assert len(report.modules) == len(modules) == int(row["n_modules"])
        for module, wanted in zip(report.modules, modules, strict=True):
            assert (module.name, module.kind) == (wanted["module"], wanted["pipe"])
            assert module.clock_estimated_ns == float(wanted["clk_est"])
            assert module.latency == CountSpan(int(wanted["lat_best"]), int(wanted["lat_worst"]))
            assert module.interval == exact(wanted["ii"])
            assert module.used == used(wanted)
            assert module.available == used(row, "avail_")
        seen += 1
    assert seen >= 6


@pytest.mark.parametrize("folder", SLOW_FOLDERS)
def test_every_fifo_and_memory_of_the_xml_equals_the_rows(folder: Path):
    fifos = memories = 0
    for path, row in designs(folder):
        report = synthesised(path)
        by_name = {(fifo.module or "", fifo.name): fifo for fifo in report.fifos}
        wanted = rows(folder, "fifos").get(path.name, [])
        assert len(by_name) == len(wanted) == int(row["n_fifos"])
        for line in wanted:
            fifo = by_name[line["module"], line["fifo"]]
            assert (fifo.depth, fifo.bits, fifo.used.bram18) == (
                int(line["depth"]), int(line["bits"]), int(line["BRAM_18K"]),
            )  # fmt: skip
            fifos += 1
        held = {(memory.module or "", memory.name): memory for memory in report.memories}
        lines = {(line["module"], line["mem"]): line for line in rows(folder, "memories").get(path.name, [])}
        assert len(held) == len(report.memories) == len(lines)
        for key in held.keys() & lines.keys():
            same_memory(held[key], lines[key], told_differently=path.name == ROUNDED_IN_TEXT_ONLY)
        # One design names some memories in its text report otherwise than in its XML: they must be alike in kind.
        assert Counter(shape(held[key]) for key in held.keys() - lines.keys()) == Counter(
            (line["module"], *(int(line[c]) for c in ("words", "bits", "BRAM_18K", "URAM")))
            for key, line in lines.items()
            if key not in held
        )
        memories += len(lines)
    assert fifos >= 28
    assert memories >= 20


def shape(memory: ReportedMemory) -> tuple[object, ...]:
    return memory.module, memory.words, memory.bits, memory.used.bram18, memory.used.uram


# Its bindings in XML count the block RAMs of ten ping-pong buffers for both halves at once, its text for each half.
ROUNDED_IN_TEXT_ONLY = "streamhls__cnns__opt3__ResidualBlock"


def same_memory(memory: ReportedMemory, line: Row, told_differently: bool) -> None:
    wanted = tuple(int(line[column]) for column in ("words", "bits", "BRAM_18K", "URAM"))
    if told_differently and memory.copies == 2 and memory.used.bram18 is not None:
        assert 0 <= wanted[2] - memory.used.bram18 <= 5
        assert (memory.words, memory.bits, memory.used.uram) == (wanted[0], wanted[1], wanted[3])
    else:
        assert shape(memory)[1:] == wanted
    assert memory.banks in (None, int(line["banks"]))
    assert (memory.banks is None) == (memory.copies == 2), "blocks of ping-pong buffers are no banks"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_report_equals_the_rows(folder: Path):
    reports = 0
    for path, row in designs(folder):
        for file in path.glob("*_csynth.rpt"):
            report = read_csynth_report(file)
            same_summary(report, row)
            same_tables(report, folder, path.name)
            reports += 1
    assert reports >= 3


def same_tables(report: SynthesisReport, folder: Path, name: str) -> None:
    def own(table: str) -> list[Row]:
        return [row for row in rows(folder, table).get(name, []) if row["module"] == report.top]

    assert [(f.name, f.depth, f.bits, f.used) for f in report.fifos] == [
        (r["fifo"], int(r["depth"]), int(r["bits"]), used(r | {"DSP": "-"})) for r in own("fifos")
    ]
    assert [(m.name, m.kind, m.words, m.bits, m.banks, m.used) for m in report.memories] == [
        (r["mem"], r["memmodule"], int(r["words"]), int(r["bits"]), int(r["banks"]), used(r | {"DSP": "-"}))
        for r in own("memories")
    ]
    loops = own("loops")
    assert len(report.loops) == len(loops)
    for loop, wanted in zip(report.loops, loops, strict=True):
        same_loop(loop, wanted)
        assert loop.iteration_latency == exact(wanted["iterlat"] or wanted["depth"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_cosimulation_equals_the_rows(folder: Path):
    for path, row in designs(folder):
        report = find_cosim_report(path)
        counts = [report.latency_min, report.latency_average, report.latency_max, report.total_cycles]
        wanted = [row[f"cosim_{end}"] for end in ("min", "avg", "max", "total")]
        assert counts == [None if text == "NA" else int(text) for text in wanted]
        assert report.language == row["cosim_rtl"]
        assert report.verdict == {"Pass": "pass", "Fail": "not-run"}[row["cosim_status"]]
        assert report.simulator == ("xsim" if report.verdict == "pass" else None)
        assert report.evidence == "cosim"


def test_the_report_written_before_the_simulation_is_no_verdict():
    folder = SAMPLE / "streamhls__polybench__vitis__atax"
    before = read_cosim_report(folder / "_cosim.rpt")
    assert before.verdict == "not-run"
    assert before.latency_max is None
    assert any("before the simulation" in note for note in before.notes)
    assert find_cosim_report(folder).source == "results_rtl_cosim.rpt"
