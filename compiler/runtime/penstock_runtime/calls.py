"""Lists of calls: all layers by one start of the accelerator, which finds in its memory where each call's tensors lie.

A memory of a list holds the tensors of all calls one after the other; what is the same in each is there once. A result
that feeds the next call's input is one memory with it: the first call's input, then what each call leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .layout import lanes_of, memory_for, to_memory
from .ports import Array
from .state import result_of

CallList = Callable[[Sequence[Sequence[Any]], "frozenset[int]"], "list[list[Array]]"]
"""Runs calls by one start, given the inputs of each and which results stay in memory as they are."""


class CallLists:
    """What interface.json says in `calls`: the list's argument, the memories that it moves, and what feeds what."""

    def __init__(self, interface: Mapping[str, Any]) -> None:
        document = interface["calls"]
        self.argument: str = document["argument"]
        self.moved: list[str] = document["moved"]
        self.feeds: dict[str, str] = document["feeds"]
        """By an output, the input that it is one memory with."""
        self._inputs: list[Mapping[str, Any]] = interface["inputs"]
        self._outputs: list[Mapping[str, Any]] = interface["outputs"]

    def lay_out(self, frames: Sequence[Sequence[Any]]) -> LaidOut:
        """The memories of a list of calls, whose inputs these are. Where one is fed, only the first call's counts."""
        count = len(frames)
        makers = {given: made for made, given in self.feeds.items()}
        outputs, inputs, begins = dict[str, Array](), dict[str, Array](), dict[str, list[int]]()
        for entry in self._outputs:
            size, name = memory_for(entry).size, entry["argument"]
            fed = name in self.feeds
            outputs[name] = np.zeros((count + fed) * size, entry["dtype"])
            begins[name] = [(call + fed) * size for call in range(count)]
        for entry in self._inputs:
            index, name = int(entry["index"]), entry["argument"]
            if name in makers:
                first = to_memory(frames[0][index], entry).reshape(-1)
                inputs[name] = outputs[makers[name]]
                inputs[name][: first.size] = first
                begins[name] = [call * first.size for call in range(count)]
                continue
            inputs[name], begins[name] = _together([to_memory(frame[index], entry).reshape(-1) for frame in frames])
        return LaidOut(inputs, outputs, self._list_of(begins, count), begins, self._outputs)

    def _list_of(self, begins: Mapping[str, Sequence[int]], count: int) -> Array:
        """As it lies in memory: how many calls, then for each the first word of every memory."""
        lanes = {entry["argument"]: lanes_of(entry) for entry in (*self._inputs, *self._outputs)}
        rows = [[begins[name][call] // lanes[name] for name in self.moved] for call in range(count)]
        return np.array([count, *(begin for row in rows for begin in row)], np.int32)

    def slots(self, laid: LaidOut) -> Array:
        """How many tensors each memory holds, in the list's order."""
        sizes = {entry["argument"]: memory_for(entry).size for entry in (*self._inputs, *self._outputs)}
        memories = {**laid.inputs, **laid.outputs}
        return np.array([memories[name].size // sizes[name] for name in self.moved], np.int32)


class LaidOut:
    """The memories of one list of calls, by their arguments."""

    def __init__(
        self,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        calls: Array,
        begins: Mapping[str, Sequence[int]],
        entries: Sequence[Mapping[str, Any]],
    ) -> None:
        self.inputs, self.outputs, self.calls = inputs, outputs, calls
        self._begins, self._entries = begins, entries

    def results(self, stays: frozenset[int]) -> list[list[Array]]:
        """What each call left, as a single call gives it."""
        found: list[list[Array]] = []
        for call in range(int(self.calls[0])):
            row: list[Array] = []
            for entry in self._entries:
                begin, size = self._begins[entry["argument"]][call], memory_for(entry).size
                row.append(result_of(self.outputs[entry["argument"]][begin : begin + size], entry, stays))
            found.append(row)
        return found


def _together(memories: Sequence[Array]) -> tuple[Array, list[int]]:
    """One memory of all of them, and where each begins in it."""
    first, size = memories[0], memories[0].size
    if all(memory is first for memory in memories):
        return first, [0] * len(memories)
    begins = [call * size for call in range(len(memories))]
    whole = first.base
    if isinstance(whole, np.ndarray) and whole.size == size * len(memories):
        rows = whole.reshape(len(memories), size)
        if all(memory.ctypes.data == row.ctypes.data for memory, row in zip(memories, rows)):
            return whole.reshape(-1), begins
    return np.concatenate(memories), begins
