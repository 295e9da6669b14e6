"""`penstock compile` with the evidence of AMD's tools, against the stand-in, and without any."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.package.report import Report
from tests.cli.test_compile import MODEL, penstock
from tests.standin.install import Installation


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    made = Installation(tmp_path / "tools", "2024.2")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PENSTOCK_VITIS", str(made.root))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return made


def report_in(folder: Path) -> Report:
    return Report.model_validate_json((folder / "report.json").read_text())


@pytest.mark.slow
def test_a_model_is_measured_and_linked(
    installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its design fed back is measured by kept profiles; a link that fails costs the package nothing."""
    out, again = tmp_path / "out", tmp_path / "again"
    asked = ("--quantize", "w8a8", "--evidence", "csynth", "--trials", "2", "--bitstream", "hw_emu")
    assert penstock("compile", MODEL, *asked, "-o", str(out)) == 0
    shown = capsys.readouterr().out
    assert "[csynth]" in shown
    assert "simulated with II and depth from the synthesis report" in shown
    assert "bitstream/penstock_top.xclbin for xilinx_u55c_gen3x16_xdma_3_202210_1, emulation" in shown
    report = report_in(out)
    assert report.synthesis is not None
    assert report.bitstream is not None
    assert (report.bitstream.target, report.bitstream.evidence) == ("hw_emu", None)
    assert (out / "bitstream" / "emconfig.json").is_file()
    assert "vitis" in (out / "report.html").read_text()

    installation.behave({"link": "timing"})
    design = ("--design", str(out / "design.json"), "--evidence", "csynth", "--bitstream", "hw")
    assert penstock("compile", MODEL, *design, "-o", str(again)) == 0
    assert "bitstream   none: " in capsys.readouterr().out
    fed = report_in(again)
    assert fed.synthesis is not None
    assert fed.synthesis.times == report.synthesis.times
    assert fed.synthesis.before.fifo_bits == fed.synthesis.after.fifo_bits, "the record's depths are kept"
    assert fed.bitstream is not None
    assert fed.bitstream.failure


@pytest.mark.slow
def test_without_vitis_it_says_what_the_figures_will_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_VITIS", str(tmp_path))
    out = tmp_path / "out"
    assert penstock("compile", MODEL, "--evidence", "cosim", "--trials", "2", "-o", str(out)) == 0
    said = "cosim figures were asked for, but Vitis was not found"
    assert said in " ".join(capsys.readouterr().err.split())
    report = report_in(out)
    assert report.timing.evidence == "simulated"
    assert any(said in note for note in report.notes)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--bitstream", "sw_emu"), "there is no bitstream 'sw_emu' (known: hw, hw_emu, none)"),
        (("--evidence", "csynth", "--platform", "ecp5-85k"), "AMD's tools know no Lattice ECP5"),
    ],
)
def test_what_cannot_be_is_one_line(
    options: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert penstock("compile", MODEL, *options, "-o", str(tmp_path / "out")) == 2
    assert says in capsys.readouterr().err
