"""Operations without a form of their own on the accelerator, in forms that it has: PyTorch's numbers each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.scalars.expansions import EXPANSIONS
from tests.frontend.models import Lambda, import_module, make, seeded

Function = Callable[[torch.Tensor], torch.Tensor]

ACTIVATIONS: dict[str, Function] = {
    "softplus": lambda x: functional.softplus(x, 2.0, 5.0), "mish": functional.mish, "hardswish": functional.hardswish,
    "hardsigmoid": functional.hardsigmoid, "elu": functional.elu, "selu": functional.selu,
    "celu": lambda x: functional.celu(x, 2.0), "leaky relu": functional.leaky_relu, "erf": torch.erf,
    "logsigmoid": functional.logsigmoid, "clamp": lambda x: x.clamp(-1, 0.5), "softsign": functional.softsign,
    "where": lambda x: torch.where(x > 0, x, -x), "relu6": functional.relu6, "softshrink": functional.softshrink,
    "tanhshrink": functional.tanhshrink, "gelu": functional.gelu,
    "gelu by tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "prelu": lambda x: functional.prelu(x, torch.tensor([0.25])),
}  # fmt: skip
FUNCTIONS: dict[str, Function] = {
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "log1p": lambda x: torch.log1p(x.abs()), "expm1": torch.expm1,
    "sinh": torch.sinh, "cosh": torch.cosh, "asin": lambda x: torch.asin(x.tanh()), "atan": torch.atan,
    "acos": lambda x: torch.acos(x.tanh()), "atan2": lambda x: torch.atan2(x, x.flip(0)), "asinh": torch.asinh,
    "acosh": lambda x: torch.acosh(x.abs() + 1), "atanh": lambda x: torch.atanh(x.tanh() * 0.9),
    "log10": lambda x: torch.log10(x.abs() + 0.1), "erfc": torch.erfc, "hypot": lambda x: torch.hypot(x, x + 1),
    "copysign": lambda x: torch.copysign(x, -x), "heaviside": lambda x: torch.heaviside(x, torch.ones(())),
    "lerp": lambda x: torch.lerp(x, -x, 0.3), "fmod": lambda x: torch.fmod(x, 0.7), "exp2": torch.exp2,
    "remainder": lambda x: torch.remainder(x, -0.7), "power of two and a half": lambda x: x.abs() ** 2.5,
    "power of a tensor": lambda x: x.abs() ** torch.sigmoid(x), "three to the power": lambda x: 3.0**x,
    "trunc": torch.trunc, "round": torch.round, "log2": lambda x: torch.log2(x.abs() + 0.1), "sinc": torch.sinc,
    "third root": lambda x: (x.abs() + 0.01) ** (1 / 3),
}  # fmt: skip


def _written(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x)
    y[:, 2:5] = x[:, :3] * 2
    return y


def _written_in_steps(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 1::3] = x[:, :3] * 2
    y[1::2] = 0.5
    return y


def _written_by_masks(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[x < 0] = 0.5
    y[y[:, 0] > 0.2] = -1
    return y


def _summed_at_places(x: torch.Tensor) -> torch.Tensor:
    """As the messages of a graph's edges; [6, 8], once along each dim."""
    places = torch.tensor([2, 0, 0, 3, 2, 2])
    nodes = torch.zeros(4, 8).index_add_(0, places, x)
    return nodes.scatter_add(1, (torch.arange(8) % 3).expand(4, 8), 2 * x[:4])


