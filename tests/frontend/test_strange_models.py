"""Models with odd types, names, sharing and sizes: taken in and answered as PyTorch does, or refused in one line."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import make_context
from penstock.compiler.frontend.export import MOST_OPERATIONS, check_operations
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import without_weights
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from tests.frontend.models import Lambda, import_module, make, seeded

Build = Callable[[], nn.Module]


def answers_as_pytorch(program: Program) -> None:
    canonical = prepare(program)
    assert canonical.samples is not None
    for got, wanted in zip(run(canonical, canonical.samples.inputs), canonical.samples.outputs, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_become_float32_and_it_is_said(kind: torch.dtype, tmp_path: Path) -> None:
    module = make(lambda: nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4))).to(kind)
    program = import_module(module, seeded((2, 8)).to(kind))
    name = str(kind).removeprefix("torch.")
    assert program.notes == (
        f"5 as {name} of the model's tensors were converted: it runs in float32, and so do PyTorch's answers",
    )
    assert {value.dtype for value in program.params.values()} == {np.dtype(np.float32)}
    answers_as_pytorch(program)
    program.save(tmp_path)
    assert Program.load(tmp_path, make_context()).notes == program.notes


def test_what_a_model_makes_narrow_of_its_own_numbers_is_worked_out() -> None:
    """As an attention whose slopes are bfloat16, and multiplied by positions before they are float32 again."""

    def alibi(module: Any, x: torch.Tensor) -> torch.Tensor:
        places = torch.ones(1, x.shape[-1], dtype=torch.long).cumsum(-1) - 1
        bias = module.slopes[:, None].bfloat16() * places
        return module.layer(x) + bias.reshape(3, x.shape[-1]).to(x.dtype)

    module = make(lambda: Lambda(alibi, layer=nn.Linear(5, 5)))
    module.register_buffer("slopes", torch.tensor([0.3, 0.7, 1.1]))
    answers_as_pytorch(import_module(module, seeded((3, 5))))


def test_parts_without_elements_are_left_out_of_joins(tmp_path: Path) -> None:
    """As DINOv3 without register tokens; a layer that nothing calls may be empty too."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        alone = torch.cat([m.layer(x), m.more.expand(2, -1, -1)], 1)
        return torch.cat([x[:, :1], m.more.expand(2, -1, -1), alone, x[:, 3:]], 1) * 2

    module = make(lambda: Lambda(forward, layer=nn.Linear(4, 4), more=nn.Parameter(torch.empty(1, 0, 4))))
    module.register_parameter("unread", nn.Parameter(torch.empty(0, 4)))
    program = import_module(module, seeded((2, 3, 4)))
    answers_as_pytorch(program)
    program.save(tmp_path)
    assert all(value.size for value in Program.load(tmp_path, make_context()).params.values())


def test_a_causal_mask_that_the_model_makes_is_no_condition() -> None:
    """PyTorch's encoder and decoder compare it with the causal one, to choose a kernel."""

    def forward(m: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        own, crossed = nn.Transformer.generate_square_subsequent_mask(4), torch.zeros(4, 5)
        return m.whole(x, y, src_mask=torch.full((5, 5), -1e9).triu(1), tgt_mask=own, memory_mask=crossed)

    module = make(lambda: Lambda(forward, whole=nn.Transformer(8, 2, 1, 1, 16, batch_first=True)))
    answers_as_pytorch(import_module(module, seeded((1, 5, 8)), seeded((1, 4, 8), 1)))


def test_a_half_precision_model_keeps_what_it_shares() -> None:
    first, second = make(lambda: nn.Linear(4, 4)), nn.Linear(4, 4)
    second.register_parameter("weight", first.get_parameter("weight"))
    program = import_module(nn.Sequential(first, nn.ReLU(), second).half(), seeded((2, 4)))
    assert sorted(program.params) == ["0.bias", "0.weight", "2.bias"]
    answers_as_pytorch(program)


def spoilt(module: nn.Linear, number: float) -> nn.Module:
    with torch.no_grad():
        module.weight[1, 2] = number
    return module


def spoilt_norm() -> nn.Module:
    norm = nn.BatchNorm1d(4)
    norm.get_buffer("running_mean")[3] = math.nan
    return norm


def tied() -> nn.Module:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return nn.Sequential(first, nn.ReLU(), second)


def transposed() -> nn.Module:
    """As an autoencoder whose decoder is the encoder's transpose."""
    return Lambda(lambda m, x: m.a(x) @ m.a.weight, a=nn.Linear(4, 6, bias=False))


def called_twice() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


def normed() -> nn.Module:
    return nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))


@pytest.mark.parametrize("build", [tied, transposed, called_twice, normed], ids=lambda build: build.__name__)
def test_shared_and_derived_parameters(build: Build) -> None:
    program = import_module(make(build), seeded((2, 4)))
    assert len(program.params) == len(set(program.params))
    answers_as_pytorch(program)


