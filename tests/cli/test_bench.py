"""`penstock bench`: known names, one object, figures that are not made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penstock.services.cli.bench as command
from penstock.services.cli.main import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """One quick benchmark in place of the real ones, which take minutes."""
    loaded = command.load_registry()

    def quick() -> object:
        return loaded.Figures("wall-clock", [{"size": 1, "seconds": 0.5}, {"size": 2}], {"seconds": 0.5, "rate": None})

    benchmark = loaded.Benchmark("tests.cli.quick", "quick")
    monkeypatch.setattr(loaded, "BENCHMARKS", {"quick": benchmark, "slow": benchmark})
    monkeypatch.setattr(loaded, "import_module", lambda name: type("module", (), {"run": staticmethod(quick)}))


@pytest.mark.usefixtures("registry")
def test_json_is_one_object_in_the_documented_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "quick", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "docs" / "bench.schema.json").read_text())
    assert set(figures) == set(schema["required"]) == set(schema["properties"])
    assert set(schema["properties"]["machine"]["required"]) == set(figures["machine"])
    assert {"const": figures["evidence"]} in schema["properties"]["evidence"]["anyOf"]
    assert figures["machine"]["cores"] >= 1
    assert figures["summary"] == {"seconds": 0.5, "rate": None}


@pytest.mark.usefixtures("registry")
def test_table_says_what_was_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "quick"]) == 0
    out = capsys.readouterr().out
    assert "rate: not measured [wall-clock]" in out
    assert "seconds: 0.5 [wall-clock]" in out


@pytest.mark.usefixtures("registry")
def test_all_prints_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--all", "--json"]) == 0
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert names == ["quick", "slow"]


def test_unknown_name_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "compil"]) == 2
    known = ", ".join(sorted(command.load_registry().BENCHMARKS))
    error = capsys.readouterr().err
    assert error == f"penstock: there is no benchmark 'compil' - did you mean compile? known: {known}\n"


def test_without_a_name_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(command.load_registry().BENCHMARKS)


def test_every_benchmark_can_be_imported() -> None:
    registry = command.load_registry()
    for benchmark in registry.BENCHMARKS.values():
        assert callable(registry.import_module(benchmark.module).run)