MOVES: dict[str, Function] = {
    "flip": lambda x: x.flip(1), "roll": lambda x: x.roll((1, -2), (0, 1)), "roll all": lambda x: x.roll(3),
    "every second": lambda x: x[:, ::2], "every third from the second": lambda x: x[:, 1::3],
    "the last of a step": lambda x: x[:, 2:8:5], "pad": lambda x: functional.pad(x, (1, 2, 0, 1), value=0.5),
    "pad and cut": lambda x: functional.pad(x, (-2, 1)), "nothing joined": lambda x: torch.cat([x[:, :0], x], 1),
    "places": lambda x: x[:, [2, 0, 1, 1, -1]],
    "rows at a table of places": lambda x: x[torch.tensor([[1, 0], [2, 2]])],
    "at counted places": lambda x: x.index_select(1, torch.arange(4).flip(0) + 1), "a part is written": _written,
    "every third is written": _written_in_steps, "diagonal": torch.diagonal,
    "summed at places": _summed_at_places,
    "written by masks": _written_by_masks, "a diagonal is filled": lambda x: x[1:4, :3].clone().fill_diagonal_(2.0),
    "diagonals beside the first": lambda x: torch.cat([x.diagonal(2), x.diagonal(-3)]),
    "diagonals of matrices": lambda x: torch.einsum("iji->ij", x.reshape(2, 12, 2)),
    "selected": lambda x: x.index_select(1, torch.tensor([3, 4, 5, 0])),
    "windows of a line": lambda x: functional.unfold(x.T[None, :, None], (1, 3), padding=(0, 1)),
    "places along two dims": lambda x: x[torch.tensor([[0], [2]]), torch.tensor([1, 2, 5])],
    "each row at its own places": lambda x: x.gather(1, (torch.arange(4) - torch.arange(6)[:, None]).clamp(-2, 2) + 3),
    "and viewed in another shape": lambda x: x.gather(1, torch.zeros(6, 3, dtype=torch.int64)).view(3, 6),
    "all rows at the same places": lambda x: x.reshape(2, 3, 8).gather(1, torch.tensor([[[2], [0]]]).expand(2, 2, 8)),
    "windows laid over one another": lambda x: functional.fold(x[None], (3, 9), (2, 3), stride=(1, 2)),
    "windows past the edges": lambda x: functional.fold(x[None], (1, 7), (2, 3), padding=1, stride=(1, 2)),
    "windows with gaps": lambda x: functional.fold(x[None], (3, 11), (2, 3), dilation=(1, 2), stride=(1, 2)),
    "turned pairs": lambda x: torch.stack([-x[:, 1::2], x[:, ::2]], -1).flatten(1),
}  # fmt: skip
SUMS: dict[str, Function] = {
    "running sums": lambda x: x.cumsum(1), "running sums of columns": lambda x: x.cumsum(0),
    "running products": lambda x: x.cumprod(1), "least": lambda x: x.amin(1), "least of all": lambda x: x.min(),
    "least of a dim": lambda x: x.min(0)[0], "product": lambda x: x.prod(1),
    "distances": lambda x: torch.cdist(x, x + 1),
    "city blocks": lambda x: torch.cdist(x, x + 1, p=1.0), "deviation": lambda x: x.std(1),
    "any": lambda x: torch.where((x > 1).any(1, keepdim=True), x, -x), "any number": lambda x: x * x.any(),
    "a number with dims": lambda x: x * torch.dot(x[0], x[1]).reshape(1, 1) + x.mean().unsqueeze(0),
    "all": lambda x: torch.where((x > -1).all(0), x, -x), "all there are": lambda x: torch.where((x > -9).all(), x, -x),
    "largest distance": lambda x: torch.cdist(x, x + 1, p=torch.inf), "logarithm of sums": lambda x: x.logsumexp(1),
}  # fmt: skip


