"""`penstock check`: what runs where, everything that is refused, and the exit codes of the other commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.services.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.first, self.last = nn.Embedding(9, 4), nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, tokens):
        return self.last(torch.relu(self.first(self.table(tokens)))).argmax(-1)

class Refused(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        x = torch.lgamma(self.first(x).abs() + 1)
        return self.last(torch.digamma(self.second(x).abs() + 1))

def model():
    return Model(), torch.tensor([[1, 2, 3]])

def refused():
    return Refused(), torch.randn(2, 4)

def meta():
    with torch.device("meta"):
        return nn.Linear(4, 3), torch.randn(2, 4, device="cpu")

def not_a_number():
    layer = nn.Linear(4, 3)
    layer.weight.data[0, 1] = float("nan")
    return layer, torch.randn(2, 4)

def broken():
    raise RuntimeError("no such luck")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.py"
    path.write_text(MODEL)
    return path


def test_it_says_what_runs_where(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", f"{source}:model", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert set(verdict) == set(json.loads((ROOT / "docs" / "check.schema.json").read_text())["properties"])
    assert verdict["compiles"]
    assert verdict["refusals"] == []
    assert [one["operation"].split(".")[1] for one in verdict["host"]["before"]] == ["embedding"]
    assert [one["operation"].split(".")[1] for one in verdict["host"]["after"]] == ["argmax"]
    assert {one["layer"] for one in verdict["accelerator"]} >= {"first", "last"}
    assert verdict["size"]["parameters"] == 4 * 6 + 6 + 6 * 3 + 3
    assert verdict["size"]["weight_bytes"] == 4 * verdict["size"]["parameters"]
    assert verdict["estimate"]["evidence"] == "modelled"
    assert verdict["estimate"]["latency_cycles"] > 0


@pytest.mark.parametrize(("name", "what"), [
    ("meta", "parameter 'weight' is on meta: it has no numbers"),
    ("not_a_number", "parameter 'weight' holds NaN or infinity in 1 of its 12 places"),
])  # fmt: skip
def test_weights_without_numbers_are_refused(
    name: str, what: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", f"{source}:{name}", "--json"]) != 0
    verdict = json.loads(capsys.readouterr().out)
    assert [one["what"] for one in verdict["refusals"]] == [what]


def test_weights_are_counted_as_they_are_stored(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "zoo:mlp?inputs=16&hidden=8&outputs=4&bias=false", "--quantize", "w8a8", "--json"]) == 0
    size = json.loads(capsys.readouterr().out)["size"]
    assert size["parameters"] >= 16 * 8 + 8 * 4
    assert 16 * 8 + 8 * 4 <= size["weight_bytes"] < 4 * size["parameters"]


def test_tables_of_a_task_program_are_its_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tabled.py"
    path.write_text("""from penstock.tasks import *

@program
def tabled(x: int8[8], y: int32[8]):
    @task
    def scale():
        w: int32[8] = (1, 2, 3, 4, 5, 6, 7, 8)
        for n in range(8):
            y[n] = x[n] * w[n]
""")
    assert run(["check", str(path)]) == 0
    assert "size         8 parameters, 32 bytes on the chip" in capsys.readouterr().out


def test_quantised_it_says_how_far_each_layer_is_from_floats(capsys: pytest.CaptureFixture[str]) -> None:
    def errors(quantize: str) -> dict[str, float]:
        assert run(["check", "zoo:mlp?inputs=16&hidden=8&outputs=4", "--quantize", quantize, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["accelerator"]
        return {one["layer"]: one["error"] for one in found if one["error"] is not None}

    eight, four = errors("w8a8"), errors("w4a8")
    assert set(eight) == set(four)
    assert len(eight) >= 2
    assert 0 < max(eight.values()) < 0.05
    assert max(eight.values()) < max(four.values()) < 0.5
    assert run(["check", "zoo:mlp?inputs=16&hidden=8&outputs=4", "--quantize", "w4a8"]) == 0
    assert f"by {max(four.values()):.2%}" in capsys.readouterr().out


def test_everything_that_is_refused_is_named_with_its_layer(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", f"{source}:refused"]) == 1
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("penstock: ")]
    assert len(lines) == len({*lines}) >= 1
    assert all("m.py" in line or "layer" in line or "Refused" in line for line in lines)
    assert "refused for" in out
    assert "Traceback" not in err


def test_a_large_model_is_looked_at_without_its_weights(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "zoo:gpt2?size=real", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["size"]["parameters"] > 12_000_000
    assert verdict["size"]["weights_in"] == "stream"


def test_a_model_whose_sizes_each_call_says_is_looked_at_at_the_largest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "zoo:mlp?inputs=4&hidden=3", "--dim", "batch=2..8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"][0]["shape"] == [8, 4]
    assert any("Each call says batch=2..8" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["nowhere.py:model"], 2, "does not exist"),
        (["zoo:mpl"], 2, "mlp"),
        (["zoo:mlp", "--platform", "u55x"], 2, "u55c"),
        (["zoo:mlp", "--quantize", "w1"], 2, "w8a8"),
        (["zoo:mlp?hiden=3"], 2, "hiden"),
        (["torch.nn:LSTMM"], 2, "'LSTM'"),
        (["{source}:broken"], 2, "no such luck"),
        (["{source}:nothing"], 2, "it defines"),
        (["zoo:mlp", "--dim", "batch=8..2"], 2, "8 is not below 2"),
        (["zoo:mlp", "--dim", "rows=2..8"], 2, "mlp has no option 'rows'"),
        (["{source}:refused", "--dim", "rows=2..8"], 2, "write def refused(rows)"),
    ],
)
def test_mistakes_end_as_with_the_other_commands(
    arguments: list[str], code: int, word: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *(text.format(source=source) for text in arguments)]) == code
    error = capsys.readouterr().err
    assert word in error
    assert "Traceback" not in error
