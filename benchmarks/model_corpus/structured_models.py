"""Recommenders, sets, graphs and function networks in plain PyTorch. Each function is a model."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.model_corpus.common import Model, fixed, mlp, noise

# ---- recommenders, sets and graphs


def dlrm() -> Model:
    """Two tables, a bottom MLP, pairwise products, a top MLP."""

    class Dlrm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bottom, self.tables = mlp(13, 32, 8), nn.ModuleList([nn.Embedding(50, 8) for _ in range(2)])
            self.top = mlp(8 + 3, 16, 1)

        def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
            bottom = F.relu(self.bottom(dense))
            looked = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
            features = torch.stack([bottom, *looked], dim=1)
            products = torch.bmm(features, features.transpose(1, 2))
            pairs = torch.stack([products[:, 1, 0], products[:, 2, 0], products[:, 2, 1]], dim=1)
            return torch.sigmoid(self.top(torch.cat([bottom, pairs], dim=1)))

    ids = torch.randint(0, 50, (4, 2), generator=torch.Generator().manual_seed(1))
    return fixed(Dlrm()), (noise(4, 13), ids)


def deep_sets() -> Model:
    class DeepSets(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.phi, self.rho = mlp(3, 32, 32), mlp(32, 32, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rho(F.relu(self.phi(x)).mean(dim=1))

    return fixed(DeepSets()), (noise(2, 8, 3),)


def deep_sets_max() -> Model:
    class DeepSets(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.phi, self.rho = mlp(3, 16, 16), mlp(16, 16, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rho(self.phi(x).amax(dim=1))

    return fixed(DeepSets()), (noise(2, 8, 3),)


def gcn() -> Model:
    """Two graph convolutions by a normalised adjacency matrix."""

    class Gcn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

        def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
            degree = adjacency.sum(-1, keepdim=True)
            a = adjacency / degree
            return F.log_softmax(a @ self.second(F.relu(a @ self.first(x))), dim=-1)

    ones = (noise(10, 10, seed=2) > 0.5).float() + torch.eye(10)
    return fixed(Gcn()), (noise(10, 8), ones.clamp(max=1))


def message_passing() -> Model:
    """An interaction network: features of edges by matrices of senders and receivers, as in particle physics."""

    class Interaction(nn.Module):
        send: torch.Tensor
        receive: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.edge, self.node = mlp(8, 16, 6), mlp(10, 16, 4)
            send, receive = torch.zeros(12, 4), torch.zeros(12, 4)
            for row, (i, j) in enumerate((i, j) for i in range(4) for j in range(4) if i != j):
                send[row, i], receive[row, j] = 1, 1
            self.register_buffer("send", send)
            self.register_buffer("receive", receive)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            edges = self.edge(torch.cat([self.send @ x, self.receive @ x], dim=-1))
            return self.node(torch.cat([x, self.receive.T @ edges], dim=-1))

    return fixed(Interaction()), (noise(4, 4),)


def gat() -> Model:
    """Graph attention, dense: scores of pairs, a mask, softmax."""

    class Gat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(8, 12, bias=False)
            self.source, self.target = nn.Linear(12, 1, bias=False), nn.Linear(12, 1, bias=False)

        def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
            h = self.project(x)
            scores = F.leaky_relu(self.source(h) + self.target(h).T, 0.2)
            scores = scores.masked_fill(adjacency == 0, -1e9)
            return F.elu(torch.softmax(scores, dim=-1) @ h)

    ones = ((noise(6, 6, seed=2) > 0).float() + torch.eye(6)).clamp(max=1)
    return fixed(Gat()), (noise(6, 8), ones)


# ---- function networks


def kan() -> Model:
    """A Kolmogorov-Arnold layer pair with radial basis functions on a grid and a SiLU base."""

    class KanLayer(nn.Module):
        centres: torch.Tensor

        def __init__(self, inputs: int, outputs: int, grid: int = 5) -> None:
            super().__init__()
            self.base = nn.Linear(inputs, outputs, bias=False)
            self.spline = nn.Linear(inputs * grid, outputs, bias=False)
            self.register_buffer("centres", torch.linspace(-2, 2, grid))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            basis = torch.exp(-(((x.unsqueeze(-1) - self.centres) / 1.0) ** 2))
            return self.base(F.silu(x)) + self.spline(basis.flatten(1))

    return fixed(nn.Sequential(KanLayer(4, 8), KanLayer(8, 3))), (noise(4, 4),)


def kan_chebyshev() -> Model:
    """Chebyshev polynomials by recurrence."""

    class Chebyshev(nn.Module):
        def __init__(self, inputs: int, outputs: int, degree: int = 4) -> None:
            super().__init__()
            self.degree, self.weight = degree, nn.Parameter(torch.randn(inputs, outputs, degree + 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.tanh(x)
            terms = [torch.ones_like(x), x]
            for _ in range(2, self.degree + 1):
                terms.append(2 * x * terms[-1] - terms[-2])
            return torch.einsum("bid,iod->bo", torch.stack(terms, dim=-1), self.weight)

    return fixed(nn.Sequential(Chebyshev(4, 6), nn.LayerNorm(6), Chebyshev(6, 3))), (noise(4, 4),)


def rbf() -> Model:
    class Rbf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.centres, self.log_width = nn.Parameter(torch.randn(12, 4)), nn.Parameter(torch.zeros(12))
            self.out = nn.Linear(12, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            distance = (x[:, None, :] - self.centres[None]).pow(2).sum(-1)
            return self.out(torch.exp(-distance * torch.exp(self.log_width)))

    return fixed(Rbf()), (noise(4, 4),)


def siren() -> Model:
    class Sine(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x)

    return fixed(nn.Sequential(nn.Linear(2, 16), Sine(), nn.Linear(16, 16), Sine(), nn.Linear(16, 1))), (noise(8, 2),)


def fourier_features() -> Model:
    class Features(nn.Module):
        frequencies: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("frequencies", torch.linspace(0.5, 4, 8))
            self.net = mlp(32, 16, 1, act=nn.GELU)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            angles = (x.unsqueeze(-1) * self.frequencies).flatten(1)
            return self.net(torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1))

    return fixed(Features()), (noise(4, 2),)
