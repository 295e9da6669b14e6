"""The benchmark of models: what is in it, how an outcome becomes a row, and one model from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import models
from benchmarks.model_corpus import onnx_exports
from benchmarks.model_corpus.listing import ONNX, corpus
from penstock.compiler.reference import parse_reference
from penstock.services.cli.main import run


def test_the_corpus_is_what_people_have() -> None:
    found = corpus()
    assert len({model.name for model in found}) == len(found) >= 60
    assert {model.group for model in found} == {"plain", "torch.nn", "timm", "transformers", "onnx"}
    for model in found:
        if not model.reference.startswith(ONNX):
            parse_reference(model.reference)
    assert {model.needs for model in found} == {"", "transformers", "timm", "torchvision", "onnxscript"}


@pytest.mark.parametrize("name", [name for name in onnx_exports.WRITERS if not onnx_exports.NEEDS.get(name)])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's older exporter says that it is on its way out
def test_onnx_files_are_written(name: str, tmp_path: Path) -> None:
    assert onnx_exports.write(name, tmp_path).stat().st_size > 100


def test_where_a_compilation_failed_is_read_from_what_it_said() -> None:
    outcome = models.compile_once("nowhere.py:model", None, Path("unused"))
    assert (outcome.stage, outcome.line) == (
        "importing the model",
        "nowhere.py: the file does not exist - check the path",
    )
    row = models._row(corpus()[0], "w8a8", outcome)
    assert (row["imported"], row["compiled"], row["fits"]) == (False, False, None)


def test_missing_libraries_are_no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    figures = models.run(only="t5-encoder")
    assert figures.summary["models"] == 0
    assert figures.summary["not_installed"] == 1
    assert figures.summary["compiled_pct"] is None


def test_a_row_that_is_kept_is_not_found_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried: list[str] = []

    def compile_once(reference: str, quantize: str | None, out: Path, options: tuple[str, ...]) -> models.Outcome:
        tried.append(" ".join((quantize or "fp32", *options)))
        return models.Outcome(1.0, "lowering", "it failed", cpu_seconds=0.5)

    monkeypatch.setattr(models, "compile_once", compile_once)
    keep = tmp_path / "rows.jsonl"
    first = models.run(only="hls4ml-jet-tagging", limit=1, keep=keep)
    assert tried == ["fp32", "w8a8"]
    assert first.summary["median_cpu_s"] == 0.5
    assert models.run(only="hls4ml-jet-tagging", limit=1, keep=keep) == first
    assert len(tried) == 2
    models.run(only="hls4ml-jet-tagging", limit=1, keep=keep, options="--trials 2")
    assert tried[2:] == ["fp32 --trials 2", "w8a8 --trials 2"]


def test_a_pattern_is_for_benchmarks_with_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "claims", "--only", "x"]) == 2
    assert "takes no --only" in capsys.readouterr().err
    assert run(["bench", "models", "--only", "no-such-model"]) == 2
    assert "no row of the benchmark models has 'no-such-model'" in capsys.readouterr().err


@pytest.mark.slow
def test_one_model_through_the_public_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "models", "--only", "hls4ml-jet-tagging", "--limit", "1", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {row["quantize"] for row in figures["rows"]} == {"fp32", "w8a8"}
    assert figures["summary"]["models"] == 1
    assert figures["summary"]["compiled_pct"] == figures["summary"]["equal_pct"] == 100.0