def answers_as_pytorch(module: nn.Module, *inputs: torch.Tensor, names: list[str] | None = None) -> None:
    program = prepare(import_module(module, *inputs))
    assert program.samples is not None
    assert program.host is None
    assert not any(type(op) in EXPANSIONS for op in program.module.walk())
    answers = zip(run(program, program.samples.inputs), program.samples.outputs, strict=True)
    for place, (ours, theirs) in enumerate(answers):
        name = names[place] if names else ""
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "group", [ACTIVATIONS, FUNCTIONS, MOVES, SUMS], ids=["activations", "functions", "moves", "sums"]
)
def test_functions_and_moves(group: dict[str, Function]) -> None:
    """All of a group in one model, which is read from one product."""

    def forward(m: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = m.a(x)
        return tuple(function(y) for function in group.values())

    answers_as_pytorch(make(lambda: Lambda(forward, a=nn.Linear(4, 8))), 2 * seeded((6, 4)), names=list(group))


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "patches": (lambda: nn.Conv2d(3, 8, 4, 4), (1, 3, 8, 8)),
    "oblong patches with a rest": (lambda: nn.Conv2d(3, 8, (4, 2), (4, 2), bias=False), (2, 3, 9, 7)),
    "patches of a line": (lambda: nn.Conv1d(3, 8, 4, 4), (1, 3, 8)),
    "patches of a volume": (lambda: nn.Conv3d(2, 4, 2, 2), (1, 2, 4, 4, 4)),
    "pointwise in groups": (lambda: nn.Conv1d(4, 8, 1, groups=2), (2, 4, 5)),
    "patches put back": (lambda: nn.ConvTranspose2d(3, 4, 2, 2), (1, 3, 3, 2)),
    "averages of windows": (lambda: nn.AvgPool2d(2), (1, 3, 4, 5)),
    "averages that overlap": (lambda: nn.AvgPool2d(3, 2), (1, 2, 7, 5)),
    "averages past the edges": (lambda: nn.AvgPool2d(3, 1, padding=1, count_include_pad=False), (1, 2, 4, 5)),
    "averages with zeros past the edges": (lambda: nn.AvgPool2d((2, 3), (1, 2), padding=1), (1, 2, 4, 5)),
    "averages of a last window cut short": (lambda: nn.AvgPool2d((2, 1), ceil_mode=True), (1, 2, 5, 3)),
    "averages of a line cut short": (lambda: nn.AvgPool1d(3, 2, padding=1, ceil_mode=True), (1, 2, 6)),
    "sums of windows": (lambda: nn.AvgPool2d(2, 2, ceil_mode=True, divisor_override=1), (1, 2, 5, 5)),
    "an instance norm": (lambda: nn.InstanceNorm1d(4, affine=True), (2, 4, 5)),
    "a group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
}


def test_layers_without_overlapping_windows() -> None:
    """All of them side by side in one model, each with an input of its own."""

    def forward(m: Any, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(layer(x) for layer, x in zip(m.layers, inputs, strict=True))

    module = make(lambda: Lambda(forward, layers=nn.ModuleList(build() for build, _ in LAYERS.values())))
    answers_as_pytorch(module, *(seeded(shape) for _, shape in LAYERS.values()), names=list(LAYERS))


def test_a_pool_whose_window_is_one_place_only_reads_what_it_pools() -> None:
    """What says how large its window is has no numbers: in eight bits it had no scale."""

    def pool() -> nn.Module:
        return make(lambda: nn.Sequential(nn.MaxPool1d(1), nn.Linear(6, 3)))

    program = prepare(import_module(pool(), seeded((2, 1, 6))))
    assert not [
        value for op in program.module.walk() if isinstance(op, linalg.GenericOp)
        for value in op.inputs if isinstance(value.owner, tensor.EmptyOp)
    ]  # fmt: skip
    assert prepare(import_module(pool(), seeded((2, 1, 6))), "w8a8").signature.inputs[0].quant is not None


def test_a_patch_embedding_is_one_product_of_its_own_name() -> None:
    module = make(lambda: nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Flatten(2)))
    program = prepare(import_module(module, seeded((1, 3, 8, 8))))
    layers = [str(op.attributes["penstock.layer"]) for op in program.module.walk() if "penstock.layer" in op.attributes]
    assert layers == ['"0"', '"0.permute"']  # the product; the bias, which leaves as channels and pixels


