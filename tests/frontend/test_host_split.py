"""What runs on the host: look-ups before the accelerator, selections after it; what cannot be cut so is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper
from torch import nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model, make_context
from penstock.compiler.frontend.loaded import LoadedEvaluation
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.host import HostGraph, compare_whole
from tests.frontend.models import Lambda, import_module, make, seeded
from tests.frontend.onnx_files import graph, save


class LanguageModel(nn.Module):
    """One attention layer between tied token embeddings: a padding mask from the tokens, a mask and places as state."""

    def __init__(self, vocabulary: int = 20, d: int = 8, length: int = 4) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.head = nn.Linear(d, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril())
        self.register_buffer("order", torch.arange(length))

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert isinstance(self.mask, torch.Tensor)
        assert isinstance(self.order, torch.Tensor)
        x = self.tokens(ids) + self.places(self.order)
        scores = (self.q(x) @ self.k(x).T).masked_fill(~self.mask, -1e4)
        scores = scores.masked_fill((ids == 0)[None, :], -1e4)
        logits = self.head(x + torch.softmax(scores, -1) @ self.v(x))
        return logits.argmax(-1), logits


IDS = torch.tensor([3, 0, 7, 19])


def whole(program: Program, inputs: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Host, interpreter, host."""
    assert program.host is not None
    host = HostGraph(program.host.graph, program.host.values)
    sent, kept = host.before(inputs)
    return host.after(kept, run(program, sent))


def agree(program: Program) -> None:
    assert program.host is not None
    judged = compare_whole(whole(program, program.host.inputs), program.host.outputs)
    assert judged["indices_equal"] == judged["indices"]
    assert judged["max_abs_error"] is None or judged["max_abs_error"] < 1e-4


def test_a_language_model_begins_and_ends_on_the_host(tmp_path: Path) -> None:
    program = import_module(make(LanguageModel), IDS)
    host = program.host
    assert host is not None
    first = host.graph["before"][0]
    assert (first["op"], first["layer"]) == ("aten.embedding.default", "tokens")
    assert [(n["op"], n["why"]) for n in host.graph["after"]] == [
        ("aten.argmax.default", "selects by comparing values with one another")
    ]
    assert host.graph["inputs"] == [{"name": "ids", "shape": [4], "dtype": "int64"}]
    assert [port["dtype"] for port in host.graph["outputs"]] == ["int64", "float32"]
    assert all(port.dtype == "float32" for port in program.signature.inputs)
    program.save(tmp_path)
    loaded = Program.load(tmp_path, make_context())
    assert loaded.host is not None
    assert loaded.host.graph == host.graph
    canonical = prepare(loaded)
    agree(canonical)
    assert canonical.samples is not None
    answers = run(canonical, canonical.samples.inputs)
    np.testing.assert_allclose(answers[0], canonical.samples.outputs[0], rtol=1e-4, atol=1e-5)


def test_a_token_outside_of_the_vocabulary_is_refused() -> None:
    program = import_module(make(LanguageModel), IDS)
    with pytest.raises(PackageError, match=r"input 'ids' has values from 3 to 20 - its table has entries 0 to 19"):
        whole(program, (np.array([3, 20, 5, 6]),))


def test_state_that_is_not_float_enters_as_zeros_and_ones() -> None:
    module = Lambda(lambda m, x: torch.where(m.mask, m.fc(x), x), fc=nn.Linear(4, 4))
    module.register_buffer("mask", torch.tensor([True, False, True, True]))
    program = prepare(import_module(module, seeded((2, 4))))
    assert program.host is None
    assert program.samples is not None
    np.testing.assert_allclose(
        run(program, program.samples.inputs)[0], program.samples.outputs[0], rtol=1e-4, atol=1e-5
    )


