"""`penstock space` and `penstock evaluate`: what a program that searches by itself reads and asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.space.tiling import Params
from penstock.services.cli.main import run

MODEL = "zoo:mlp?inputs=16&hidden=8"
ON = ["--platform", "ecp5-45k"]


def test_what_the_space_prints_can_be_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["space", MODEL, *ON, "--limit", "dsp<=20", "--json"]) == 0
    space = json.loads(capsys.readouterr().out)
    assert space["may_use"]["dsp"] == 20
    assert space["limits"] == ["dsp<=20"]
    known = {one["name"]: one for one in space["parameters"]}
    assert all(value in known[name]["values"] for name, value in space["guess"].items())
    file = tmp_path / "params.json"
    file.write_text(json.dumps([space["guess"], {}]))
    assert run(["evaluate", MODEL, *ON, "--limit", "dsp<=20", "--params", str(file), "--json"]) == 0
    first, plain = json.loads(capsys.readouterr().out)["evaluated"]
    assert first["feasible"]
    assert first["values"][0] >= space["bound"]
    assert first["gap_pct"] == pytest.approx(100 * (first["values"][0] / space["bound"] - 1), abs=0.01)
    assert first["constraints"]["dsp"] <= 0
    assert plain["digest"] != first["digest"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "has 0 settings (1 to 1,000) - write one at least"),
        ("[3]", "3 is no setting"),
        ('{"tile": 4}', "the space has no parameter 'tile'"),
        ('{"default_tile_size": 5}', "default_tile_size cannot be 5"),
        ('{"default_tile_size": NaN}', "default_tile_size cannot be nan"),
        ('{"default_tile_size": 4.0}', "default_tile_size cannot be 4.0"),
        ('{"connect": 1}', "connect cannot be 1"),
    ],
)
def test_a_setting_that_is_none_is_named(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "params.json"
    file.write_text(text)
    assert run(["evaluate", MODEL, *ON, "--params", str(file)]) != 0
    assert words in capsys.readouterr().err


def test_a_space_without_any_design_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["space", MODEL, *ON, "--limit", "lut<=30"]) != 0
    assert "kernels with one lane each take at least" in capsys.readouterr().err
    assert run(["space", MODEL, *ON, "--limit", "latency_cycles<=2"]) != 0
    assert "latency_cycles<=2 and" in capsys.readouterr().err


def test_a_setting_that_means_no_design_leaves_the_others_their_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    modelled = Evaluator.evaluate

    def evaluate(self: Evaluator, params: Params) -> Evaluation:
        if params["order"] == "parallel-outer":
            raise PenstockError(code="bad-design", what="such an order cannot be laid out", where="fc0")
        return modelled(self, params)

    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    plain = {"allocation": "slowest-first", "order": "connected"}
    file = tmp_path / "params.json"
    file.write_text(json.dumps([{**plain, "order": "parallel-outer"}, plain]))
    assert run(["evaluate", MODEL, *ON, "--params", str(file), "--json"]) == 0
    bad, good = json.loads(capsys.readouterr().out)["evaluated"]
    assert (bad["feasible"], bad["values"], bad["error"]) == (False, [], "fc0: such an order cannot be laid out")
    assert good["error"] == ""
    assert good["values"][0] > 0
    file.write_text(json.dumps({**plain, "order": "parallel-outer"}))
    assert run(["evaluate", MODEL, *ON, "--params", str(file)]) != 0
    assert "fc0: such an order cannot be laid out" in capsys.readouterr().err
