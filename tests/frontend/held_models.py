"""Models that repeat a block, and models that keep something between calls."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WIDTH, PLACES, LAYERS = 8, 5, 3
Model = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Residual(nn.Module):
    """Without functions that cores round otherwise than numpy: for the bits of the SystemVerilog."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        y = self.down(torch.relu(self.up(x)))
        return x + (y if scale is None else y * scale)


class Between(nn.Module):
    """A look-up before the blocks, a product after them."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(16, WIDTH)
        self.blocks = nn.ModuleList(Residual() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 4)
        self.register_buffer("scale", torch.linspace(0.5, 1.0, WIDTH))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.rows(ids)
        for block in self.blocks:
            x = block(x, scale=self.scale)
        return self.head(x)


class Attention(nn.Module):
    """One token a call, attending to all before it: keys and values are appended to caches."""

    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.heads, self.head = heads, WIDTH // heads
        self.keys: torch.Tensor
        self.values: torch.Tensor
        self.register_buffer("keys", torch.zeros(PLACES, heads, self.head))
        self.register_buffer("values", torch.zeros(PLACES, heads, self.head))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(0, self.count, self.k(x).view(1, self.heads, self.head))
        self.values[self.count] = self.v(x).view(1, self.heads, self.head)
        mask = torch.where(torch.arange(PLACES) <= self.count, 0.0, -1e9)
        scores = self.q(x).view(self.heads, 1, self.head) @ self.keys.permute(1, 2, 0) * self.head**-0.5
        mixed = torch.softmax(scores + mask, -1) @ self.values.permute(1, 0, 2)
        self.count += 1
        return x + self.o(mixed.reshape(1, WIDTH))


class Running(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mean", torch.full((4, WIDTH), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = 0.75 * self.mean + 0.25 * self.a(x)
        return x - self.mean


class Growing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", torch.zeros(1, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = torch.cat([self.seen, self.a(x)])
        return self.seen.sum(0)


def _made(build: Any, *inputs: torch.Tensor) -> Model:
    torch.manual_seed(3)
    return build(), inputs


def between() -> Model:
    return _made(Between, torch.tensor([1, 5, 2, 15]))


def residuals() -> Model:
    return _made(lambda: nn.Sequential(*(Residual() for _ in range(LAYERS))), torch.linspace(-1, 1, 32).view(4, WIDTH))


def chain() -> Model:
    """Four layers of which each takes what the one before it answers."""
    return _made(lambda: nn.Sequential(*(Residual() for _ in range(4))), torch.linspace(-1, 1, 16).view(2, WIDTH))


class Halved(nn.Module):
    """The host computes between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Residual() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x * 0.5)
        return x


class Apart(nn.Module):
    """Its layers do not follow each other."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Residual() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([block(x) for block in self.blocks]).sum(0)


def halved() -> Model:
    return _made(Halved, torch.linspace(-1, 1, 16).view(2, WIDTH))


def apart() -> Model:
    return _made(Apart, torch.linspace(-1, 1, 16).view(2, WIDTH))


def decoder() -> Model:
    return _made(lambda: nn.Sequential(Attention(), Attention(), nn.Linear(WIDTH, 3)), torch.linspace(-1, 1, 8)[None])


def running() -> Model:
    return _made(Running, torch.linspace(-1, 1, 32).view(4, WIDTH))


def attention() -> Model:
    return _made(Attention, torch.linspace(-1, 1, 8)[None])


def growing() -> Model:
    return _made(Growing, torch.linspace(-1, 1, 8)[None])


class Summed(nn.Module):
    """What a layer adds to its rows, twice, has the same size in each layer, however small they are when they come."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.first_norm, self.first = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.first(self.first_norm(x))
        return x + self.down(torch.relu(self.up(self.norm(x))))


def summed() -> Model:
    """Tokens are a hundredth of what the layers add to them."""
    x = torch.linspace(-1, 1, 2 * WIDTH).view(2, WIDTH).sin() * 0.01
    return _made(lambda: nn.Sequential(*(Summed() for _ in range(4))), x)


class Traced(nn.Module):
    """Gives its blocks a tensor only where it is traced, as libraries do with a mask that they see is of ones."""

    def __init__(self, of_input: bool) -> None:
        super().__init__()
        self.blocks, self.of_input = nn.ModuleList(Residual() for _ in range(3)), of_input

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = None
        if torch.compiler.is_compiling():
            scale = (x.abs() + 1).sign() if self.of_input else torch.ones(x.shape)
        for block in self.blocks:
            x = block(x, scale)
        return x


def traced() -> Model:
    return _made(lambda: Traced(False), torch.linspace(-1, 1, 16).view(2, WIDTH))


def traced_of_input() -> Model:
    return _made(lambda: Traced(True), torch.linspace(-1, 1, 16).view(2, WIDTH))


class Placed(nn.Module):
    """Gives its blocks whole numbers, as libraries do with positions; most do not read them."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(PlacedBlock(reads) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = (x > 0).long().sum(-1)
        for block in self.blocks:
            x = block(x, places=places)
        return x


class PlacedBlock(nn.Module):
    last: torch.Tensor

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.residual, self.reads = Residual(), reads
        self.register_buffer("last", torch.zeros(2, WIDTH))

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        x = x + self.last
        self.last.copy_(x)
        return self.residual(x, places[..., None] + 1) if self.reads else self.residual(x)


def placed() -> Model:
    return _made(lambda: Placed(reads=False), torch.linspace(-1, 1, 16).view(2, WIDTH))


def placed_and_read() -> Model:
    return _made(lambda: Placed(reads=True), torch.linspace(-1, 1, 16).view(2, WIDTH))


class Twice(nn.Module):
    """Its layers cannot share: the first is called again."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Residual() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks[0](self.blocks[1](self.blocks[0](x)))


class Sharpened(Residual):
    """A setting that its text does not show."""

    def __init__(self, power: float) -> None:
        super().__init__()
        self.power = power

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        return super().forward(x) * self.power


def twice() -> Model:
    return _made(Twice, torch.ones(4, WIDTH))


def unlike() -> Model:
    return _made(lambda: nn.Sequential(Sharpened(1.0), Sharpened(2.0)), torch.ones(4, WIDTH))


def shapes() -> Model:
    return _made(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)), torch.ones(4, WIDTH))
