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

from penstock.compiler.frontend.onnx_operators import Call, Inputs, NotTranslatableError, operator

RecurrentStep = Callable[["_Weights", Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""From what the input gives at one time and the state before, to the state after, whose first part is the output."""
_LENGTHS, _PEEPHOLES = 4, 7
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class _Weights:
    """Of one direction; biases are zero where the node has none."""

    inputs: Tensor
    state: Tensor
    input_bias: Tensor
    state_bias: Tensor

    def from_state(self, h: Tensor) -> Tensor:
        return functional.linear(h, self.state, self.state_bias)


@operator("LSTM")
def _lstm(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    call.only("input_forget", 0)
    _activations(call, ["Sigmoid", "Tanh", "Tanh"])

    def step(weights: _Weights, given: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h, c = before
        i, o, f, new = (given + weights.from_state(h)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(new)
        return torch.sigmoid(o) * torch.tanh(c), c

    return _run(call, x, step, states=2)


@operator("GRU")
def _gru(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    _activations(call, ["Sigmoid", "Tanh"])
    after = bool(call.get("linear_before_reset", 0))

    def step(weights: _Weights, given: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (h,) = before
        size = h.shape[-1]
        z, r = torch.sigmoid(
            given[..., : 2 * size]
            + functional.linear(h, weights.state[: 2 * size], weights.state_bias[: 2 * size])
        ).chunk(2, -1)  # fmt: skip
        state, bias = weights.state[2 * size :], weights.state_bias[2 * size :]
        reset = r * functional.linear(h, state, bias) if after else functional.linear(r * h, state, bias)
        return ((1 - z) * torch.tanh(given[..., 2 * size :] + reset) + z * h,)

    return _run(call, x, step, states=1)


@operator("RNN")
def _rnn(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    function = torch.relu if _activations(call, ["Tanh"], ["Relu"]) == ["Relu"] else torch.tanh
    return _run(call, x, lambda weights, given, before: (function(given + weights.from_state(before[0])),), states=1)


def _activations(call: Call, *known: list[str]) -> list[str]:
    """Those of one direction; both directions have the same."""
    directions = len(_DIRECTIONS[_direction(call)])
    given = call.get("activations")
    names = [x.decode() if isinstance(x, bytes) else str(x) for x in given] if given else known[0] * directions
    for one in known:
        if names == one * directions:
            return one
    raise NotTranslatableError(f"activations={names!r}")


def _direction(call: Call) -> str:
    given = call.get("direction", b"forward")
    return given.decode() if isinstance(given, bytes) else str(given)


def _run(call: Call, x: Inputs, step: RecurrentStep, states: int) -> tuple[Tensor, ...]:
    """All outputs over time, then the last state of each direction."""
    call.only("layout", 0)
    call.only("clip", None)
    places = [i for i in range(call.inputs) if i not in call.left_out]
    given = dict(zip(places, x, strict=True))
    values, weights, recurrent = given[0], given[1], given[2]
    steps, batch, size = values.shape[0], values.shape[1], recurrent.shape[-1]
    if _LENGTHS in given and not np.all(call.constants.get(_LENGTHS, -1) == steps):
        raise NotTranslatableError("sequences of different lengths")
    if _PEEPHOLES in given:
        raise NotTranslatableError("peepholes")
    outputs: list[Tensor] = []
    last: list[tuple[Tensor, ...]] = []
    for number, backwards in enumerate(_DIRECTIONS[_direction(call)]):
        bias = given[3][number] if 3 in given else torch.zeros(2 * weights.shape[1])
        own = _Weights(weights[number], recurrent[number], *bias.chunk(2))
        state = tuple(
            given[5 + part][number] if 5 + part in given else torch.zeros(batch, size) for part in range(states)
        )
        projected = functional.linear(values, own.inputs, own.input_bias)
        found: dict[int, Tensor] = {}
        for time in reversed(range(steps)) if backwards else range(steps):
            state = step(own, projected[time], state)
            found[time] = state[0]
        outputs.append(torch.stack([found[time] for time in range(steps)]))
        last.append(state)
    return (torch.stack(outputs, 1), *(torch.stack([state[part] for state in last]) for part in range(states)))
