"""The model's calls, one after the other, with what it keeps between them: through the host's parts and every layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.lengths import sizes_json
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.host import HostGraph
from penstock.compiler.runtime.penstock_runtime.lengths import Lengths, size_of
from penstock.compiler.runtime.penstock_runtime.ports import Port
from penstock.compiler.state import KeptState

CALLS = 8
Resize = Callable[[Program, Mapping[str, int]], Program]
"""A program as it is at lengths that a call may say."""
RunLayer = Callable[[Program, Sequence[Array]], list[Array]]
"""What the accelerator answers, given the program with one layer's weights, and that layer's inputs."""


def example_calls(program: Program) -> list[list[Array]]:
    """Typical text where the model brings some, token by token; else its example inputs.

    Where it keeps state these also come with their numbers at other places, for further calls. Where each call says
    some of its sizes, also as much of them as other sizes take.
    """
    around = program.layers or program.host
    given: Sequence[Array] = (around.inputs if around else ()) or (program.samples.inputs if program.samples else ())
    if program.layers is None:
        entering = {state.input for state in program.states}
        given = [x for i, x in enumerate(given) if i not in entering]
    if program.text is not None:
        return text_calls(program.text.calibration, _least(program, given))
    calls = [
        [np.roll(x, -call, axis=-1) if x.ndim else x for x in given] for call in range(CALLS if program.states else 1)
    ]
    return calls + [list(sample.given) for sample in (program.lengths.samples if program.lengths else ())]


def typical_calls(program: Program) -> list[list[Array]]:
    """Calls with the typical inputs that a model brings, one after the other; else those of `example_calls`."""
    if program.text is not None or not program.calibration:
        return example_calls(program)
    calls = [list(call) for call in zip(*program.calibration, strict=True)]
    return calls + [list(sample.given) for sample in (program.lengths.samples if program.lengths else ())]


def text_calls(tokens: Array, like: Sequence[Array]) -> list[list[Array]]:
    """A call for each token: the token, and where the model takes that its place, formed as the example inputs."""
    pairs = zip(tokens, range(len(tokens)), strict=True)
    return [[np.full_like(x, value) for x, value in zip(like, pair, strict=False)] for pair in pairs]


def _least(program: Program, given: Sequence[Array]) -> list[Array]:
    """As few of these numbers as a call may take."""
    known = sized_calls(program)
    if known is None:
        return list(given)
    least = {one["name"]: one["low"] for one in known.of}
    return [x[tuple(slice(n) for n in known.model_shape(i, x.shape, least))] for i, x in enumerate(given)]


def sized_calls(program: Program) -> Lengths | None:
    """How the sizes of a model's calls are told from its inputs; None for a model of one size."""
    if (known := program.lengths) is None:
        return None
    hidden = {state.input for state in program.states} if program.layers is None else set[int]()
    outer = program.layers or program.host
    if outer is None:
        model = [sizes_json(one) for i, one in enumerate(known.inputs) if i not in hidden]
    else:
        ports = [port["shape"] for i, port in enumerate(outer.graph["inputs"]) if i not in hidden]
        model = [[size_of(number) for number in shape] for shape in ports]
    graphs = [one.graph for one in (program.host, program.layers) if one is not None]
    places = [size_of(one) for graph in graphs for one in graph.get("positions", {}).values()]
    return Lengths([asdict(one) for one in known.lengths], [], [], model, [size for size in places if size is not None])


def run_calls(
    program: Program,
    calls: Sequence[Sequence[Array]],
    run_layer: RunLayer,
    *,
    resize: Resize | None = None,
    rows: Iterable[int | Mapping[str, int] | None] = (),
) -> list[list[Array]]:
    """The model's answers in real numbers, until the calls or the places of its caches are at an end.

    `program.layers.weights` has what differs between the layers, by the names of the program's parameters. Where each
    call says its sizes, the program that `run_layer` is given has them, by `resize`. How much it sees of what is kept
    are then so many `rows`, or all of it where that is not said; a mapping says all sizes of a call.
    """
    session = _Session(program, run_layer, resize)
    answers: list[list[Array]] = []
    for inputs, seen in zip(calls, chain(rows, repeat(None)), strict=False):
        try:
            answers.append(session.call(inputs, seen))
        except PackageError:
            if not answers:
                raise
            break  # the cache is full
    return answers


class _Session:
    def __init__(self, program: Program, run_layer: RunLayer, resize: Resize | None) -> None:
        layers = program.layers
        self._program, self._run_layer, self._resize = program, run_layer, resize
        self._around = HostGraph(layers.graph, layers.values) if layers else None
        self._host = HostGraph(program.host.graph, program.host.values) if program.host else None
        self._states = [dict(one) for one in (layers.initial if layers else (program.initial,))]
        self._lengths = sized_calls(program)
        self._at: dict[tuple[int, ...], Program] = {}

    def call(self, inputs: Sequence[Array], rows: int | Mapping[str, int] | None) -> list[Array]:
        said = rows if isinstance(rows, Mapping) else self._said(inputs, rows)
        if self._around is None:
            return self._layer(0, inputs, said)
        return self._around.at(said).run_whole(inputs, lambda number, values: self._layer(number, values, said))

    def _said(self, inputs: Sequence[Array], rows: int | None) -> dict[str, int]:
        """The sizes of a call."""
        if self._lengths is None:
            return {}
        hidden = {state.input for state in self._program.states} if self._around is None else set[int]()
        around = self._around or self._host
        own = [Port(one.name, one.shape, one.dtype) for one in self._program.signature.inputs]
        ports = [port for i, port in enumerate(around.inputs if around else own) if i not in hidden]
        return self._lengths.of_call(ports, inputs, rows)

    def _sized(self, said: Mapping[str, int]) -> Program:
        if not said:
            return self._program
        assert self._resize is not None, "calls of several sizes need programs of these"
        key = tuple(said.values())
        if key not in self._at:
            self._at[key] = self._resize(self._program, said)
        return self._at[key]

    def _layer(self, number: int, values: Sequence[Array], said: Mapping[str, int]) -> list[Array]:
        program, states = self._sized(said), self._states[number]
        host = self._host.at(said) if self._host else None
        if program.layers is not None:
            program = replace(program, params={**program.params, **program.layers.weights[number]})
        held = {state.input: self._seen(state, states[state.name], program) for state in program.states}
        rest = iter(values)
        whole = [held[i] if i in held else next(rest) for i in range(len(held) + len(values))]
        sent, known = host.before(whole) if host else (whole, dict[str, Any]())
        for turn in range(host.turns - 1 if host else 0):
            assert host is not None
            sent = host.between(turn, known, self._run_layer(program, sent))
        made = self._run_layer(program, sent)
        answers = host.after(known, made) if host else made
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

    def _seen(self, state: KeptState, value: Array, program: Program) -> Array:
        """As much of a state as a call of this size has."""
        if self._lengths is None or state.port is None:
            return value
        shape = next(port.shape for port in program.signature.inputs if port.name == state.port)
        return value[tuple(slice(n) for n in shape)]
