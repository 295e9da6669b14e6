"""The host in the middle: the accelerator is called again with what the host made of its own results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.loaded import LoadedEvaluation
from penstock.compiler.host_check import BadHostPartError, check_host
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime.host import HostGraph, compare_whole
from tests.frontend import turn_models
from tests.frontend.models import import_module, make, seeded

CASES: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "sort": (turn_models.sorted_in_the_middle, 2),
    "a stable sort": (turn_models.sorted_stably, 2),
    "two turns": (turn_models.twice, 3),
    "an expert": (turn_models.routed, 2),
    "a look-up": (turn_models.retrieved, 2),
    "a condition": (turn_models.masked, 2),
    "maxima put back": (turn_models.put_back, 2),
    "maxima of a signal": (turn_models.put_back_in_a_row, 2),
}


def around(program: Program, inputs: Sequence[Array], asked: list[list[Array]] | None = None) -> list[Array]:
    assert program.host is not None

    def call(sent: list[Any]) -> list[Array]:
        if asked is not None:
            asked.append(sent)
        return run(program, sent)

    host = HostGraph(program.host.graph, program.host.values)
    sent, known = host.take_turns(inputs, call)
    return host.after(known, call(sent))


@pytest.mark.parametrize("name", CASES)
def test_host_and_accelerator_take_turns_as_pytorch_computes(name: str):
    build, calls = CASES[name]
    program = prepare(import_module(make(build), seeded((4, 8))))
    assert program.host is not None
    check_host(program.host)
    asked: list[list[Array]] = []
    judged = compare_whole(around(program, program.host.inputs, asked), program.host.outputs)
    assert judged["max_abs_error"] is None or judged["max_abs_error"] < 1e-4
    assert judged["indices_equal"] == judged["indices"]
    assert len(asked) == calls
    assert any("figures are of one call" in note for note in program.notes)
    later = program.host.graph["accelerator"]["later"]
    sent = program.host.graph["accelerator"]["inputs"]
    assert later
    for place, wanted in enumerate(sent):
        assert (wanted in later) == (not asked[0][place].any()), "zeros stand for what the host makes later"
    # the samples of the accelerator are of its last call
    assert program.samples is not None
    for ours, given in zip(asked[-1], program.samples.inputs, strict=True):
        np.testing.assert_allclose(ours, given, rtol=1e-4, atol=1e-5)


def test_other_inputs_take_other_ways():
    """What the host chooses depends on the input, and is not what it was at import."""
    module = make(turn_models.routed)
    program = prepare(import_module(module, seeded((4, 8))))
    for seed in (1, 2, 3):
        x = seeded((4, 8), seed)
        with torch.no_grad():
            wanted = module(x).numpy()
        np.testing.assert_allclose(around(program, [x.numpy()])[0], wanted, rtol=1e-4, atol=1e-4)


def test_what_stands_behind_the_last_of_them_stays_on_the_host():
    program = import_module(make(turn_models.twice), seeded((4, 8)))
    assert program.host is not None
    graph = program.host.graph
    assert [[n["op"] for n in turn["operations"]] for turn in graph["between"]] == [
        ["aten.topk.default", "getitem"], ["aten.sort.default", "getitem"],
    ]  # fmt: skip
    assert [n["op"] for n in graph["after"]] == ["aten.argmax.default"]
    assert len(graph["between"][0]["outputs"]) == 1


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 4)
        self.register_buffer("seen", torch.zeros(4, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += self.first(x)
        return self.second(self.seen.sort(-1)[0])


def test_what_a_model_keeps_would_change_with_each_call():
    with pytest.raises(PenstockError, match=r"aten\.sort.*keeps 'seen' from call to call") as caught:
        import_module(make(Remembering), seeded((4, 8)))
    assert caught.value.code == "host-in-the-middle"


def test_a_held_out_set_is_left_out_and_that_is_said():
    held = LoadedEvaluation("digits", seeded((8, 8)), torch.zeros(8))
    program = import_module(make(turn_models.sorted_in_the_middle), seeded((4, 8)), evaluation=held)
    assert program.evaluation is None
    assert any("held-out set is left out" in note for note in program.notes)


def test_a_graph_that_somebody_wrote_is_checked():
    host = import_module(make(turn_models.sorted_in_the_middle), seeded((4, 8))).host
    assert host is not None

    def broken(**changed: Any) -> Any:
        return type(host)({**host.graph, **changed}, host.values)

    (turn,), accelerator = host.graph["between"], host.graph["accelerator"]
    for graph in (
        broken(between=[{**turn, "outputs": ["nothing"]}]),
        broken(between=[{**turn, "operations": [{**turn["operations"][0], "op": "os.system"}]}]),
        broken(between=[]),
        broken(accelerator={**accelerator, "later": {"nothing": [1]}}),
        broken(accelerator={**accelerator, "later": {accelerator["inputs"][-1]: [1 << 40]}}),
        broken(accelerator={**accelerator, "later": {accelerator["inputs"][-1]: ["x"]}}),
    ):
        with pytest.raises(BadHostPartError):
            check_host(graph)