def test_a_matrix_times_a_vector_is_one_contraction() -> None:
    """Its products do not leave one kernel to be summed in another."""

    def forward(m: Any, x: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x @ v, (v @ x.T).relu()

    module, inputs = Lambda(forward), (seeded((5, 7)), seeded((7,), 1))
    graph = read_graph(prepare(import_module(module, *inputs)).module)
    assert [op.trips for op in graph.operations if op.reductions] == [(5, 7), (5, 7)]
    assert all(op.reductions or len(op.trips) == 1 for op in graph.operations), "nothing is as large as the matrix"
    answers_as_pytorch(module, *inputs)


@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, -2), (0, 1), (2, 0)])
def test_a_matrix_times_a_vector_may_be_added_to_another_one(beta: float, alpha: float) -> None:
    def forward(m: Any, start: torch.Tensor, x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.addmv(start, x, v, beta=beta, alpha=alpha)

    answers_as_pytorch(Lambda(forward), seeded((5,)), seeded((5, 7), 1), seeded((7,), 2))


RECURRENT: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "rnn": (lambda: nn.RNN(3, 4, nonlinearity="relu"), ((3, 2, 3),)),
    "lstm without batch": (lambda: nn.LSTM(3, 4, bias=False), ((3, 3),)),
    "lstm with a projection": (lambda: nn.LSTM(3, 4, proj_size=2), ((2, 1, 3),)),
    "two layers of lstm both ways": (lambda: nn.LSTM(3, 2, 2, batch_first=True, bidirectional=True), ((1, 2, 3),)),
    "gru both ways": (lambda: nn.GRU(3, 4, bidirectional=True), ((3, 1, 3),)),
    "rnn cell": (lambda: nn.RNNCell(3, 4), ((2, 3), (2, 4))),
    "gru cell": (lambda: nn.GRUCell(3, 4), ((2, 3), (2, 4))),
    "lstm cell": (lambda: nn.LSTMCell(3, 4), ((2, 3),)),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_nets_are_unrolled(name: str) -> None:
    build, shapes = RECURRENT[name]
    answers_as_pytorch(make(build), *(seeded(shape, i) for i, shape in enumerate(shapes)))


TRANSFORMERS: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "attention across": (
        lambda: Lambda(lambda m, x, y: m.a(x, y, y), a=nn.MultiheadAttention(8, 2, kdim=6, vdim=6)),
        ((3, 1, 8), (4, 1, 6)),
    ),
    "attention with a mask and biases": (
        lambda: Lambda(
            lambda m, x: m.a(x, x, x, attn_mask=torch.ones(3, 3, dtype=torch.bool).triu(1))[0],
            a=nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True),
        ),
        ((1, 3, 8),),
    ),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True), ((3, 1, 8),)),
    "decoder layer": (lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), ((1, 3, 8), (1, 2, 8))),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_of_torch(name: str) -> None:
    build, shapes = TRANSFORMERS[name]
    answers_as_pytorch(make(build), *(seeded(shape, i) for i, shape in enumerate(shapes)))


def test_what_the_host_looks_up_by_constants_does_not_leave_the_accelerator() -> None:
    module = make(lambda: Lambda(lambda m, x: m.a(x).flatten()[torch.arange(36).flip(0).repeat(4)], a=nn.Linear(4, 6)))
    program = prepare(import_module(module, seeded((6, 4))))
    assert program.host is not None
    assert len(program.host.graph["accelerator"]["outputs"]) == 1


def test_a_buffer_that_nothing_reads_is_left_out() -> None:
    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.register_buffer("causal", torch.ones(4, 4, dtype=torch.bool))
            self.register_buffer("places", torch.arange(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    program = import_module(make(Causal), seeded((2, 4)))
    assert set(program.params) == {"layer.weight", "layer.bias"}


def test_an_assertion_about_types_does_not_keep_an_embeddings_input_alive() -> None:
    """As in many published language models, where positions are computed from the embedding."""

    def forward(m: Any, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1]).to(dtype=torch.int64, device=ids.device).to(torch.float32)
        torch.ops.aten._assert_tensor_metadata(ids, None, None, torch.int64)
        return m.fc(m.table(ids) + torch.sin(places)[None, :, None])

    module = make(lambda: Lambda(forward, table=nn.Embedding(10, 4), fc=nn.Linear(4, 3)))
    program = import_module(module, torch.tensor([[1, 2, 7]]))
    assert program.host is not None
    assert [node["op"] for node in program.host.graph["before"]] == ["aten.embedding.default"]
    assert [port.dtype for port in program.signature.inputs] == ["float32"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (torch.lgamma, "the operation aten.lgamma is not supported"),
        (lambda x: torch.nn.functional.max_pool2d(x[None], 2), "aten.max_pool2d"),
    ],
)
def test_what_is_not_supported_is_said_in_pytorchs_words(function: Function, said: str) -> None:
    module = make(lambda: Lambda(lambda m, x: function(m.a(x)), a=nn.Linear(4, 6)))
    with pytest.raises(PenstockError) as caught:
        prepare(import_module(module, seeded((6, 4))))
    line = caught.value.one_line()
    assert said in line
    assert not any(ours in line for ours in ("math.", "arith.", "linalg.", "tensor.", "affine"))
