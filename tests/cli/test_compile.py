"""`penstock compile` and `penstock explore` as a user calls them: good ends, and every mistake on one line."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from penstock.compiler.design import Design
from penstock.compiler.package.report import Report, SearchResult, TrialInfo
from penstock.compiler.runtime.penstock_runtime import load, open_package
from penstock.services.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
MODEL = "zoo:mlp?inputs=16&hidden=8&outputs=4"


def penstock(*arguments: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, at its first import
        return run(list(arguments))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compile") / "out"
    assert penstock("compile", MODEL, "--quantize", "w8a8", "--trials", "6", "-o", str(out)) == 0
    return out


def test_report_is_complete_and_every_figure_has_evidence(compiled: Path) -> None:
    report = Report.model_validate_json((compiled / "report.json").read_text())
    assert report.verify.csim.equal is True
    assert report.verify.pytorch.ok is True
    assert all(level.equal for level in report.verify.levels)
    assert report.timing.evidence == "simulated"
    assert [figures.evidence for figures in report.timing.measured] == ["modelled", "simulated"]
    assert report.timing.latency_cycles
    assert report.resources.lut.used
    bandwidth = report.resources.bandwidth
    assert bandwidth is not None
    assert bandwidth.evidence == report.timing.evidence
    assert bandwidth.share is not None
    assert bandwidth.share == pytest.approx(bandwidth.used_gb_s / bandwidth.sustained_gb_s, rel=1e-3)
    assert 0 < bandwidth.share <= 1
    assert "GB/s" in (compiled / "report.html").read_text()
    assert report.accuracy is None, "this model came without a held-out set"
    assert report.exploration is not None
    assert len(report.exploration.trials) == 6
    assert sum(t.chosen for t in report.exploration.trials) == 1
    kernels = {k.name for k in report.design.kernels}
    for channel in report.design.channels:
        assert {channel.source, channel.target} <= kernels | {""} | {k.kernel for k in report.timing.kernels}


def test_the_report_says_where_time_goes_and_where_everything_stands(compiled: Path) -> None:
    report = Report.model_validate_json((compiled / "report.json").read_text())
    run, placement = report.timing.simulated, report.placement
    assert run is not None
    assert placement is not None
    assert run.frame_ends[0] == report.timing.latency_cycles
    tasks = {task.task: task for task in run.tasks}
    for task in tasks.values():
        waited = sum(stall.cycles for stall in run.stalls if stall.task == task.task)
        assert waited == task.waited_cycles
        assert task.start_cycle <= task.first_token_cycle <= task.end_cycle <= run.frame_ends[0]
    assert max(step.end_cycle for step in run.critical_path) == run.frame_ends[0]
    for channel in report.design.channels:
        assert channel.held is not None
        assert channel.depth is not None
        assert 0 < channel.held <= channel.depth, "as full as it is deep, and no fuller"
        assert channel.memory in {"registers", "srl", "lutram", "bram", "uram"}
    assert {task for die in placement.dies for task in die.tasks} == set(tasks)
    used = {name: sum(die.used[name] for die in placement.dies) for name in placement.dies[0].used}
    shown = report.resources
    assert used == {
        n: a.used for n, a in zip(used, (shown.lut, shown.ff, shown.dsp, shown.bram18, shown.uram), strict=True)
    }
    page = (compiled / "report.html").read_text()
    for heading in ("Time", "Channels", "Dies", "Memories"):
        assert f"<h2>{heading} " in page
    assert page.count('class="ps"') == 3, "dies, memories and the why are drawings, not text"
    record = json.loads((compiled / "design.json").read_text())
    assert set(record["dies"]) == set(tasks)
    assert {m.name: m.kind for m in placement.memories} == record["memories"]
    assert "nk=penstock_top:1:" in (compiled / "link" / "connectivity.cfg").read_text()


def test_figures_may_stay_modelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock("compile", MODEL, "--trials", "2", "--evidence", "modelled", "-o", str(tmp_path), "--json") == 0
    report = Report.model_validate_json(capsys.readouterr().out)
    assert report.timing.evidence == "modelled"
    assert report.timing.simulated is None
    assert all(channel.held is None for channel in report.design.channels)
    assert report.exploration is not None
    assert report.exploration.chosen_by == "modelled"


def test_archive_beside_the_folder_is_the_same_package(compiled: Path) -> None:
    (archive,) = compiled.glob("*.penstock.zip")
    with open_package(archive) as packed, open_package(compiled) as unpacked:
        assert packed.manifest == unpacked.manifest
        assert packed.problems() == unpacked.problems() == []
        assert not [p for p in packed.paths() if p.startswith("csim/") and not p.endswith((".cpp", ".h"))]


def test_package_runs_on_its_own(compiled: Path) -> None:
    result = subprocess.run(
        [sys.executable, "run.py", "--self-test"],
        cwd=compiled,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 of 4 values have the bits of the interpreter" in result.stdout


def test_its_csim_program_compiles_and_runs_from_the_package_alone(compiled: Path, tmp_path: Path) -> None:
    program = tmp_path / "csim"
    sources = [str(p) for part in ("hls", "csim") for p in sorted((compiled / part).glob("*.cpp"))]
    flags = ["-std=c++14", "-O0", "-ffp-contract=off", "-I", "csim/include", "-I", "hls"]
    subprocess.run(["g++", *flags, *sources, "-o", str(program)], cwd=compiled, check=True, timeout=600)
    with open_package(compiled) as package:
        samples = package.samples()
        (port,), _ = package.ports()
    assert samples is not None
    (tmp_path / "in.bin").write_bytes(port.to_accelerator(samples.inputs[0]).tobytes())
    subprocess.run([str(program), str(tmp_path / "in.bin"), "--", str(tmp_path / "out.bin")], check=True, timeout=600)
    assert (tmp_path / "out.bin").read_bytes() == samples.expected[0].tobytes()


def test_design_can_be_fed_back(compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stored design, unchanged, gives the same accelerator."""
    record = compiled / "design.json"
    code = penstock("compile", MODEL, "--design", str(record), "-o", str(tmp_path / "again"), "--json")
    assert code == 0
    again = Report.model_validate_json(capsys.readouterr().out)
    first = Report.model_validate_json((compiled / "report.json").read_text())
    assert again.design == first.design
    assert again.timing == first.timing
    assert again.resources == first.resources
    assert again.exploration is None
    for path in ("hls/penstock_top.cpp", "hls/weights.h", "design.json"):
        assert (tmp_path / "again" / path).read_bytes() == (compiled / path).read_bytes()


