"""Design records that a person edited: what cannot be is one line that names it, what is stale is found anew."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.services.cli.exit_codes import documented_exit_codes
from penstock.services.cli.main import run
from penstock.services.jobs.model import load_program
from penstock.services.jobs.search import finish_given

SOURCE = """
import torch

class Skip(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 8)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))

def model():
    return Skip().eval(), (torch.randn(8, 8),)
"""
Record = dict[str, Any]


def penstock(*arguments: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, at its first import
        return run(list(arguments))


@dataclass(frozen=True)
class Explored:
    model: str
    program: Program
    record: Record

    def finish(self, record: Record) -> None:
        """What `penstock compile --design` does with a record before it lowers anything."""
        design = Design.from_json(record)
        with documented_exit_codes():
            finish_given(self.program, load_platform(design.platform), design)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    """A model whose paths part and meet again, and a finished design of it."""
    folder = tmp_path_factory.mktemp("designs")
    (folder / "skip.py").write_text(SOURCE)
    model = f"{folder / 'skip.py'}:model"
    program = load_program(model, None)
    evaluator = Evaluator.create(program, "u55c")
    done = finish(evaluator, evaluator.evaluate({"overall_unroll_size": 16, "default_tile_size": 4}))
    return Explored(model, program, json.loads(json.dumps(done.design.to_json())))


def skipping(record: Record) -> str:
    """The FIFO around the layers: the deepest."""
    return max(record["fifo_depths"], key=lambda name: record["fifo_depths"][name])


def all_of_one(record: Record) -> None:
    record["fifo_depths"] = dict.fromkeys(record["fifo_depths"], 1)


def a_typing_error(record: Record) -> None:
    record["fifo_depths"][skipping(record) + "x"] = 4


def far_too_deep(record: Record) -> None:
    record["fifo_depths"][skipping(record)] = 40_000_000
    del record["memories"]


def another_die(record: Record) -> None:
    record["dies"]["first"] = "slr7"


def another_task(record: Record) -> None:
    record["dies"]["frist"] = "slr0"


def another_kind(record: Record) -> None:
    record["memories"][skipping(record)] = "core"


def another_memory(record: Record) -> None:
    record["memories"]["first.nothing"] = "bram"


def a_kind_that_it_cannot_be(record: Record) -> None:
    record["memories"][skipping(record)] = "lutram"


@pytest.mark.parametrize(
    ("edit", "code", "says"),
    [
        (all_of_one, 2, ("fifo_depths.", "stops for ever", " waits for ", "its depth is 1", "give it ")),
        (a_typing_error, 2, ("fifo_depths.", "there is no such FIFO", "did you mean")),
        (far_too_deep, 3, ("the design needs", "bram18", "u55c offers", "alone needs")),
        (another_die, 2, ("dies.first", "there is no die 'slr7'", "u55c has slr0, slr1, slr2")),
        (another_task, 2, ("dies.frist", "no such task", "did you mean 'first'")),
        (another_kind, 2, ("memories.", "'core' is unknown", "registers, lutram, srl, bram, uram")),
        (another_memory, 2, ("memories.first.nothing", "no such buffer or FIFO")),
        (a_kind_that_it_cannot_be, 2, ("memories.", "cannot be built of lutram", "it can be built of")),
    ],
)
def test_what_cannot_be_is_named_on_one_line(
    edit: Callable[[Record], None], code: int, says: tuple[str, ...], explored: Explored
) -> None:
    edited = json.loads(json.dumps(explored.record))
    edit(edited)
    with pytest.raises(PenstockError) as refused, documented_exit_codes():
        explored.finish(edited)
    line = refused.value.one_line()
    for part in says:
        assert part in line
    assert "\n" not in line
    assert refused.value.__dict__["exit_code"] == code


def test_a_record_that_deadlocks_ends_the_command_with_one_line(
    explored: Explored, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = json.loads(json.dumps(explored.record))
    all_of_one(edited)
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    out = tmp_path / "out"
    assert penstock("compile", explored.model, "--design", str(tmp_path / "edited.json"), "-o", str(out)) == 2
    error = capsys.readouterr().err
    assert "stops for ever" in error.splitlines()[-1]
    assert "Traceback" not in error
    assert not out.exists()


def test_a_kind_of_memory_that_a_device_has_not_says_what_is_short(explored: Explored) -> None:
    """UltraRAM where the device has none."""
    edited = {name: value for name, value in explored.record.items() if name not in ("allocated_for", "dies")}
    fifo = skipping(explored.record)
    with pytest.raises(PenstockError, match=r"uram: \d uram of 0") as refused:
        explored.finish(edited | {"platform": "zu3eg", "clock_mhz": 200.0, "memories": {fifo: "uram"}})
    assert refused.value.where == fifo
    assert refused.value.__dict__["exit_code"] == 3


def test_decisions_for_other_kernels_are_found_anew(
    explored: Explored, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever changes a layer need not repair depths, dies and memories by hand."""
    edited = json.loads(json.dumps(explored.record))
    for kernel in edited["kernels"].values():
        kernel["unroll"] = [1] * len(kernel["unroll"])
        kernel["weights"] = "stream"
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    assert (
        penstock("compile", explored.model, "--design", str(tmp_path / "edited.json"), "-o", str(tmp_path / "out")) == 0
    )
    assert "found anew" in capsys.readouterr().err
    written = Design.load(tmp_path / "out" / "design.json")
    assert written.current() is written
    assert written.basis() != explored.record["allocated_for"]
    assert any(task.startswith("load_first") for task in written.dies)
