"""`penstock compile --pass` and `--list-passes`: passes on text, and one line for what cannot be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.transforms.registry import PASSES
from penstock.services.cli.main import run

GOLDENS = Path(__file__).parents[1] / "transforms" / "goldens" / "passes"
HEAD = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {"
BAD = {
    "": "cannot be read",
    '"llvm.func"() : () -> ()': "llvm.func is not registered",
    "module { affine.for %i = 0 to 4 { } }": "affine.for is not registered",
    f'{HEAD} "unclosed': "nothing ends the string",
    "module {" * 3000 + "}" * 3000: "nested too deeply",
    "builtin.module {}": "no single function @main",
    'itensor.kernel "k" group 0 takes : () -> () { itensor.yield }': "no single function @main",
    "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { func.return %x : tensor<?xf32> }": "known shape",
    "func.func @main(%x: f32) -> f32 { func.return %x : f32 }": "not a tensor",
    "func.func @main(%x: tensor<4xf32> {a = #odd.one<3>}) -> tensor<4xf32> { func.return %x : tensor<4xf32> }":
        "odd.one",
    f"{HEAD} %a = nest.read %x when <q eq 0> : tensor<4xf32> -> vector<1xf32> func.return %x : tensor<4xf32> }}":
        "not q",
    f'{HEAD} nest.nest "n" <a: 2> block_loops 3 {{ %c = nest.constant 0 : i8 -> vector<1xi8> }}\n'
    "func.return %x : tensor<4xf32> }": "3 block loops of 1 loops",
    'stream.top "t" takes ["a"] as ["x"] lying [unit] { ^bb0: }': "one layout an argument",
}  # fmt: skip


def penstock(*arguments: str) -> int:
    return run(["compile", *arguments])


def test_passes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock("--list-passes") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(PASSES)
    assert all(line.split()[1] in ("linalg", "itensor", "stream", "tasks") for line in lines)


def test_a_pass_prints_what_it_makes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before, after = (GOLDENS / f"fuse-elementwise.{when}.mlir" for when in ("before", "after"))
    assert penstock("--pass", "fuse-elementwise", str(before)) == 0
    assert capsys.readouterr().out == after.read_text()
    out = tmp_path / "fused.mlir"
    assert penstock("--pass", "fuse-elementwise", str(before), "-o", str(out)) == 0
    assert capsys.readouterr().out == ""
    assert out.read_text() == after.read_text()
    assert penstock("--pass", "fuse-elementwise", str(out)) == 0, "what a pass printed is read again"


def test_passes_follow_each_other_through_the_levels(capsys: pytest.CaptureFixture[str]) -> None:
    below = [name for name, one in PASSES.items() if one.takes in ("itensor", "stream") or name == "pad-dims"]
    first = [name for name, one in PASSES.items() if one.takes == "linalg" and "kernels" in name]
    names = ["fuse-elementwise", below[0], *first, *below[1:]]
    options = [word for name in names for word in ("--pass", name)]
    assert penstock(*options, str(GOLDENS / "fuse-elementwise.before.mlir")) == 0
    shown = capsys.readouterr().out
    assert "nest.nest" in shown
    assert "directive.pipeline" in shown


def test_a_design_decides(capsys: pytest.CaptureFixture[str]) -> None:
    before = GOLDENS / "pad-dims.before.mlir"
    assert penstock("--pass", "pad-dims", str(before)) == 0
    assert "tensor<5x8xf32>" in capsys.readouterr().out, "the default design tiles nothing unevenly"
    assert penstock("--pass", "pad-dims", str(before), "--design", str(GOLDENS / "pad-dims.design.json")) == 0
    assert "tensor<8x8xf32>" in capsys.readouterr().out


@pytest.mark.parametrize("text", BAD, ids=[BAD[text] for text in BAD])
def test_text_that_is_no_module_is_one_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(text)
    assert penstock("--pass", "fold-reshapes", str(path)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith(f"penstock: {path}")
    assert BAD[text] in error
    assert "print-ir" in error, "it says what to do"


def test_what_cannot_be_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "binary.mlir"
    binary.write_bytes(bytes(range(256)))
    lin, streams = (str(GOLDENS / f"{name}.before.mlir") for name in ("fuse-elementwise", "generate-directives"))
    said = {
        ("fold-reshapes", str(binary)): (2, "is not text"),
        ("fold-reshapes", str(tmp_path / "none.mlir")): (2, "does not exist"),
        ("fold-reshapes", str(tmp_path)): (2, "is a folder"),
        ("fold-reshapes", streams): (2, "takes a module of the linalg level, this is one of the stream level"),
        ("generate-directives", lin): (2, "takes a module of the stream level, this is one of the linalg level"),
        ("fold-reshape", lin): (2, "did you mean fold-reshapes"),
        ("fold-reshapes{fast=1}", lin): (2, "has no option 'fast'"),
        ("check-canonical", str(GOLDENS / "raise-extracts.before.mlir")): (1, "scale"),
    }
    for (name, path), (code, message) in said.items():
        assert penstock("--pass", name, path) == code, name
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.count("\n") == 1
        assert message in shown.err
    assert penstock("--pass", "fold-reshapes", lin, "-o", str(tmp_path)) == 2
    assert "cannot write the module" in capsys.readouterr().err
