"""`penstock compile --stop-after --print-ir`: every stage can be looked at, and is IR that the parser reads back."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from xdsl.parser import Parser

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.readable import readable
from penstock.services.cli.main import run
from penstock.services.cli.show_ir import stage_names
from tests.frontend import held_models

MODEL = "zoo:mlp?inputs=6&hidden=4&outputs=2"
HEADING = re.compile(r"^// ----- (\w+) -----$", re.MULTILINE)


def penstock(*arguments: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, at its first import
        return run(["compile", *arguments])


def test_all_stages_are_printed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock(MODEL, "--quantize", "w8a8", "--print-ir") == 0
    _, *parts = HEADING.split(capsys.readouterr().out)
    shown = dict(zip(parts[::2], parts[1::2], strict=True))
    assert tuple(shown) == stage_names("w8a8")
    assert tuple(shown)[:4] == ("import", "simplify", "quantise", "kernels")
    assert tuple(shown)[-1] == "hls"
    assert "penstock_top(" in shown.pop("hls")
    for text in shown.values():
        Parser(make_context(), text).parse_module().verify()
    assert "aten.linear" in shown["import"]
    assert "aten.linear" not in shown["simplify"]
    assert "xi8>" in shown["quantise"]
    assert "%hidden_0 = " in shown["kernels"] or "%hidden = " in shown["kernels"], "values bear their layers' names"


def test_what_is_quantised_is_what_a_compilation_quantises(capsys: pytest.CaptureFixture[str]) -> None:
    """Of layers that share the accelerator, and with weights of four bits."""
    model = f"{Path(held_models.__file__)}:chain#"
    assert penstock(model, "--quantize", "w4a8", "--stop-after", "quantise", "--print-ir") == 0
    _, _, text = HEADING.split(capsys.readouterr().out)
    assert text.strip() == readable(prepare(import_model(model), "w4a8").module).strip()
    assert "xi4>" in text


def test_one_stage_of_a_given_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = read_graph(prepare(import_model(MODEL)).module)
    record = tmp_path / "design.json"
    default_design(graph, "u55c", 250.0, weights="stream").save(record)
    assert penstock(MODEL, "--design", str(record), "--stop-after", "kernels", "--print-ir") == 0
    out = capsys.readouterr().out
    assert HEADING.findall(out) == ["kernels"]
    assert '"load.hidden.0.1"' in out, "the parameters come by streams, as the record says"


def test_what_is_not_printed_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert penstock(MODEL, "--stop-after", "simplify", "-o", str(out)) == 0
    assert capsys.readouterr().out.split() == [str(out / "ir" / n) for n in ("01-import.mlir", "02-simplify.mlir")]
    assert penstock(MODEL, "--stop-after", "hls", "-o", str(out)) == 0, "a folder may be used again"
    capsys.readouterr()
    assert sorted(p.name for p in out.iterdir()) == ["csim", "hls", "interface.json", "ir", "link"]
    assert json.loads((out / "interface.json").read_text())["inputs"][0]["name"] == "x"
    (out / "thesis.tex").write_text("mine")
    assert penstock(MODEL, "--stop-after", "simplify", "-o", str(out)) == 2
    assert "holds other files" in capsys.readouterr().err


@pytest.mark.parametrize("stage", ["tyling", "quantise"])
def test_unknown_stages_are_one_line(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock("zoo:mlp", "--stop-after", stage) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"penstock: --stop-after: there is no stage {stage!r}")
    assert "import, simplify, kernels, streams" in error
    assert error.count("\n") == 1


def test_readable_text_is_the_module() -> None:
    program = prepare(import_model("zoo:gemma?mode=decode"))
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0))
    for module in (program.module, lowered.itensor, lowered.stream):
        again = Parser(make_context(), readable(module)).parse_module()
        assert readable(again) == readable(module)


def test_converters_say_what_they_keep() -> None:
    """Beside each converter stands its buffer, and how many elements are alive at once at most."""
    rows = "!itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)>"
    columns = "!itensor.itensor<1x4xi8, iter_space: [4, 8]*[4, 1], iter_map: (d0, d1) -> (d1, d0)>"
    wide = "!itensor.itensor<1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)>"
    text = f"""
    %t = tensor.empty() : tensor<8x16xi8>
    %0 = itensor.load "rows" %t : tensor<8x16xi8> -> {rows}
    %1 = itensor.converter "turn" %0 : {rows} -> {columns}
    %2 = itensor.load "again" %t : tensor<8x16xi8> -> {rows}
    %3 = itensor.converter "widen" %2 : {rows} -> {wide}"""
    shown = readable(Parser(make_context(), text).parse_module())
    assert "// two blocks of 8 x 16, 0 shared loops; 88 elements alive at most" in shown
    assert "// one nest that keeps 1 x 8 elements" in shown
    Parser(make_context(), shown).parse_module().verify()
