"""The model's calls, one after the other, with what it keeps between them: through the host's parts and every layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.host import HostGraph

CALLS = 8
RunLayer = Callable[[Program, Sequence[Array]], list[Array]]
"""What the accelerator answers, given the program with one layer's weights, and that layer's inputs."""


def example_calls(program: Program) -> list[list[Array]]:
    """Typical text where the model brings some, token by token; else its example inputs.

    Where it keeps state these also come with their numbers at other places, for further calls.
    """
    around = program.layers or program.host
    given: Sequence[Array] = (around.inputs if around else ()) or (program.samples.inputs if program.samples else ())
    if program.layers is None:
        entering = {state.input for state in program.states}
        given = [x for i, x in enumerate(given) if i not in entering]
    if program.text is not None:
        return text_calls(program.text.calibration, given)
    return [
        [np.roll(x, -call, axis=-1) if x.ndim else x for x in given] for call in range(CALLS if program.states else 1)
    ]


def text_calls(tokens: Array, like: Sequence[Array]) -> list[list[Array]]:
    """A call for each token: the token, and where the model takes that its place, formed as the example inputs."""
    pairs = zip(tokens, range(len(tokens)), strict=True)
    return [[np.full_like(x, value) for x, value in zip(like, pair, strict=False)] for pair in pairs]


def run_calls(program: Program, calls: Sequence[Sequence[Array]], run_layer: RunLayer) -> list[list[Array]]:
    """The model's answers in real numbers, until the calls or the places of its caches are at an end.

    `program.layers.weights` has what differs between the layers, by the names of the program's parameters.
    """
    session = _Session(program, run_layer)
    answers: list[list[Array]] = []
    for inputs in calls:
        try:
            answers.append(session.call(inputs))
        except PackageError:
            if not answers:
                raise
            break  # the cache is full
    return answers


class _Session:
    def __init__(self, program: Program, run_layer: RunLayer) -> None:
        layers = program.layers
        self._program, self._run_layer = program, run_layer
        self._around = HostGraph(layers.graph, layers.values) if layers else None
        self._host = HostGraph(program.host.graph, program.host.values) if program.host else None
        self._states = [dict(one) for one in (layers.initial if layers else (program.initial,))]

    def call(self, inputs: Sequence[Array]) -> list[Array]:
        return self._around.run_whole(inputs, self._layer) if self._around else self._layer(0, inputs)

    def _layer(self, number: int, values: Sequence[Array]) -> list[Array]:
        program, states = self._program, self._states[number]
        if program.layers is not None:
            program = replace(program, params={**program.params, **program.layers.weights[number]})
        held, rest = {state.input: states[state.name] for state in program.states}, iter(values)
        whole = [held[i] if i in held else next(rest) for i in range(len(held) + len(values))]
        sent, known = self._host.before(whole) if self._host else (whole, dict[str, Any]())
        for turn in range(self._host.turns - 1 if self._host else 0):
            assert self._host is not None
            sent = self._host.between(turn, known, self._run_layer(program, sent))
        made = self._run_layer(program, sent)
        answers = self._host.after(known, made) if self._host else made
        for state in program.states:
            new = np.asarray(answers[state.output])
            if state.dim is None:
                states[state.name] = new
                continue
            assert state.positions is not None
            places = [slice(None)] * state.dim + [np.asarray(known[state.positions]).reshape(-1)]
            states[state.name] = states[state.name].copy()
            states[state.name][tuple(places)] = new
        return program.without_states(answers)
