"""Random models of two-dimensional tensors: layers, activations, norms, reductions, slices, joins and new shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from torch import nn

from tests.frontend.models import Lambda

Tensor = torch.Tensor
Step = Callable[[list[Tensor]], Tensor]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "neg": torch.neg,
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "silu": nn.functional.silu,
    "square": lambda x: x**2,
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax of columns": lambda x: torch.softmax(x, 0),
    "rms norm": lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-3),
    "less its mean": lambda x: x - x.mean(0, keepdim=True),
    "over its largest": lambda x: x / (x.abs().amax(-1, keepdim=True) + 1),
    "transpose": lambda x: x.t(),
}


@st.composite
def models(draw: st.DrawFn) -> tuple[nn.Module, Tensor]:
    """A model with one input of two dims, and an example of it. What the steps do is drawn here, and fixed then."""
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 6)))
    seed = draw(st.integers(0, 1000))
    shapes, steps, parts = [shape], list[Step](), dict[str, nn.Module]()
    for number in range(draw(st.integers(1, 6))):
        source = draw(st.integers(0, len(shapes) - 1))
        rows, columns = shapes[source]
        kind = draw(st.sampled_from(["linear", "activation", "slice", "join", "add", "reshape"]))
        if kind == "linear":
            width = draw(st.integers(1, 6))
            parts[f"fc{number}"] = nn.Linear(columns, width)
            steps.append(_linear(parts[f"fc{number}"], source))
            shapes.append((rows, width))
        elif kind == "slice":
            dim = draw(st.integers(0, 1))
            start = draw(st.integers(0, shapes[source][dim] - 1))
            size = draw(st.integers(1, shapes[source][dim] - start))
            steps.append(_slice(source, dim, start, size))
            shapes.append((size, columns) if dim == 0 else (rows, size))
        elif kind == "join":
            dim = draw(st.integers(0, 1))
            fitting = [i for i, s in enumerate(shapes) if s[1 - dim] == shapes[source][1 - dim]]
            chosen = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2))
            steps.append(_join([source, *chosen], dim))
            total = sum(shapes[i][dim] for i in (source, *chosen))
            shapes.append((total, columns) if dim == 0 else (rows, total))
        elif kind == "add":
            fitting = [i for i, s in enumerate(shapes) if s == shapes[source]]
            steps.append(_add(source, draw(st.sampled_from(fitting))))
            shapes.append(shapes[source])
        elif kind == "reshape" and columns % 2 == 0:
            steps.append(_pairs_as_rows(source))
            shapes.append((rows, columns))
        else:
            name = draw(st.sampled_from(sorted(ACTIVATIONS)))
            steps.append(_activation(name, source))
            shapes.append((columns, rows) if name == "transpose" else shapes[source])
    torch.manual_seed(seed)
    for part in parts.values():
        part.reset_parameters()  # type: ignore[operator]

    def forward(_model: Any, x: Tensor) -> Tensor:
        values = [x]
        for step in steps:
            values.append(step(values))
        return values[-1] * 0.5

    return Lambda(forward, **parts), torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _linear(part: nn.Module, source: int) -> Step:
    return lambda values: part(values[source])


def _slice(source: int, dim: int, start: int, size: int) -> Step:
    return lambda values: values[source].narrow(dim, start, size)


def _join(sources: list[int], dim: int) -> Step:
    return lambda values: torch.cat([values[i] for i in sources], dim)


def _add(a: int, b: int) -> Step:
    return lambda values: values[a] + torch.relu(values[b])


def _activation(name: str, source: int) -> Step:
    return lambda values: ACTIVATIONS[name](values[source])


def _pairs_as_rows(source: int) -> Step:
    """Work on a finer shape in between: [rows, 2, half], the halves exchanged."""

    def step(values: list[Tensor]) -> Tensor:
        x = values[source]
        rows, columns = x.shape
        halves = x.view(rows, 2, columns // 2)
        return torch.cat([halves[:, 1:], torch.relu(halves[:, :1])], 1).reshape(rows, columns)

    return step