def test_streamed_weights_travel_as_parameter_files(compiled: Path, tmp_path: Path) -> None:
    """The parameters leave the C++ for files, which the runtime hands to every call."""
    record = json.loads((compiled / "design.json").read_text())
    for kernel in record["kernels"].values():
        kernel["weights"] = "stream"
    (tmp_path / "streamed.json").write_text(json.dumps(record))
    out = tmp_path / "out"
    assert penstock("compile", MODEL, "--design", str(tmp_path / "streamed.json"), "-o", str(out)) == 0
    assert [p for p in (out / "parameters").iterdir() if p.suffix == ".bin"]
    report = Report.model_validate_json((out / "report.json").read_text())
    assert {k.weights for k in report.design.kernels} == {"stream"}
    assert any(channel.source.startswith("memory ") for channel in report.design.channels)
    with load(out) as accelerator:
        samples = accelerator.package.samples()
        assert samples is not None
        assert accelerator.run_exact(samples.inputs)[0].tobytes() == samples.expected[0].tobytes()


def test_explore_prints_a_front_that_no_trial_beats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "design.json"
    assert penstock("explore", MODEL, "--trials", "12", "--save", str(saved), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    found = SearchResult.model_validate(document).exploration
    assert Design.load(saved) == Design.from_json(document["design"])
    front = [t for t in found.trials if t.on_front]
    assert front
    for kept in front:
        for other in found.trials:
            if other.state == "complete":
                assert not _beats(other, kept)
    (chosen,) = [t for t in found.trials if t.chosen]
    assert chosen.latency_cycles == min(t.latency_cycles or 0 for t in found.trials if t.state == "complete")


def test_explore_shows_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock("explore", MODEL, "--trials", "3") == 0
    out = capsys.readouterr().out
    assert "CYCLES" in out
    assert "3 trials on AMD Alveo U55C" in out
    head, *rows = out[: out.index("3 trials on")].splitlines()
    assert 1 <= len(rows) <= 3  # a line each, however many decisions there are
    assert all("modelled" in row and "µs" in row for row in rows), out
    assert "DECISIONS" in head


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--platform", "u999"], 2, "u999"),
        (["--quantize", "w3a3"], 2, "there is no quantisation 'w3a3' (known: w8a8, w4a8)"),
        (["--evidence", "guessed"], 2, "there is no evidence 'guessed'"),
        (["--evidence", "board"], 2, "(available: modelled, simulated, open-rtl, csynth, cosim)"),
        (["--clock", "9000"], 2, "9000 MHz"),
        (["--trials", "0"], 2, "--trials"),
        (["--design", "missing.json"], 2, "missing.json"),
    ],
)
def test_wrong_options_are_one_line_before_anything_slow(
    arguments: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert penstock("compile", "zoo:mlp", *arguments, "-o", str(tmp_path / "out")) == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("missing.py:model", "does not exist"),
        ("zoo:unicorn", "the zoo has no model 'unicorn'"),
        ("nonsense", "nonsense"),
    ],
)
def test_wrong_models_are_one_line(model: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock("compile", model, "-o", str(tmp_path / "out")) == 2
    error = capsys.readouterr().err.splitlines()
    assert says in error[-1]
    assert error[-1].startswith("penstock: ")


def test_design_that_contradicts_an_option(compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = str(compiled / "design.json")
    code = penstock("compile", MODEL, "--design", record, "--platform", "u280", "-o", str(tmp_path / "out"))
    assert code == 2
    assert "--platform u280 contradicts the design's u55c" in capsys.readouterr().err


def test_folder_with_other_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert penstock("compile", MODEL, "-o", str(tmp_path)) == 2
    assert "holds other files" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_failed_compile_keeps_the_older_package(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(p.name for p in compiled.iterdir())
    assert penstock("compile", "missing.py:model", "-o", str(compiled)) == 2
    capsys.readouterr()
    assert sorted(p.name for p in compiled.iterdir()) == before


def test_unsupported_model_names_the_operation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sorting.py"
    file.write_text(
        "import torch\n"
        "class Sorting(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.sort(x, dim=1).values\n"
        "def model():\n"
        "    return Sorting(), (torch.ones(1, 4),)\n"
    )
    assert penstock("compile", f"{file}:model", "-o", str(tmp_path / "out")) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("penstock: ")
    assert "sort" in error
    assert not (tmp_path / "out").exists()


def test_model_that_fits_no_platform_says_what_is_short(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((compiled / "design.json").read_text())
    record["platform"], record["clock_mhz"] = "ecp5-25k", 50.0
    for kernel in record["kernels"].values():
        kernel["unroll"] = kernel["tile"]
        kernel.pop("bindings", None)  # there is nothing to choose on that chip
    (tmp_path / "wide.json").write_text(json.dumps(record))
    code = penstock("compile", MODEL, "--design", str(tmp_path / "wide.json"), "-o", str(tmp_path / "out"))
    error = capsys.readouterr().err.splitlines()[-1]
    assert code == 3
    assert "the design needs" in error
    assert "ecp5-25k offers" in error


def _beats(one: TrialInfo, other: TrialInfo) -> bool:
    a, b = ((t.latency_cycles or 0, t.resource_share or 0.0) for t in (one, other))
    return a != b and a[0] <= b[0] and a[1] <= b[1]
