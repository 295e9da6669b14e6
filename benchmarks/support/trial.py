"""Tries one operation: imported, prepared, given the default design, lowered and written as C++."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.support.torch_operations import LAYERS, WIDTH, Apply, Operation
from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program

ACCELERATOR, HOST, REFUSED = "accelerator", "host", "refused"
_PLATFORM = load_platform("u55c")


@dataclass(frozen=True)
class Outcome:
    """Where it runs, and the reason if that is not the accelerator."""

    where: str
    why: str = ""


def try_function(apply: Apply) -> Outcome:
    """On the accelerator if it is that between two layers; else on the host, wherever it is possible there."""
    first: Outcome | None = None
    for module in _placed(apply):
        outcome = try_module(module, torch.randn(2, 4, WIDTH, generator=torch.Generator().manual_seed(1)))
        if outcome.where != REFUSED:
            return outcome
        first = first or outcome
    return first or Outcome(REFUSED, "it gives no tensor of floats")


def _placed(apply: Apply) -> Iterator[nn.Module]:
    x = torch.randn(2, 4, WIDTH, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    y: Any = apply(x)
    if isinstance(y, torch.Tensor) and y.is_floating_point() and y.dim():
        yield Operation(apply, "middle", y.shape[-1])
    yield Operation(apply, "end")
    if isinstance(y, torch.Tensor) and y.is_floating_point() and y.dim():
        yield Operation(apply, "start", y.shape[-1])


def try_layer(name: str) -> Outcome:
    torch.manual_seed(0)
    module = LAYERS[name]()
    x = torch.randn(3, 1, WIDTH)
    if isinstance(module, nn.Embedding):  # with something for the accelerator behind it
        return try_module(nn.Sequential(module, nn.Linear(WIDTH, 3)), torch.tensor([[0, 2, 1]]))
    return try_module(module, x)


def try_module(module: nn.Module, x: torch.Tensor) -> Outcome:
    try:
        return _compiled(import_loaded(LoadedModel("operation", "operation", module.eval(), (x,))))
    except Exception as error:  # noqa: BLE001  (what is no refusal is a fault, and the page says so)
        return Outcome(REFUSED, _short(error))


def try_reference(reference: str) -> Outcome:
    try:
        return _compiled(import_model(reference))
    except Exception as error:  # noqa: BLE001
        return Outcome(REFUSED, _short(error))


def _compiled(program: Program) -> Outcome:
    canonical = prepare(program)
    design = default_design(read_graph(canonical.module), _PLATFORM.name, _PLATFORM.clock_mhz)
    with tempfile.TemporaryDirectory(prefix="penstock-support-") as folder:
        emit(lower(canonical, design), Path(folder), part=_PLATFORM.part, clock_mhz=design.clock_mhz)
    if program.host is None:
        return Outcome(ACCELERATOR)
    graph = program.host.graph
    between = [node for turn in graph.get("between", ()) for node in turn["operations"]]
    reasons = [node["why"] for node in (*graph["before"], *between, *graph["after"])]
    own = [why for why in reasons if not why.startswith(("an operation on the host", "follows an operation"))]
    return Outcome(HOST, (own or reasons or ["the accelerator takes float32"])[0])


def _short(error: Exception) -> str:
    """What is wrong, without the place in this file."""
    if not isinstance(error, PenstockError):
        return f"a fault of Penstock's own: {type(error).__name__}"
    text = " ".join(error.what.replace("|", "/").split())
    for file in ("torch_operations.py", "functional.py", "_tensor.py"):
        while f" ({file}:" in text:
            head, _, tail = text.partition(f" ({file}:")
            text = head + tail.partition(")")[2]
    return text
