"""Models with an operation of the host in their middle, for the tests of the front end and of packages."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.frontend.models import Lambda, make, seeded


def sorted_in_the_middle() -> nn.Module:
    return Lambda(lambda m, x: m.second(m.first(x).sort(-1)[0]), first=nn.Linear(8, 6), second=nn.Linear(6, 4))


def sorted_stably() -> nn.Module:
    """As ONNX's TopK is written."""
    return Lambda(
        lambda m, x: m.second(torch.sort(m.first(x), dim=-1, stable=True, descending=True)[0][:, :3]),
        first=nn.Linear(8, 6), second=nn.Linear(3, 4),
    )  # fmt: skip


def twice() -> nn.Module:
    """Two turns, with light operations on either side, and what is behind them in the results."""

    def forward(m: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        best = torch.relu(m.first(x)).topk(3, -1)[0]
        found = m.second(best * 2.0).sort(-1)[0]
        y = m.third(torch.relu(found)) + 1.0
        return y.argmax(-1), y

    return Lambda(forward, first=nn.Linear(8, 6), second=nn.Linear(3, 5), third=nn.Linear(5, 4))


def routed() -> nn.Module:
    """Rows go to an expert each, by a look-up of its weights; the input itself goes around the host."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        chosen = m.router(x).argmax(-1)
        return m.out(m.experts(chosen) * x) + x

    return Lambda(forward, router=nn.Linear(8, 3), experts=nn.Embedding(3, 8), out=nn.Linear(8, 8))


def retrieved() -> nn.Module:
    """A computed index, what it looks up beside what it was made of, and a constant that the host reads."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        key = m.key(x)
        near = (key @ m.table.T).argmax(-1)
        return m.out(torch.cat([m.table.index_select(0, near), key], -1))

    return Lambda(forward, key=nn.Linear(8, 5), out=nn.Linear(10, 3), table=nn.Parameter(seeded((7, 5), 3)))


def put_back() -> nn.Module:
    """As SegNet: maxima go back to where they were, which the host does; on the way they only get another shape.

    The input is put there too, in another shape as well.
    """

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        found, places = functional.max_pool2d(m.first(x[None, None]), 2, return_indices=True)
        back = functional.max_unpool2d(found, places, [2, 2])
        rows = x.reshape(8, 4)[places.reshape(-1) // 4]
        return m.second(back) + m.third(rows).mean()

    return Lambda(
        forward, first=nn.Conv2d(1, 2, 3, padding=1), second=nn.Conv2d(2, 1, 3, padding=1), third=nn.Linear(4, 2)
    )  # fmt: skip


def put_back_in_a_row() -> nn.Module:
    """The same of signals, whose maxima PyTorch looks for in frames one row high."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        found, places = functional.max_pool1d(m.first(x), 2, return_indices=True)
        return m.second(functional.max_unpool1d(found, places, [2]))

    return Lambda(forward, first=nn.Linear(8, 6), second=nn.Linear(6, 3))


def masked() -> nn.Module:
    """A condition that both sides need: only floats cross, so that the host makes it."""

    def forward(m: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = m.first(x)
        keep = y > 0.1
        ordered = y.sort(-1)[0]
        return m.second(torch.where(keep, ordered, y)), keep

    return Lambda(forward, first=nn.Linear(8, 6), second=nn.Linear(6, 4))


def routed_rows() -> tuple[nn.Module, torch.Tensor]:
    return make(routed), seeded((4, 8))


def two_turns() -> tuple[nn.Module, torch.Tensor]:
    return make(twice), seeded((4, 8))
