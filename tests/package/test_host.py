"""Packages of models that begin and end on the host: the whole model runs, is checked, and needs torch only then."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.frontend import import_model
from penstock.compiler.host_parts import HostParts
from penstock.compiler.package import Expected, PackageContents, collect_package, write_folder
from penstock.compiler.package.report import WholeCheck
from penstock.compiler.package.sections import host_section
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.runtime import penstock_runtime
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.jobs.check import check_design
from tests.package import hand_made

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLE = np.random.default_rng(11).uniform(-4, 4, (8, 16)).astype(np.float32)
IDS = np.array([5], np.int64)


def node(name: str, op: str, *args: Any) -> dict[str, Any]:
    return {"name": name, "op": op, "args": list(args), "kwargs": {}, "layer": name, "why": "as a test"}


def host_parts() -> HostParts:
    """A look-up before the hand-made accelerator, and the place of the largest score after it."""
    graph = {
        "inputs": [{"name": "ids", "shape": [1], "dtype": "int64"}],
        "outputs": [{"name": "output", "shape": [1], "dtype": "int64"}],
        "tables": {"ids": 8},
        "before": [node("row", "aten.embedding.default", {"value": "table"}, {"value": "ids"})],
        "accelerator": {"inputs": ["row"], "outputs": ["scores"]},
        "after": [node("best", "aten.argmax.default", {"value": "scores"}, -1)],
        "results": ["best"],
    }
    return HostParts(graph, {"table": TABLE}, (IDS,), (answer(IDS),))


def answer(ids: Array) -> Array:
    return hand_made.answers(TABLE[ids]).argmax(axis=-1)


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> PackageContents:
    emitted = tmp_path_factory.mktemp("emitted")
    hand_made.write_emitted(emitted)
    model = hand_made.program()
    assert model.samples is not None
    assert model.evaluation is not None
    ids = np.arange(8, dtype=np.int64)
    evaluation = replace(model.evaluation, inputs=ids, labels=answer(ids), outputs=answer(ids))
    whole = WholeCheck(max_abs_error=None, tolerance=None, indices=1, indices_equal=1, indices_must_equal=True, ok=True)
    report = hand_made.report(model)
    report = report.model_copy(
        update={"host": host_section(host_parts()), "verify": report.verify.model_copy(update={"whole": whole})}
    )
    expected = Expected((hand_made.exact(model.samples.inputs[0]),), hand_made.exact(TABLE[ids]))
    model = replace(model, host=host_parts(), evaluation=evaluation)
    return collect_package(model, hand_made.design(), emitted, report, expected)


@pytest.fixture
def package(contents: PackageContents, tmp_path: Path) -> Path:
    write_folder(contents, tmp_path / "package")
    return tmp_path / "package"


def run(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=package, capture_output=True, text=True, timeout=600, check=False
    )


def test_the_whole_model_runs(package: Path) -> None:
    with penstock_runtime.load(package) as accelerator:
        assert [(p.name, p.dtype) for p in accelerator.inputs] == [("ids", "int64")]
        for number in range(8):
            assert accelerator.run(np.array([number])).tolist() == answer(np.array([number])).tolist()
        np.testing.assert_array_equal(accelerator.run(np.arange(8)[:, np.newaxis])[:, 0], answer(np.arange(8)))
        np.testing.assert_array_equal(accelerator.run_exact([TABLE[IDS]])[0], hand_made.exact(TABLE[IDS]))


@pytest.mark.parametrize("ids", [[8], [-1]])
def test_numbers_outside_of_the_table_are_refused(package: Path, ids: list[int]) -> None:
    with (
        penstock_runtime.load(package) as accelerator,
        pytest.raises(penstock_runtime.PackageError, match="its table has entries 0 to 7"),
    ):
        accelerator.run(np.array(ids))


def test_self_test_and_evaluation_mean_the_whole(package: Path) -> None:
    tested = run(package, "run.py", "--self-test", "--json")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert json.loads(tested.stdout)["whole"]["indices_equal"] == 1
    judged = run(package, "run.py", "--evaluate", "--json")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    found = json.loads(judged.stdout)
    assert (found["agreement"], found["accelerator_accuracy"], found["examples_bits_equal"]) == (1.0, 1.0, 8)


def test_a_wrong_index_fails_the_self_test(package: Path) -> None:
    np.save(package / "host" / "samples" / "output_0.npy", (answer(IDS) + 1) % 4)
    tested = run(package, "run.py", "--self-test", "--no-check")
    assert tested.returncode == 1
    assert "0 of 1 indices equal PyTorch's" in tested.stdout


def test_without_torch_it_says_what_to_install(package: Path) -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from penstock_runtime.command import main\n"
        "sys.exit(main(['--self-test']))"
    )
    tested = run(package, "-c", script)
    assert (tested.returncode, tested.stdout) == (2, "")
    assert "run on the host through PyTorch, which is not installed - pip install torch" in tested.stderr


def test_the_report_says_what_runs_on_the_host_and_why(contents: PackageContents) -> None:
    report = json.loads(contents.files["report.json"])
    assert [(o["operation"], o["why"]) for o in report["host"]["before"]] == [("aten.embedding.default", "as a test")]
    assert report["host"]["bytes"] == TABLE.nbytes
    page = contents.files["report.html"].decode()
    assert "On the host" in page
    assert "aten.argmax.default" in page
    assert "pip install numpy torch" in contents.files["README.md"].decode()


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_a_language_model_with_a_llama_block(quantize: str | None, tmp_path: Path) -> None:
    program = prepare(import_model(f"{EXAMPLES}/tiny_language_model.py:model"), quantize)
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0, quantize))
    emit(lowered, tmp_path, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    checked = check_design(lowered, tmp_path, ToolRunner())
    assert checked.passed
    whole = checked.verify.whole
    assert whole is not None
    assert whole.indices == 8
    assert whole.indices_equal == 8 or quantize
