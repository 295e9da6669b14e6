"""MLPs, autoencoders, flows and sequences in plain PyTorch. Each function is a model: `plain_models.py:NAME`."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.model_corpus.common import Model, fixed, mlp, noise

# ---- MLPs of the tools for physics and for quantised networks


def hls4ml_jet_tagging() -> Model:
    return fixed(nn.Sequential(mlp(16, 64, 32, 32, 5), nn.Softmax(-1))), (noise(1, 16),)


def hls4ml_jet_tagging_batch_norm() -> Model:
    return fixed(mlp(16, 64, 32, 32, 5, norm=True)), (noise(1, 16),)


def hls4ml_anomaly_autoencoder() -> Model:
    return fixed(mlp(57, 25, 15, 10, 15, 25, 57)), (noise(1, 57),)


def finn_tfc() -> Model:
    return fixed(mlp(784, 64, 64, 64, 10)), (noise(1, 784),)


def finn_tfc_batch_norm() -> Model:
    return fixed(mlp(784, 64, 64, 64, 10, norm=True, act=nn.Hardtanh)), (noise(1, 784),)


def finn_sfc_slice() -> Model:
    return fixed(mlp(256, 256, 256, 10)), (noise(1, 256),)


def mlp_tanh_sigmoid() -> Model:
    return fixed(nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 6), nn.Sigmoid())), (noise(4, 12),)


def mlp_leaky_elu() -> Model:
    layers = (nn.Linear(12, 24), nn.LeakyReLU(0.1), nn.Linear(24, 24), nn.ELU(), nn.Linear(24, 6), nn.Hardswish())
    return fixed(nn.Sequential(*layers)), (noise(4, 12),)


def mlp_mish_softplus() -> Model:
    layers = (nn.Linear(12, 24), nn.Mish(), nn.Linear(24, 24), nn.Softplus(), nn.Linear(24, 6), nn.LogSoftmax(-1))
    return fixed(nn.Sequential(*layers)), (noise(4, 12),)


def residual_mlp() -> Model:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.down(F.silu(self.up(self.norm(x))))

    return fixed(nn.Sequential(Residual(), Residual(), nn.Linear(16, 4))), (noise(4, 16),)


# ---- autoencoders, variational and flow


def autoencoder() -> Model:
    return fixed(mlp(64, 32, 8, 32, 64)), (noise(1, 64),)


def vae() -> Model:
    class Vae(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.mean, self.log_var = nn.Linear(32, 24), nn.Linear(24, 4), nn.Linear(24, 4)
            self.decoder = mlp(4, 24, 32)

        def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            hidden = F.relu(self.encoder(x))
            mean, log_var = self.mean(hidden), self.log_var(hidden)
            z = mean + noise * torch.exp(0.5 * log_var)
            return torch.sigmoid(self.decoder(z)), mean, log_var

    return fixed(Vae()), (noise(2, 32), noise(2, 4, seed=2))


def normalising_flow() -> Model:
    """Affine coupling layers as in RealNVP, with the log-determinant."""

    class Coupling(nn.Module):
        def __init__(self, flip: bool) -> None:
            super().__init__()
            self.net, self.flip = mlp(4, 16, 8, act=nn.Tanh), flip

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            a, b = x.chunk(2, dim=-1)
            a, b = (b, a) if self.flip else (a, b)
            log_scale, shift = self.net(a).chunk(2, dim=-1)
            log_scale = torch.tanh(log_scale)
            b = b * torch.exp(log_scale) + shift
            joined = torch.cat((b, a) if self.flip else (a, b), dim=-1)
            return joined, log_scale.sum(-1)

    class Flow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Coupling(bool(i % 2)) for i in range(3)])

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            total = x.new_zeros(x.shape[0])
            for layer in self.layers:
                x, log_det = layer(x)
                total = total + log_det
            return x, total

    return fixed(Flow()), (noise(4, 8),)


# ---- sequences by hand


def lstm_cell_loop() -> Model:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.out = nn.LSTMCell(6, 12), nn.Linear(12, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = x.new_zeros(x.shape[1], 12)
            c = x.new_zeros(x.shape[1], 12)
            for step in range(x.shape[0]):
                h, c = self.cell(x[step], (h, c))
            return self.out(h)

    return fixed(Loop()), (noise(4, 1, 6),)


def gru_classifier() -> Model:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.out = nn.GRU(6, 10, batch_first=True), nn.Linear(10, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            values, _ = self.gru(x)
            return self.out(values[:, -1])

    return fixed(Classifier()), (noise(1, 5, 6),)


def text_classifier() -> Model:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = nn.Embedding(40, 12), mlp(12, 16, 4)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.out(self.table(tokens).mean(dim=1))

    return fixed(Classifier()), (torch.randint(0, 40, (2, 7), generator=torch.Generator().manual_seed(1)),)


def attention_pooling() -> Model:
    class Pooling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = nn.Parameter(torch.randn(1, 12)), nn.Linear(6, 12), nn.Linear(6, 12)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = self.query @ self.key(x).transpose(1, 2) / 12**0.5
            return (torch.softmax(scores, dim=-1) @ self.value(x)).squeeze(1)

    return fixed(Pooling()), (noise(2, 8, 6),)


def mixture_of_experts() -> Model:
    """Dense: every expert runs, the gate weighs."""

    class Mixture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.experts = nn.Linear(8, 3), nn.ModuleList([mlp(8, 16, 4) for _ in range(3)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weights = torch.softmax(self.gate(x), dim=-1)
            values = torch.stack([expert(x) for expert in self.experts], dim=1)
            return (weights.unsqueeze(-1) * values).sum(1)

    return fixed(Mixture()), (noise(4, 8),)


def patch_embedding_vit() -> Model:
    """A ViT whose patches are cut by reshapes, without a convolution."""

    class Vit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(3 * 16, 16)
            self.position = nn.Parameter(torch.randn(1, 4, 16) * 0.02)
            self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu")
            self.head = nn.Linear(16, 4)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            patches = image.reshape(-1, 3, 2, 4, 2, 4).permute(0, 2, 4, 1, 3, 5).reshape(-1, 4, 48)
            return self.head(self.block(self.embed(patches) + self.position).mean(1))

    return fixed(Vit()), (noise(1, 3, 8, 8),)


def physics_informed() -> Model:
    """Inputs scaled by buffers, tanh layers, a skip of the input."""

    class Net(nn.Module):
        mean: torch.Tensor
        std: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.tensor([0.5, -0.5]))
            self.register_buffer("std", torch.tensor([2.0, 3.0]))
            self.net = mlp(2, 20, 20, 1, act=nn.Tanh)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scaled = (x - self.mean) / self.std
            return self.net(scaled) * scaled[:, :1] + torch.log1p(x[:, 1:].abs())

    return fixed(Net()), (noise(8, 2),)


def siamese() -> Model:
    class Siamese(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = mlp(16, 24, 8)

        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return F.cosine_similarity(self.body(a), self.body(b), dim=-1)

    return fixed(Siamese()), (noise(4, 16), noise(4, 16, seed=2))
