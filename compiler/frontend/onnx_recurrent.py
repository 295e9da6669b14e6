"""LSTM, GRU and RNN of ONNX in PyTorch, step by step over the sequence's fixed length.

Gates stand in ONNX's order: i o f c of an LSTM, z r h of a GRU. Weights have a leading dim for the directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from penstock.compiler.frontend.onnx_operators import Call, Inputs, NotTranslatableError, operator, text_of

Activation = Callable[[Tensor], Tensor]
RecurrentStep = Callable[["_Weights", Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""From what the input gives at one time and the state before, to the state after, whose first part is the output."""
_LENGTHS, _PEEPHOLES = 4, 7
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class _Weights:
    """Of one direction."""

    inputs: Tensor
    state: Tensor
    biases: tuple[Tensor, ...]
    """Of the input and of the state; zero where the node has none."""
    functions: tuple[Activation, ...]
    """Of the gates, of what is new, of the cell's output."""
    peepholes: tuple[Tensor, ...] | None = None
    """How the cell enters an LSTM's gates i, o and f."""

    def from_state(self, h: Tensor) -> Tensor:
        return functional.linear(h, self.state, self.biases[1])


@operator("LSTM")
def _lstm(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    call.only("input_forget", 0)

    def step(weights: _Weights, given: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h, c = before
        gate, entering, leaving = weights.functions
        i, o, f, new = (given + weights.from_state(h)).chunk(4, -1)
        if weights.peepholes is not None:
            i, f = i + weights.peepholes[0] * c, f + weights.peepholes[2] * c
        c = gate(f) * c + gate(i) * entering(new)
        o = o if weights.peepholes is None else o + weights.peepholes[1] * c
        return gate(o) * leaving(c), c

    return _run(call, x, step, ("Sigmoid", "Tanh", "Tanh"), states=2)


@operator("GRU")
def _gru(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    after = bool(call.get("linear_before_reset", 0))

    def step(weights: _Weights, given: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (h,) = before
        gate, entering = weights.functions
        size = h.shape[-1]
        z, r = gate(
            given[..., : 2 * size]
            + functional.linear(h, weights.state[: 2 * size], weights.biases[1][: 2 * size])
        ).chunk(2, -1)  # fmt: skip
        state, bias = weights.state[2 * size :], weights.biases[1][2 * size :]
        reset = r * functional.linear(h, state, bias) if after else functional.linear(r * h, state, bias)
        return ((1 - z) * entering(given[..., 2 * size :] + reset) + z * h,)

    return _run(call, x, step, ("Sigmoid", "Tanh"), states=1)


@operator("RNN")
def _rnn(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    def step(weights: _Weights, given: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (weights.functions[0](given + weights.from_state(before[0])),)

    return _run(call, x, step, ("Tanh",), states=1)


_FUNCTIONS: dict[str, Activation] = {
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "softsign": functional.softsign,
    "softplus": functional.softplus,
}  # fmt: skip
_DEFAULTS = {"hardsigmoid": (0.2, 0.5), "leakyrelu": (0.01, 0.0), "elu": (1.0, 0.0)}
"""Alpha and beta of those that take them."""


def _functions(call: Call, usual: tuple[str, ...]) -> list[tuple[Activation, ...]]:
    """For each direction. Alphas and betas are listed for those functions that take one, in order."""
    directions, clip = len(_DIRECTIONS[_direction(call)]), call.get("clip")
    given = call.get("activations")
    names = [text_of(name).lower() for name in given] if given else [name.lower() for name in usual] * directions
    if len(names) != len(usual) * directions:
        raise NotTranslatableError(f"{len(names)} activations")
    alphas, betas = list(call.get("activation_alpha", [])), list(call.get("activation_beta", []))

    def function(name: str) -> Activation:
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        if name not in _DEFAULTS:
            raise NotTranslatableError(f"the activation {name!r}")
        alpha, beta = _DEFAULTS[name]
        alpha = alphas.pop(0) if alphas else alpha
        beta = betas.pop(0) if betas and name == "hardsigmoid" else beta
        if name == "hardsigmoid":
            return lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0)
        return lambda x: functional.elu(x, alpha) if name == "elu" else functional.leaky_relu(x, alpha)

    made = [function(name) for name in names]
    if clip is not None:
        made = [_clipped(one, clip) for one in made]
    return [tuple(made[i : i + len(usual)]) for i in range(0, len(made), len(usual))]


def _clipped(function: Activation, bound: float) -> Activation:
    """What enters a function is kept between the bound and its negative."""
    return lambda x: function(torch.clamp(x, -bound, bound))


def _direction(call: Call) -> str:
    return text_of(call.get("direction", "forward"))


def _run(call: Call, x: Inputs, step: RecurrentStep, usual: tuple[str, ...], states: int) -> tuple[Tensor, ...]:
    """All outputs over time, then the last state of each direction; with layout 1 the batch comes first everywhere."""
    batch_first, functions = bool(call.get("layout", 0)), _functions(call, usual)
    places = [i for i in range(call.inputs) if i not in call.left_out]
    given = dict(zip(places, x, strict=True))
    if batch_first:
        given |= {place: given[place].transpose(0, 1) for place in (0, 5, 6) if place in given}
    values, weights, recurrent = given[0], given[1], given[2]
    steps, batch, size = values.shape[0], values.shape[1], recurrent.shape[-1]
    if _LENGTHS in given and not np.all(call.constants.get(_LENGTHS, -1) == steps):
        raise NotTranslatableError("sequences of different lengths")
    outputs: list[Tensor] = []
    last: list[tuple[Tensor, ...]] = []
    for number, backwards in enumerate(_DIRECTIONS[_direction(call)]):
        bias = given[3][number] if 3 in given else torch.zeros(2 * weights.shape[1])
        peepholes = given[_PEEPHOLES][number].chunk(3) if _PEEPHOLES in given else None
        own = _Weights(weights[number], recurrent[number], bias.chunk(2), functions[number], peepholes)
        state = tuple(
            given[5 + part][number] if 5 + part in given else torch.zeros(batch, size) for part in range(states)
        )
        projected = functional.linear(values, own.inputs, own.biases[0])
        found: dict[int, Tensor] = {}
        for time in reversed(range(steps)) if backwards else range(steps):
            state = step(own, projected[time], state)
            found[time] = state[0]
        outputs.append(torch.stack([found[time] for time in range(steps)]))
        last.append(state)
    results = (torch.stack(outputs, 1), *(torch.stack([state[part] for state in last]) for part in range(states)))
    if not batch_first:
        return results
    return (results[0].permute(2, 0, 1, 3), *(state.transpose(0, 1) for state in results[1:]))
