"""The correctness chain as a run and the command line use it: it passes what is right and sees what is wrong."""

from __future__ import annotations

import re
import shutil
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.pipeline.verify import compare
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import EvaluationSet, Program
from penstock.compiler.runtime.penstock_runtime.host import compare_whole
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import Cancellable, ToolCommand, ToolResult, ToolRunner
from penstock.services.jobs.check import Checked, check_design
from penstock.services.jobs.package import make_report
from penstock.services.jobs.scheduled import Scheduled

ROWS = 7


@pytest.fixture(scope="module")
def program() -> Program:
    """A quantised MLP for batches of two, with a held-out set that does not fill its last batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, at its first import
        imported = import_model("zoo:mlp?inputs=8&hidden=6&outputs=4&batch=2")
    rows = np.random.default_rng(1).standard_normal((ROWS, 8)).astype(np.float32)
    labels = np.arange(ROWS) % 4
    outputs: Array = np.eye(4, dtype=np.float32)[labels]
    return prepare(replace(imported, evaluation=EvaluationSet("random rows", rows, labels, outputs)), "w8a8")


@pytest.fixture(scope="module")
def lowered(program: Program) -> Lowered:
    return lower(program, default_design(read_graph(program.module), "zcu104", 200.0, "w8a8"))


@pytest.fixture(scope="module")
def emitted(lowered: Lowered, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("emitted")
    emit(lowered, folder, part="xczu7ev-ffvc1156-2-e", clock_mhz=200.0)
    return folder


@pytest.fixture(scope="module")
def checked(lowered: Lowered, emitted: Path) -> Checked:
    return check_design(lowered, emitted, ToolRunner())


def test_right_design_passes(checked: Checked) -> None:
    assert checked.passed
    assert checked.verify.csim.equal is True
    assert checked.verify.csim.values == checked.verify.csim.bits_equal
    assert [(level.against, level.level) for level in checked.verify.levels] == [
        ("linalg", "itensor"),
        ("itensor", "stream"),
    ]


def test_accuracy_counts_every_example_once(checked: Checked, program: Program) -> None:
    accuracy = checked.accuracy
    assert accuracy is not None
    assert accuracy.examples == ROWS
    assert accuracy.float_accuracy == 1.0, "PyTorch's stored answers are the labels here"
    expected, quant = _expected(checked), program.signature.outputs[0].quant
    assert expected.shape == (ROWS, 4)
    assert quant is not None
    found = quant.dequantise(expected).argmax(axis=1)
    assert accuracy.accelerator_accuracy == np.count_nonzero(found == np.arange(ROWS) % 4) / ROWS


def test_emitted_folder_stays_as_it_was_written(checked: Checked, emitted: Path) -> None:
    assert checked.passed
    assert {p.suffix for p in emitted.rglob("*") if p.is_file()} <= {".cpp", ".h", ".tcl", ".cfg", ".json", ".mlir"}


def test_result_survives_its_files(checked: Checked, tmp_path: Path) -> None:
    checked.save(tmp_path)
    again = Checked.load(tmp_path)
    assert again.verify == checked.verify
    assert again.accuracy == checked.accuracy
    assert len(again.expected.samples) == len(checked.expected.samples) == 1
    np.testing.assert_array_equal(again.expected.samples[0], checked.expected.samples[0])
    assert again.expected.evaluation is not None
    np.testing.assert_array_equal(again.expected.evaluation, _expected(checked))


def test_one_wrong_weight_in_the_cpp_is_seen(lowered: Lowered, emitted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "wrong"
    shutil.copytree(emitted, folder)
    header = folder / "hls" / "weights.h"
    text, changes = re.subn(r"(=[\s{]+)(-?\d+)", lambda m: m[1] + str(-int(m[2]) or 99), header.read_text(), count=1)
    assert changes == 1
    header.write_text(text)
    checked = check_design(lowered, folder, ToolRunner())
    assert not checked.passed
    assert checked.verify.csim.equal is False
    assert (checked.verify.csim.bits_equal or 0) < (checked.verify.csim.values or 0)
    report = make_report(Scheduled.of_lowered(lowered, load_platform("zcu104")), checked, None)
    assert report.verify.csim.equal is False


def _expected(checked: Checked) -> Array:
    assert checked.expected.evaluation is not None
    return checked.expected.evaluation


@pytest.mark.parametrize("theirs", [np.inf, -np.inf, np.nan, 1.0])
@pytest.mark.parametrize("ours", [np.inf, np.nan, 1.0, 2.0])
def test_what_is_not_finite_on_one_side_alone_is_no_small_difference(ours: float, theirs: float) -> None:
    """Python's max passes over NaN, and a tolerance of the largest value is no tolerance if that is infinite."""
    a, b = np.array([3.0, ours], np.float32), np.array([3.0, theirs], np.float32)
    same = ours == theirs or (np.isnan(ours) and np.isnan(theirs))
    judged = compare_whole([b, a], [b, b])
    assert judged["max_abs_error"] == (abs(ours - theirs) if np.isfinite(ours - theirs) and not same else 0.0)
    assert judged["undefined"] == int(not same and not np.isfinite(ours - theirs))
    assert compare("here", "there", [a], [b], 0.1).equal is bool(same)


def test_what_is_to_be_done_meanwhile_is_done_beside_the_compiler(lowered: Lowered, emitted: Path) -> None:
    """Both compilers are held back until it is done, so that it waits in vain for what would come after them."""
    done, steps = threading.Event(), list[str]()

    class HeldBack(ToolRunner):
        def run(self, command: ToolCommand, watch: Callable[[Cancellable], None] | None = None) -> ToolResult:
            steps.append("tool")
            assert done.wait(60)
            return super().run(command, watch)

    def meanwhile() -> None:
        steps.append("meanwhile")
        done.set()

    assert check_design(lowered, emitted, HeldBack(), meanwhile=meanwhile).passed
    assert sorted(steps[:3]) == ["meanwhile", "tool", "tool"]


@pytest.mark.parametrize("file", ["hls/penstock_top.cpp", "csim/csim_main.cpp"])
def test_whichever_half_of_the_cpp_does_not_compile_is_named(emitted: Path, tmp_path: Path, file: str) -> None:
    """The design and what calls it are compiled side by side."""
    shutil.copytree(emitted, tmp_path / "broken")
    source = tmp_path / "broken" / file
    source.write_text(source.read_text() + "\nint broken() { return nothing_of_that_name; }\n")
    with pytest.raises(PenstockError, match=r"C\+\+ compiler") as caught:
        build_csim(tmp_path / "broken", ToolRunner())
    assert "nothing_of_that_name" in caught.value.limit
