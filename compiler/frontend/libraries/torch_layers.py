"""`torch.nn:LSTM?input_size=8&hidden_size=16`: one of PyTorch's own layers, by its class and its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.frontend.libraries.build import Recipe
from penstock.compiler.frontend.libraries.called import Arguments
from penstock.compiler.frontend.libraries.examples import noise, numbers
from penstock.compiler.frontend.libraries.values import (
    bad_option,
    input_option,
    known_only,
    simple_defaults,
    size_option,
)
from penstock.compiler.reference import LibraryReference

_SEQ = 8
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def recipe(reference: LibraryReference, options: dict[str, Any]) -> Recipe:
    layer = _layer(reference)
    known = simple_defaults(layer)
    if layer in (nn.RNN, nn.LSTM, nn.GRU):  # their parameters hide behind *args
        known |= {"input_size": "(needed)", "hidden_size": "(needed)", "num_layers": 1, "bias": True,
                  "batch_first": False, "dropout": 0.0, "bidirectional": False}  # fmt: skip
        known |= {"proj_size": 0} if layer is nn.LSTM else {"nonlinearity": "tanh"} if layer is nn.RNN else {}
    known_only(reference, options, known)
    return Recipe(lambda: layer(**options), lambda module: _arguments(reference, module))


def _layer(reference: LibraryReference) -> type[nn.Module]:
    layers = {
        name: value for name, value in vars(nn).items()
        if inspect.isclass(value) and issubclass(value, nn.Module) and not name.endswith("Loss")
    }  # fmt: skip
    found = layers.get(reference.model)
    if found is None or issubclass(found, _CONTAINERS) or found is nn.Module:
        raise PenstockError(
            code="unknown-model", what=f"torch.nn has no layer {reference.model!r}", where=str(reference),
            hint=nearest(reference.model, layers, "name a layer such as Linear, LSTM or TransformerEncoderLayer"),
        )  # fmt: skip
    return found


def _arguments(reference: LibraryReference, module: nn.Module) -> Arguments:
    batch, seq = size_option(reference, "batch", 1), size_option(reference, "seq", _SEQ)
    shape = input_option(reference)
    if shape is not None:
        return Arguments((noise(*shape),))
    maker = next((make for kind, make in _TAKES.items() if isinstance(module, kind)), None)
    if maker is None:
        raise bad_option(
            reference, f"{reference.model} does not say what shape it takes", "give it: input=4,16 (all dims)"
        )
    return Arguments(maker(module, batch, seq))


def _sequence(module: Any, batch: int, seq: int, width: int, seed: int = 1) -> torch.Tensor:
    first = getattr(module, "batch_first", False)
    return noise(*((batch, seq) if first else (seq, batch)), width, seed=seed)


def _transformer_width(module: Any) -> int:
    return int(module.d_model if isinstance(module, nn.Transformer) else module.self_attn.embed_dim)


def _encoder(m: Any, batch: int, seq: int) -> tuple[torch.Tensor, ...]:
    return (_sequence(m.self_attn, batch, seq, _transformer_width(m)),)


def _decoder(m: Any, batch: int, seq: int) -> tuple[torch.Tensor, ...]:
    first = m.self_attn if isinstance(m, nn.TransformerDecoderLayer) else m
    width = _transformer_width(m)
    return tuple(_sequence(first, batch, seq, width, seed) for seed in (1, 2))


def _attention(m: Any, batch: int, seq: int) -> tuple[torch.Tensor, ...]:
    widths = (m.embed_dim, m.kdim, m.vdim)
    return tuple(_sequence(m, batch, seq, width, seed) for seed, width in enumerate(widths, start=1))


_TAKES: dict[type[nn.Module], Callable[[Any, int, int], tuple[torch.Tensor, ...]]] = {
    nn.LSTMCell: lambda m, b, _: (noise(b, m.input_size),),
    nn.RNNCellBase: lambda m, b, _: (noise(b, m.input_size),),
    nn.RNNBase: lambda m, b, s: (_sequence(m, b, s, m.input_size),),
    nn.MultiheadAttention: _attention,
    nn.TransformerEncoderLayer: _encoder,
    nn.TransformerDecoderLayer: _decoder,
    nn.Transformer: _decoder,
    nn.Embedding: lambda m, b, s: (numbers(0, m.num_embeddings, b, s),),
    nn.Linear: lambda m, b, _: (noise(b, m.in_features),),
    nn.Bilinear: lambda m, b, _: (noise(b, m.in1_features), noise(b, m.in2_features, seed=2)),
    nn.LayerNorm: lambda m, b, s: (noise(b, s, *m.normalized_shape),),
    nn.RMSNorm: lambda m, b, s: (noise(b, s, *m.normalized_shape),),
    nn.BatchNorm1d: lambda m, b, _: (noise(b, m.num_features),),
    nn.GroupNorm: lambda m, b, s: (noise(b, m.num_channels, s),),
}
"""What layers take, by their own attributes; the first kind that fits."""