WORDS = ["int", "template", "signed", "module", "endmodule", "always", "select", "drop", "main", "std", "relu", "__a"]
WORDS += ["层", "λ", "π_2", "a b", "x-y", "'; drop table runs; --", "1", "fc.bias".replace(".", "_"), "fc bias"]


class Named(nn.Module):
    """Layers and inputs that are keywords elsewhere, not words, or alike but for what no identifier holds."""

    def __init__(self) -> None:
        super().__init__()
        for word in WORDS:
            self.add_module(word, nn.Linear(2, 2))

    def forward(self, int: torch.Tensor, wire: torch.Tensor, ξ: torch.Tensor) -> dict[str, torch.Tensor]:
        x = int + wire * ξ
        for word in WORDS:
            x = torch.tanh(getattr(self, word)(x))
        return {"select": x, "für": x * 2}


def test_names_are_the_models_own(tmp_path: Path) -> None:
    program = import_module(make(Named), seeded((1, 2)), seeded((1, 2), 1), seeded((1, 2), 2))
    assert [port.name for port in program.signature.inputs][:2] == ["int", "wire"]  # torch.export has no name for ξ
    assert {f"{word}.weight" for word in WORDS} <= set(program.params)
    program.save(tmp_path)
    loaded = Program.load(tmp_path, make_context())
    assert set(loaded.params) == set(program.params)
    answers_as_pytorch(loaded)


def quantised(module: nn.Module, kinds: set[type[nn.Module]]) -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(module, kinds)


def lazy() -> nn.Module:
    return nn.Linear(4, 2, device="meta")


