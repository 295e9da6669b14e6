"""The digits classifier on a board: compiled, placed and routed, and run on the simulated chip bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.package.archive import write_folder
from penstock.compiler.platforms import load_platform
from penstock.compiler.runtime import penstock_runtime as runtime
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.jobs.model import load_program
from penstock.services.jobs.package import build_package
from penstock.services.jobs.search import SearchSettings, find_design

ON_THE_NETLIST = 20


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = load_program("examples/digits_mlp.py:model", "w8a8")
    board = load_platform("ulx3s-85f")
    choice, _ = find_design(program, board, 50.0, "w8a8", 4, SearchSettings(seed=0, max_lanes=16), lambda _: None)
    built = build_package(program, choice.finished.design, ToolRunner(), evidence="simulated")
    assert built.checked.passed
    folder = tmp_path_factory.mktemp("digits") / "package"
    write_folder(built.contents, folder)
    return folder


@pytest.mark.slow
def test_the_bitstream_meets_its_clock(package: Path) -> None:
    document = json.loads((package / "bitstream" / "board.json").read_text())
    report = document["report"]
    assert report["evidence"] == "implemented"
    assert report["fmax_mhz"] >= report["clock_mhz"] == 50.0
    assert (package / "bitstream" / document["bitstream"]).stat().st_size > 100_000


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "count"), [("simulation", None), ("netlist", ON_THE_NETLIST)])
def test_the_simulated_board_classifies_held_out_digits_as_the_interpreter_does(
    package: Path, backend: str, count: int | None
) -> None:
    with runtime.load(package, backend=backend) as accelerator:
        held_out = accelerator.package.evaluation()
        assert held_out is not None
        assert held_out.expected is not None
        exact, answers = accelerator.run_rows_exact(held_out.inputs[:count])
        expected = held_out.expected[:count]
        assert len(exact) == (count or 360)
        assert np.array_equal(exact.reshape(expected.shape), expected)
        right = np.mean(np.argmax(answers.reshape(len(answers), -1), axis=1) == held_out.labels[:count])
        assert right > 0.9
