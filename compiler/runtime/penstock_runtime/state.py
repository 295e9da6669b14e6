"""What a model keeps between calls: caches, running statistics, recurrent state.

A state that the accelerator reads and writes itself stays as its memories have it. Where a call gives the whole state
anew, that memory is what the next call reads; where it gives rows of a cache, they are written at their places, and the
rest is not touched. A state that this machine computes with is an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import PackageError
from .layout import Packed, from_memory, in_one_piece, to_memory
from .ports import Array, Port

NONE: frozenset[int] = frozenset()
"""No result stays in memory as it is."""


@dataclass(frozen=True)
class State:
    """One of states/states.json: `port` and `result` are the accelerator's, None where the host has it."""

    name: str
    input: int
    output: int
    port: int | None
    result: int | None
    dim: int | None
    positions: str | None
    initial: Sequence[Array]

    @property
    def stays(self) -> bool:
        """Whether its memory is the accelerator's."""
        return self.port is not None


class States:
    """The states of a session: of every layer, where layers share the accelerator."""

    def __init__(self, states: Sequence[State], ports: tuple[list[Port], list[Port]], interface: Mapping[str, Any]):
        self.states = states
        self._ports = ports
        self._inputs, self._outputs = interface["inputs"], interface["outputs"]
        self._places: dict[str, Array] = {}
        self._now: list[list[Array | Packed]] = []
        self.inputs = {state.input: number for number, state in enumerate(states)}
        self.outputs = {state.output for state in states}
        self.whole = frozenset(s.result for s in states if s.result is not None and s.dim is None and self._as_is(s))
        """Results that are a state as the accelerator will read it: their memories are kept as they are."""
        self.reset()

    def reset(self) -> None:
        """As before the first call."""
        layers = range(len(self.states[0].initial)) if self.states else ()
        self._now = [[self._first(state, layer) for state in self.states] for layer in layers]
        for number, state in enumerate(self.states):
            rows = [row[number] for row in self._now]
            for entry in self._entries(state) if state.stays else ():
                memories = [row.memories for row in rows if isinstance(row, Packed)]
                for memory, place in zip(memories, in_one_piece([one[entry["argument"]] for one in memories])):
                    memory[entry["argument"]] = place

    def enter(self, layer: int, passed: Sequence[Any]) -> list[Any]:
        """The inputs of the model's, or of a layer's, call: the states in their places among what is passed."""
        rest = iter(passed)
        count = len(self.inputs) + len(passed)
        return [self._now[layer][self.inputs[i]] if i in self.inputs else next(rest) for i in range(count)]

    def keep(self, layer: int, results: Sequence[Any], answers: Sequence[Any], known: Mapping[str, Any]) -> None:
        """After a call: `results` are the accelerator's own, `answers` the model's, `known` the host's values."""
        for number, state in enumerate(self.states):
            if state.result is None or state.port is None:
                self._now[layer][number] = np.array(answers[state.output])
                continue
            now = self._now[layer][number]
            assert isinstance(now, Packed)
            if state.dim is None:
                self._now[layer][number] = self._replaced(state, results[state.result])
            else:
                assert state.positions is not None
                self._write(state, now, results[state.result], known[state.positions].numpy().reshape(-1))

    def arrays(self, layer: int = 0) -> dict[str, Array]:
        """A copy of every state by its name, as the model has it."""
        return {s.name: self._read(s, v) for s, v in zip(self.states, self._now[layer])}

    def _entries(self, state: State) -> list[Mapping[str, Any]]:
        return [entry for entry in self._inputs if int(entry["index"]) == state.port]

    def _as_is(self, state: State) -> bool:
        """Whether what the accelerator writes lies there as it is read: one memory, of one type, scale and order."""
        entries = self._entries(state)
        if len(entries) != 1:
            return False
        assert state.port is not None
        assert state.result is not None
        given, made = self._ports[0][state.port], self._ports[1][state.result]
        left = next(entry for entry in self._outputs if int(entry["index"]) == state.result)
        if "valid" in left:  # what lies behind a result means nothing, and behind an input zeros
            return False
        same = ("dtype", "layout", "shape", "valid")
        return given.scale == made.scale and all(entries[0].get(key) == left.get(key) for key in same)

    def _first(self, state: State, layer: int) -> Array | Packed:
        value = state.initial[layer]
        return self._pack(state, value) if state.stays else np.array(value)

    def _pack(self, state: State, value: Array) -> Packed:
        assert state.port is not None
        port = self._ports[0][state.port]
        numbers = port.to_accelerator(value.reshape(port.shape))
        return Packed({e["argument"]: np.array(to_memory(numbers, e)).reshape(-1) for e in self._entries(state)})

    def _replaced(self, state: State, result: Array) -> Packed:
        assert state.result is not None
        if state.result in self.whole:
            return Packed({self._entries(state)[0]["argument"]: result})
        made = self._ports[1][state.result]
        return self._pack(state, made.from_accelerator(result.reshape(made.shape)))

    def _write(self, state: State, now: Packed, rows: Array, positions: Array) -> None:
        assert state.port is not None
        assert state.result is not None
        assert state.dim is not None
        given, made = self._ports[0][state.port], self._ports[1][state.result]
        numbers = given.to_accelerator(made.from_accelerator(rows))
        for entry in self._entries(state):
            places = np.take(self._places_of(entry, given), positions, axis=state.dim)
            here = places >= 0
            now.memories[entry["argument"]][places[here]] = numbers[here]

    def _places_of(self, entry: Mapping[str, Any], port: Port) -> Array:
        """Where each number of the tensor lies in a memory; -1 for those that are in another bank's share."""
        argument = entry["argument"]
        if argument not in self._places:
            size = int(np.prod(port.shape))
            shape: tuple[int, ...] = tuple(entry.get("valid", entry["shape"]))
            numbers: Array = np.arange(1, size + 1).reshape(shape)
            memory = to_memory(numbers, {**entry, "dtype": "int64"}).reshape(-1)
            places = np.full(size + 1, -1, np.int64)
            places[memory] = np.arange(memory.size)
            self._places[argument] = places[1:].reshape(port.shape)
        return self._places[argument]

    def _read(self, state: State, value: Array | Packed) -> Array:
        if not isinstance(value, Packed):
            return np.array(value)
        assert state.port is not None
        port = self._ports[0][state.port]
        numbers = np.zeros(port.shape, port.dtype)
        for entry in self._entries(state):
            places = self._places_of(entry, port)
            here = places >= 0
            numbers[here] = value.memories[entry["argument"]][places[here]]
        return port.from_accelerator(numbers).reshape(state.initial[0].shape)


def result_of(memory: Array, entry: Mapping[str, Any], stays: frozenset[int]) -> Array:
    """What the accelerator left in a memory: as a tensor, or as it lies there where the next call reads it so."""
    return memory if int(entry["index"]) in stays else from_memory(memory, entry)


def refuse_positions(known: Mapping[str, Any], positions: Mapping[str, int]) -> None:
    """A row behind the end of a cache would be lost in silence."""
    for name, size in positions.items():
        values = np.asarray(known[name])
        if values.size and (values.min() < 0 or values.max() >= size):
            raise PackageError(
                f"rows would be written at {int(values.min())} to {int(values.max())} of {size} places",
                "call reset(), or compile the model with a larger buffer",
            )
