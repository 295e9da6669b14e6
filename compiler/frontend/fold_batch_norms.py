"""Folds batch norms into the linear or convolution layers before them, so that they cost nothing.

A batch norm in evaluation multiplies and shifts channels by numbers that are known at compile time; the layer before
it can have them in its weight and bias. One that follows something else stays: two elementwise operations.
"""

from __future__ import annotations

import copy

import torch
from torch import fx, nn

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def fold_batch_norms(module: nn.Module) -> nn.Module:
    """A copy of the module with such pairs folded; the one given stays as it was.

    Pairs are found in the graph of calls. A module that cannot be traced, or that also reads a layer's weight by
    itself, is left alone: its batch norms become elementwise operations.
    """
    if not any(isinstance(part, BATCH_NORMS) for part in module.modules()):
        return module
    folded = copy.deepcopy(module)
    for first, second in _pairs(folded):
        layer, norm = folded.get_submodule(first), folded.get_submodule(second)
        if _fits(layer, norm):
            _fold(layer, norm)
            _replace(folded, second, nn.Identity())
    return folded


def _pairs(module: nn.Module) -> list[tuple[str, str]]:
    """Modules that are called once each, the second on the first's result, which nobody else reads."""
    try:
        graph = fx.Tracer().trace(module)
    except Exception:  # noqa: BLE001  (whatever a user's forward does while it is traced; torch.export judges it)
        return []
    if any(node.op == "get_attr" for node in graph.nodes):
        return []
    calls = [node for node in graph.nodes if node.op == "call_module"]
    called = [module.get_submodule(str(node.target)) for node in calls]
    pairs: list[tuple[str, str]] = []
    for node, norm in zip(calls, called, strict=True):
        source = node.args[0] if node.args else None
        if isinstance(source, fx.Node) and source.op == "call_module" and len(source.users) == 1:
            layer = module.get_submodule(str(source.target))
            if called.count(layer) == called.count(norm) == 1:  # the same module may be called in several places
                pairs.append((str(source.target), str(node.target)))
    return pairs


def _fits(layer: nn.Module, norm: nn.Module) -> bool:
    if not isinstance(layer, LAYERS) or not isinstance(norm, BATCH_NORMS):
        return False
    channels = layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels
    return norm.running_mean is not None and norm.num_features == channels


def _fold(layer: nn.Module, norm: nn.Module) -> None:
    assert isinstance(layer, LAYERS)
    assert isinstance(norm, BATCH_NORMS)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    with torch.no_grad():
        scale = torch.rsqrt(norm.running_var + norm.eps) * (norm.weight if norm.affine else 1)
        bias = -norm.running_mean if layer.bias is None else layer.bias - norm.running_mean
        shifted = bias * scale + (norm.bias if norm.affine else 0)
        weight = layer.weight * scale.view(-1, *[1] * (layer.weight.dim() - 1))
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(shifted)


def _replace(module: nn.Module, path: str, new: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(module.get_submodule(parent), name, new)