def test_a_condition_as_input_is_sent_as_zeros_and_ones() -> None:
    module = make(lambda: Lambda(lambda m, x, keep: torch.where(keep, m.fc(x), x), fc=nn.Linear(4, 4)))
    program = prepare(import_module(module, seeded((2, 4)), torch.tensor([True, False, False, True])))
    assert program.host is not None
    assert [port["dtype"] for port in program.host.graph["inputs"]] == ["float32", "bool"]
    assert [port.dtype for port in program.signature.inputs] == ["float32", "float32"]
    agree(program)


def test_without_weights_there_are_shapes_only(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "from tests.frontend.test_host_split import LanguageModel\n"
        "def model():\n"
        "    return LanguageModel(), torch.zeros(4, dtype=torch.int64)\n"
    )
    program = import_model(f"{tmp_path}/net.py:model", weights=False)
    assert program.host is not None
    assert program.samples is None
    assert [port.shape for port in program.signature.inputs] == [(4, 8), (4,)]


Build = Callable[[], nn.Module]
ENDS: dict[str, tuple[Build, torch.Tensor, list[str]]] = {
    "largest values": (
        lambda: Lambda(lambda m, x: m.fc(x).topk(2, -1), fc=nn.Linear(8, 6)), seeded((3, 8)),
        ["aten.topk.default", "getitem", "getitem"],
    ),
    "a condition as result": (
        lambda: Lambda(lambda m, x: m.fc(x) > 0, fc=nn.Linear(8, 6)), seeded((3, 8)), ["aten.gt.Scalar"],
    ),
    "the middle one": (
        lambda: Lambda(lambda m, x: m.first(x).median(-1).values, first=nn.Linear(8, 5)), seeded((3, 8)),
        ["aten.median.dim", "getitem"],
    ),
    "no contraction": (lambda: Lambda(lambda m, x: (x * 2 + 1).argmax(-1)), seeded((3, 8)), ["aten.argmax.default"]),
    "the largest of whole numbers": (
        lambda: Lambda(lambda m, x: m.fc(x).round().long().max(), fc=nn.Linear(8, 6)), seeded((3, 8)),
        ["aten._to_copy.default", "aten.amax.default"],
    ),
    "what is chosen by a token": (
        lambda: Lambda(lambda m, x: m.fc(x).gather(1, x[:, :1].abs().floor().long()), fc=nn.Linear(8, 6)),
        seeded((3, 8)), ["aten.gather.default"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_selections_at_the_end_run_on_the_host(name: str) -> None:
    build, x, after = ENDS[name]
    program = prepare(import_module(make(build), x))
    assert program.host is not None
    assert [n["op"] for n in program.host.graph["after"]] == after
    agree(program)


def test_a_held_out_set_of_tokens_has_the_whole_models_answers() -> None:
    def build() -> nn.Module:
        return Lambda(lambda m, ids: m.fc(m.table(ids).mean(1)), table=nn.Embedding(10, 4), fc=nn.Linear(4, 3))

    module = make(build)
    rows = torch.randint(0, 10, (5, 6), generator=torch.Generator().manual_seed(0))
    held_out = LoadedEvaluation("d", rows, torch.zeros(5, dtype=torch.int64), calibration=rows[:3])
    program = import_module(module, rows[:1], evaluation=held_out)
    assert program.evaluation is not None
    assert program.evaluation.inputs.dtype == np.int64
    np.testing.assert_allclose(program.evaluation.outputs, module(rows).detach().numpy(), rtol=1e-5, atol=1e-6)
    (rows,) = program.calibration
    assert rows.shape == (3, 1, 6, 4)
    agree(prepare(program))


def test_an_onnx_file_is_split_in_the_same_way(tmp_path: Path) -> None:
    table = np.linspace(-1, 1, 40, dtype=np.float32).reshape(10, 4)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"], "/tokens/Gather"),
        helper.make_node("MatMul", ["x", "head"], ["scores"], "/head/MatMul"),
        helper.make_node("ArgMax", ["scores"], ["y"], "/ArgMax", axis=-1, keepdims=0),
    ]
    made = graph(nodes, {"ids": (6,)}, ["y"], {"table": table, "head": table.T.copy()}, dtype="int64")
    program = prepare(import_model(str(save(made, tmp_path / "net.onnx"))))
    assert program.host is not None
    assert int(program.host.inputs[0].max()) > 1  # samples come from the whole table
    agree(program)


REFUSED: dict[str, tuple[Build, torch.Tensor, str, str, str]] = {
    "nothing else": (
        lambda: nn.Embedding(10, 4), torch.zeros(1, 3, dtype=torch.int64),
        "nothing-to-accelerate", "aten.embedding and all else", "net",
    ),
    "integers that nothing uses": (
        lambda: Lambda(lambda m, x: m.fc(m.weight * 2), fc=nn.Linear(8, 6), weight=nn.Parameter(seeded((2, 8)))),
        torch.zeros(3, dtype=torch.int64), "unsupported-dtype", "is int64", "net.py:model",
    ),
    "small integers": (
        lambda: Lambda(lambda m, x: x * 2), torch.zeros(3, dtype=torch.int8),
        "unsupported-dtype", "example input 0 is int8", "net.py:model",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_split_is_explained(name: str) -> None:
    build, x, code, what, where = REFUSED[name]
    with pytest.raises(PenstockError) as caught:
        import_module(build(), x)
    error = caught.value
    assert (error.code, what in error.what, where in error.where) == (code, True, True), error.one_line()
    assert error.limit
    assert error.hint
    assert "\n" not in error.one_line()


def test_only_operations_without_side_effects_are_run() -> None:
    graph = {"inputs": [], "outputs": [], "tables": {}, "before": [], "after": [], "results": [],
             "accelerator": {"inputs": [], "outputs": []}}  # fmt: skip
    for op in ("aten.from_file.default", "aten.add_.Tensor", "aten.rand.default", "os.system", "aten.nothing.default"):
        node = {"name": "a", "op": op, "args": ["x"], "kwargs": {}, "layer": "", "why": ""}
        with pytest.raises(PackageError, match="no operation that this runtime runs"):
            HostGraph({**graph, "before": [node]}, {}).before([])


class PassesOn(nn.Module):
    """Returns what it computes, and values that it does nothing to: `which` of them."""

    def __init__(self, which: str) -> None:
        super().__init__()
        self.which, self.layer, self.table = which, nn.Linear(4, 3), nn.Embedding(9, 4)
        self.register_buffer("order", torch.arange(3))

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen = self.table(ids)
        y = self.layer(x + seen)
        match self.which:
            case "inputs":
                return x, y, ids, x.view(-1)
            case "what the host looked up":
                return y, seen[:5].unsqueeze(0), self.layer(seen.view(5, 4)), seen.view(5, 4)
            case "constants":
                return y, torch.ones(2) * 3, self.layer.weight, self.get_buffer("order")
            case _:
                return y.argmax(-1), x, y, x


@pytest.mark.parametrize("which", ["inputs", "what the host looked up", "constants", "one of them twice"])
def test_results_that_are_only_passed_on_come_from_the_host(which: str) -> None:
    module = make(lambda: PassesOn(which))
    program = import_module(module, seeded((5, 4)), torch.arange(5))
    assert program.host is not None
    assert "only passes a value on" in {node["why"] for node in program.host.graph["before"]}
    agree(prepare(program))


def test_a_model_that_looks_nothing_up_may_return_its_input() -> None:
    program = import_module(make(lambda: Lambda(lambda m, x: (m.layer(x), x), layer=nn.Linear(4, 3))), torch.ones(2, 4))
    agree(prepare(program))
    with pytest.raises(PenstockError, match="forward returns 'inputs_0' unchanged"):
        prepare(import_module(Lambda(lambda m, x: x), torch.ones(2, 4)))
