"""Finds the layers of one form that a model repeats, and sees how it calls each of them."""

# numpy's and torch's functions have few types
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.frontend.export import run_eagerly, state_kept
from penstock.compiler.frontend.loaded import LoadedModel

MOST_SAID = 400
_PLAIN = (bool, int, float, str, type(None))
_HINT = "name a ModuleList or Sequential of equal modules behind the model: MODEL#path.of.layers, or MODEL# alone"


@dataclass(frozen=True)
class LayerCall:
    """How the model called one layer: its tensors, and all else that it passed, which is the same for all layers."""

    tensors: tuple[torch.Tensor, ...]
    form: pytree.TreeSpec
    others: tuple[Any, ...]
    """Every leaf of the arguments; `_TENSOR` where a tensor stands."""
    outputs: tuple[Any, ...]
    """Every leaf of what it answered."""
    answer: pytree.TreeSpec

    def arguments(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`args` and `kwargs` of the layer's forward with these tensors."""
        waiting = iter(tensors)
        leaves = [
            next(waiting) if one is _TENSOR else one.value if isinstance(one, _Unread) else one for one in self.others
        ]
        return pytree.tree_unflatten(leaves, self.form)

    def without(self, unread: Collection[int]) -> LayerCall:
        """The same without these of its tensors, which the layer is given and does not read."""
        places = [place for place, one in enumerate(self.others) if one is _TENSOR]
        left_out = {places[n]: _Unread(self.tensors[n]) for n in unread}
        others = tuple(left_out.get(place, one) for place, one in enumerate(self.others))
        return replace(self, tensors=tuple(x for n, x in enumerate(self.tensors) if n not in unread), others=others)

    @property
    def shapes(self) -> list[tuple[tuple[int, ...], torch.dtype]]:
        return [(tuple(x.shape), x.dtype) for x in self.tensors]


_Row = list[tuple[str, nn.Module]]


class _Tensor:
    """Stands where a tensor was passed."""


_TENSOR = _Tensor()


@dataclass(frozen=True)
class _Unread:
    """Stands where a tensor was passed that the layer does not read, as positions that were looked up before it."""

    value: torch.Tensor


class _Reads(TorchDispatchMode):
    """Sees which of some tensors operations take."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.unread = {id(x): n for n, x in enumerate(tensors)}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for x in pytree.tree_leaves((args, kwargs)):
            self.unread.pop(id(x), None)
        return func(*args, **(kwargs or {}))


class OneLayer(nn.Module):
    """A layer as a model of its own: tensors in, tensors out."""

    def __init__(self, layer: nn.Module, call: LayerCall) -> None:
        super().__init__()
        self.layer = layer
        self.call = call

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = self.call.arguments(tensors)
        return tuple(x for x in pytree.tree_leaves(self.layer(*args, **kwargs)) if x is not None)


@dataclass(frozen=True)
class RepeatedLayers:
    """Modules of one form, in the order in which the model calls them."""

    path: str
    names: tuple[str, ...]
    modules: tuple[nn.Module, ...]
    calls: tuple[LayerCall, ...]

    def model_of(self, number: int, model: LoadedModel) -> LoadedModel:
        """One layer as a model with the example inputs that the whole gives it."""
        call = self.calls[number]
        single = OneLayer(self.modules[number], call).eval()
        return replace(model, module=single, example_inputs=call.tensors, evaluation=None, typical=())


def find_layers(model: LoadedModel, path: str) -> tuple[RepeatedLayers, tuple[torch.Tensor, ...]]:
    """The layers at `path`, or where that is empty the largest repetition of the model; and the model's answers."""
    layers, outputs = called_layers(_repetition(model, path), path, model)
    _check_calls(layers, model)
    layers = _without_unread(layers)
    _check_form(layers, model)
    return layers, outputs


def _without_unread(layers: RepeatedLayers) -> RepeatedLayers:
    """Without whole numbers that the layers do not read: an accelerator does not take such.

    The first layer says so for all: others that read more would give other answers than it with their weights.
    """
    first = layers.calls[0]
    if all(x.dtype == torch.float32 for x in first.tensors):
        return layers
    args, kwargs = first.arguments(first.tensors)
    with torch.no_grad(), state_kept(layers.modules[0]), _Reads(first.tensors) as reads:
        answers = {id(x) for x in pytree.tree_leaves(layers.modules[0](*args, **kwargs))}
    unread = {
        n for x, n in reads.unread.items() if first.tensors[n].dtype != torch.float32 and x not in answers
    }  # fmt: skip
    return replace(layers, calls=tuple(call.without(unread) for call in layers.calls))


def named_layers(model: LoadedModel, names: Sequence[str]) -> tuple[RepeatedLayers, tuple[torch.Tensor, ...]]:
    """The layers of these names, whatever each of them is; and the model's answers."""
    modules = {name: module for name, module in model.module.named_modules() if name}
    for name in names:
        if name not in modules:
            known = ", ".join(modules) or "none"
            raise PenstockError(
                code="no-layers", what=f"the model has no layer {name!r}", where=model.reference,
                limit=f"it has {known if len(known) <= MOST_SAID else known[:MOST_SAID] + '...'}",
                hint=nearest(name, modules, "name one of these in @implements"),
            )  # fmt: skip
        if outer := next((one for one in names if name.startswith(f"{one}.")), None):
            raise PenstockError(
                code="no-layers", what=f"layer {name!r} is a part of {outer!r}", where=model.reference,
                hint="name only one of them in @implements",
            )  # fmt: skip
    layers, outputs = called_layers([(name, modules[name]) for name in names], "", model)
    for name, call in zip(layers.names, layers.calls, strict=True):
        _check_values(name, call, model)
    return layers, outputs


def called_layers(found: _Row, path: str, model: LoadedModel) -> tuple[RepeatedLayers, tuple[torch.Tensor, ...]]:
    """Modules in the order of their calls, of which each has one, as the model's example inputs run."""
    names, modules = zip(*found, strict=True)
    seen: dict[str, list[LayerCall]] = {name: [] for name in names}
    order: list[str] = []
    hooks = [module.register_forward_hook(_recorder(name, seen, order), with_kwargs=True) for name, module in found]
    try:
        outputs = run_eagerly(model, model.example_inputs)
    finally:
        for hook in hooks:
            hook.remove()
    for name in names:
        if len(seen[name]) != 1:
            raise _refused(model, name, f"the model calls it {len(seen[name])} times", "each layer is called once")
    ordered = sorted(zip(names, modules, strict=True), key=lambda pair: order.index(pair[0]))
    layers = RepeatedLayers(
        path or names[0].rpartition(".")[0], tuple(name for name, _ in ordered), tuple(m for _, m in ordered),
        tuple(seen[name][0] for name, _ in ordered),
    )  # fmt: skip
    return layers, outputs


def _repetition(model: LoadedModel, path: str) -> _Row:
    """The longest row of modules of one form at a path; without one, the row with the most weights anywhere."""
    modules = dict(model.module.named_modules())
    rows: dict[str, _Row] = {
        name: max(_rows(name, module), key=_weight, default=_Row())
        for name, module in modules.items() if isinstance(module, nn.ModuleList | nn.Sequential)
    }  # fmt: skip
    if path:
        if path not in modules:
            known = [name for name in rows if name]
            close = nearest(path, known, _HINT) if known else _HINT
            raise PenstockError(
                code="no-layers", what=f"the model has no module {path!r}", where=model.reference,
                limit="it repeats modules in " + (", ".join(name for name, row in rows.items() if row) or "no list"),
                hint=close,
            )  # fmt: skip
        found = rows.get(path, [])
    else:
        found = max(rows.values(), key=_weight, default=_Row())
    if len(found) < 2:
        raise PenstockError(
            code="no-layers", what=f"nothing repeats in {path or 'the model'}", where=model.reference,
            limit="at least two modules of one class, with the same settings and shapes of weights, in a ModuleList or "
            "Sequential",
            hint=_HINT,
        )  # fmt: skip
    return found


def _rows(path: str, container: nn.Module) -> list[_Row]:
    children = [(f"{path}.{name}" if path else name, child) for name, child in container.named_children()]
    rows = [list(row) for _, row in groupby(children, key=lambda pair: _form(pair[1]))]
    return [row for row in rows if len(row) > 1 and any(True for _ in row[0][1].parameters())]


def _form(module: nn.Module) -> tuple[Any, ...]:
    state = tuple((name, tuple(x.shape), x.dtype) for name, x in module.state_dict().items())
    return type(module), repr(module), state


def _weight(row: _Row) -> int:
    return sum(p.numel() for _, module in row for p in module.parameters())


def _recorder(name: str, seen: dict[str, list[LayerCall]], order: list[str]) -> Any:
    def record(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None:
        leaves, form = pytree.tree_flatten((args, kwargs))
        answers, answer = pytree.tree_flatten(returned)
        tensors = tuple(x.detach().clone() for x in leaves if isinstance(x, torch.Tensor))
        others = tuple(_TENSOR if isinstance(x, torch.Tensor) else x for x in leaves)
        outputs = tuple(x.detach().clone() if isinstance(x, torch.Tensor) else x for x in answers)
        seen[name].append(LayerCall(tensors, form, others, outputs, answer))
        order.append(name)

    return record


def _check_calls(layers: RepeatedLayers, model: LoadedModel) -> None:
    """All are called alike, with tensors and plain values."""
    first = layers.calls[0]
    for name, call in zip(layers.names, layers.calls, strict=True):
        _check_values(name, call, model)
        alike = call.form == first.form and call.answer == first.answer and call.others == first.others
        if not alike or call.shapes != first.shapes:
            raise _refused(
                model, name, f"it is called otherwise than {layers.names[0]}",
                "equal arguments but for the numbers in tensors, and equal shapes",
            )  # fmt: skip


def _check_values(name: str, call: LayerCall, model: LoadedModel) -> None:
    odd = next((x for x in call.others if x is not _TENSOR and not isinstance(x, _PLAIN)), None)
    if odd is not None:
        raise _refused(model, name, f"it is given a {type(odd).__name__}", "tensors, numbers, texts and None")
    if not call.outputs or not all(isinstance(x, torch.Tensor) for x in call.outputs if x is not None):
        raise _refused(model, name, "it returns something else than tensors", "tensors, or tuples of them")


def _check_form(layers: RepeatedLayers, model: LoadedModel) -> None:
    """The first layer with another's weights answers as that other: what their settings say differs in nothing."""
    if not model.has_weights:
        return
    stand_in = copy.deepcopy(layers.modules[0])
    for name, module, call in list(zip(layers.names, layers.modules, layers.calls, strict=True))[1:]:
        args, kwargs = call.arguments(call.tensors)
        with torch.no_grad():
            for mine, theirs in zip(_tensors(stand_in), _tensors(module), strict=True):
                mine.copy_(theirs)
            answers = [x for x in pytree.tree_leaves(stand_in(*args, **kwargs)) if x is not None]
        wanted = [x for x in call.outputs if x is not None]
        pairs = zip(answers, wanted, strict=True)
        if not all(torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True) for a, b in pairs):
            raise _refused(
                model, name, f"with its weights {layers.names[0]} gives other answers",
                "layers that share an accelerator differ in their weights alone",
            )  # fmt: skip


def _tensors(module: nn.Module) -> list[torch.Tensor]:
    return [*module.parameters(), *module.buffers()]


@contextmanager
def calls_replaced(layers: RepeatedLayers, call_layer: Any) -> Generator[None]:
    """While it lasts each layer's forward is `call_layer(tensors, number)`, which gives its output tensors.

    Behind the tensors that it took come those that it is given now where it took none, as a mask of nothing but ones.
    """
    for number, (module, call) in enumerate(zip(layers.modules, layers.calls, strict=True)):

        def forward(*args: Any, number: int = number, call: LayerCall = call, **kwargs: Any) -> Any:
            leaves = pytree.tree_leaves((args, kwargs))
            given = (
                list(zip(leaves, call.others, strict=True))
                if len(leaves) == len(call.others)
                else [(x, _TENSOR) for x in leaves]
            )
            read = [(x, own is _TENSOR) for x, own in given if not isinstance(own, _Unread)]
            sides = [[x for x, own in read if own is side] for side in (True, False)]
            made = iter(call_layer([x for side in sides for x in side if isinstance(x, torch.Tensor)], number))
            return pytree.tree_unflatten([None if x is None else next(made) for x in call.outputs], call.answer)

        module.forward = forward
    try:
        yield
    finally:
        for module in layers.modules:
            del module.forward


def _refused(model: LoadedModel, layer: str, what: str, limit: str) -> PenstockError:
    return PenstockError(
        code="layers-differ", what=f"layer {layer!r} cannot be a call of the accelerator: {what}",
        where=model.reference, limit=limit, hint="compile it without #, or the layers that are alike on their own",
    )  # fmt: skip