FLOATS, COMPLEX = torch.ones(2, 4), torch.ones(2, 4, dtype=torch.complex64)
REFUSED: dict[str, tuple[Any, torch.Tensor, str, str]] = {
    "complex input": (lambda: nn.Linear(4, 2), COMPLEX, "unsupported-dtype", "example input 0 is complex64"),
    "complex results": (
        lambda: Lambda(lambda m, x: torch.view_as_complex(m.a(x).view(2, 1, 2)), a=nn.Linear(4, 2)),
        FLOATS, "unsupported-dtype", "a result is complex: aten.view_as_complex (models.py:",
    ),
    "a root of complex numbers": (
        lambda: Lambda(lambda m, x: torch.view_as_complex(m.a(x).view(2, 1, 2)).sqrt().real, a=nn.Linear(4, 2)),
        FLOATS, "unsupported-dtype", "on complex numbers is not supported",
    ),
    "a long Fourier transform": (
        lambda: Lambda(lambda m, x: torch.fft.rfft(m.a(x)).abs(), a=nn.Linear(4, 1025)),
        FLOATS, "unsupported-op", "a Fourier transform of 1,025 points",
    ),
    "eight bits": (
        lambda: Lambda(lambda m, x: x * m.w.float(), w=nn.Parameter(FLOATS.to(torch.float8_e4m3fn), False)),
        FLOATS, "unsupported-dtype", "parameter 'w' is float8_e4m3fn",
    ),
    "small integers": (lambda: nn.Linear(4, 2), FLOATS.to(torch.uint8), "unsupported-dtype", "input 0 is uint8"),
    "sparse": (
        lambda: Lambda(lambda m, x: x @ m.w, w=nn.Parameter(torch.eye(4).to_sparse(), False)),
        FLOATS, "unsupported-layout", "parameter 'w' is sparse_coo",
    ),
    "no numbers": (lazy, FLOATS, "unsupported-device", "parameter 'weight' is on meta: it has no numbers"),
    "not a number": (
        lambda: spoilt(nn.Linear(4, 2), math.nan), FLOATS, "not-finite",
        "parameter 'weight' holds NaN or infinity in 1 of its 8 places",
    ),
    "an infinite weight": (
        lambda: spoilt(nn.Linear(4, 2), math.inf), FLOATS, "not-finite",
        "parameter 'weight' holds NaN or infinity in 1 of its 8 places",
    ),
    "not a number in a buffer": (
        spoilt_norm, FLOATS, "not-finite", "buffer 'running_mean' holds NaN or infinity in 1 of its 4 places",
    ),
    "not a number as an input": (
        lambda: nn.Linear(4, 2), torch.full((2, 4), math.nan), "not-finite",
        "example input 0 holds NaN or infinity in 8 of its 8 places",
    ),
    "no shape": (lambda: nn.LazyLinear(2), FLOATS, "uninitialised", "parameter 'weight' has no shape yet"),
    "a keyword of Python": (
        lambda: nn.ModuleDict({"in": nn.Linear(4, 2)}), FLOATS, "layer-name", "the layer 'in' is called as a keyword",
    ),
    "a random number": (lambda: Lambda(lambda m, x: x * torch.rand(4)), FLOATS, "unsupported-op", "aten.rand"),
    "a generator of random numbers": (
        lambda: Lambda(lambda m, x: m.a(x) * torch.randn(2, generator=torch.Generator()), a=nn.Linear(4, 2)),
        FLOATS, "unsupported-constant", "forward uses a Generator",
    ),
    "a compiled graph": (
        lambda: torch.jit.trace(nn.Linear(4, 2), FLOATS), FLOATS, "export-failed", "ScriptModule is not supported",
    ),
    "a cast to bfloat16": (
        lambda: Lambda(lambda m, x: x.to(torch.bfloat16).float() * 2),
        FLOATS, "unsupported-dtype", ") gives bfloat16 numbers",
    ),
    "double precision inside": (
        lambda: Lambda(lambda m, x: m.a(x).double().cos().float(), a=nn.Linear(4, 2)),
        FLOATS, "unsupported-dtype", ") computes in float64",
    ),
    "weights without elements": (
        lambda: Lambda(lambda m, x: m.a(x) + (x @ m.w).sum(), a=nn.Linear(4, 2), w=nn.Parameter(torch.empty(4, 0))),
        FLOATS, "empty-tensor", "the weights 'w' have the shape (4, 0)",
    ),
    "control flow of the graph": (
        lambda: Lambda(lambda m, x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (m.a(x),)), a=nn.Linear(4, 2)),
        FLOATS, "data-dependent", "forward calls torch.cond",
    ),
    "noise": (
        lambda: Lambda(lambda m, x: m.b(m.a(x) + torch.randn_like(x)), a=nn.Linear(4, 4), b=nn.Linear(4, 2)),
        FLOATS, "unsupported-op", ") draws random numbers",
    ),
    "a solver": (
        lambda: Lambda(lambda m, x: torch.linalg.solve(m.a.weight, x.T), a=nn.Linear(4, 4)),
        FLOATS, "unsupported-op", "the operation aten.linalg_solve_ex (models.py:",
    ),
    "layers that PyTorch quantised": (
        lambda: quantised(nn.Sequential(nn.Linear(4, 2)), {nn.Linear}),
        FLOATS, "quantised-module", "the layer '0' is a Linear of torch.ao.nn.quantized.dynamic",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings(
    "ignore:`torch.jit:DeprecationWarning", "ignore:Sparse", "ignore:Lazy modules", "ignore:torch.quantize_per",
    "ignore:.*torch.ao.quantization",
)  # fmt: skip
def test_what_is_refused_is_named(name: str) -> None:
    build, x, code, what = REFUSED[name]
    module = build()
    if isinstance(module, nn.ModuleDict):
        inner = module
        module.forward = lambda x: inner["in"](x)  # type: ignore[method-assign]
    with pytest.raises(PenstockError) as caught:
        prepare(import_module(module, x))
    error = caught.value
    assert (error.code, what in error.what) == (code, True), error.one_line()
    assert error.hint
    assert "\n" not in error.one_line()


def test_too_many_operations_are_refused_before_they_are_traced() -> None:
    ran = 0

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        nonlocal ran
        for _ in range(3 * MOST_OPERATIONS):
            x = x * 1.001
            ran += 1
        return x

    with pytest.raises(PenstockError, match=f"more than {MOST_OPERATIONS:,} operations") as caught:
        import_module(Lambda(forward), seeded((2, 4)))
    assert caught.value.code == "too-many-operations"
    assert ran <= 2 * MOST_OPERATIONS, "it was refused on the way, not after a trace of the whole"


class Remembers(nn.Module):
    """Makes a table in its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.table = nn.Linear(4, 4), None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = torch.arange(4.0) + 1
        return self.layer(x) * self.table


def test_operations_are_counted_on_shapes_alone_and_nothing_is_left_behind() -> None:
    ran = 0

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        nonlocal ran
        for _ in range(3 * MOST_OPERATIONS):
            x = m.a(x)
            ran += 1
        return x

    def shapes(module: nn.Module) -> LoadedModel:
        return without_weights(LoadedModel("net", "net.py:model", module.eval(), (torch.ones(2, 4),), None))

    with torch.device("meta"):
        long, short = Lambda(forward, a=nn.Linear(4, 4)), Remembers()
    with pytest.raises(PenstockError, match=f"more than {MOST_OPERATIONS:,} operations"):
        import_loaded(shapes(long))
    assert 0 < ran <= MOST_OPERATIONS, "it was refused on the way, not after a trace of the whole"
    model = shapes(short)
    check_operations(model)
    assert short.table is None
    assert import_loaded(model).signature.outputs[0].shape == (2, 4)
