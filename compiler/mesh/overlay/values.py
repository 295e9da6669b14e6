"""What a core computes, as lines of a task: each value of the tile program is a variable of the task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.compiler.mesh.overlay.slices import shape_text
from penstock.compiler.mesh.program import (
    MATRIX,
    MeshBound,
    MeshCompute,
    MeshLoad,
    MeshLoop,
    MeshStatement,
    MeshStore,
    TileProgram,
)
from penstock.compiler.tasks.affine import Affine

TYPES = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "int8": "int8", "int16": "int16",
         "int32": "int32", "bool": "bool"}  # fmt: skip
"""Halves are computed in float32."""
_MOST = 1e30
"""Stands for infinity, which task programs have not."""
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "less": "<", "less_equal": "<=", "greater": ">",
          "greater_equal": ">=", "equal": "==", "not_equal": "!="}  # fmt: skip
_CALLS = {"max": "max", "min": "min", "exp": "exp", "sqrt": "sqrt", "abs": "abs", "tanh": "tanh",
          "sigmoid": "sigmoid", "trans": "transpose", "where": "where", MATRIX: "matmul"}  # fmt: skip
WORDS = ("exp", "sqrt", "abs", "tanh", "sigmoid", "transpose", "where", "matmul", "stack", "broadcast", "max", "min",
         "sum")  # fmt: skip


class NotComputed(Exception):
    """An operation that task programs have not."""


@dataclass
class CoreLines:
    """Writes a body; `loads` and `stores` say what stands for a load or a store, `ahead` what stands before a loop."""

    program: TileProgram
    loads: Callable[[MeshLoad], list[str]]
    stores: Callable[[MeshStore, str], list[str]]
    ahead: Callable[[MeshLoop], list[str]]
    places: Callable[[int], tuple[str, str] | None]
    """A counter of the grid as a variable that counts, and what of the core's place comes to it."""
    counted: set[int] = field(default_factory=set[int])
    """The counters that values are made of."""
    names: dict[int, str] = field(default_factory=dict[int, str])

    def lines(self, body: Sequence[MeshStatement]) -> list[str]:
        found: list[str] = []
        for statement in body:
            match statement:
                case MeshLoad():
                    found += self.loads(statement)
                case MeshStore():
                    found += self.stores(statement, self.name(statement.value))
                case MeshCompute():
                    found += self._computed(statement)
                case MeshLoop():
                    found += self._loop(statement)
        return found

    def name(self, value: int) -> str:
        return self.names.get(value, f"v{value}")

    def declared(self, value: int, text: str) -> str:
        """A variable with its type."""
        shape, dtype = self.program.shapes[value]
        return f"{self.name(value)}: {TYPES[dtype]}{list(shape) if shape else ''} = {text}"

    def number(self, value: Affine) -> str:
        """A sum of counters as a value of the run."""
        found = [str(value.const)]
        for counter, by in value.terms:
            self.counted.add(counter)
            count, place = self.places(counter) or (f"n{counter}", "0")
            found += [f"({place}) * {by}"] if place != "0" else []
            found += [f"{count} * {by}"] if count else []
        return " + ".join(found)

    def _loop(self, loop: MeshLoop) -> list[str]:
        """Where rounds differ from core to core, all go round, and what is beyond a core's own has no effect."""
        for row in loop.carried:
            self.names[row.after] = self.name(row.inside)
        found = [*self.ahead(loop), *(self.declared(row.inside, self.name(row.first)) for row in loop.carried)]
        inner = self.lines(loop.body)
        # all at once: one may be another's next value
        goals = {self.name(row.inside): self.name(row.last) for row in loop.carried}
        twice = [goal for goal in goals if goal in set(goals.values()) and goals[goal] != goal]
        inner += [f"old_{goal} = {goal} + 0" for goal in twice]
        if loop.extent.terms:
            if any(isinstance(s, MeshStore) for s in loop.body):
                raise NotComputed("a loop that stores, of rounds that differ from instance to instance")
            self.counted.add(loop.counter)
            found.append(f"end{loop.counter}: int32 = {self.number(loop.extent)}")
            inner.append(f"within{loop.counter} = n{loop.counter} < end{loop.counter}")
        for goal, last in goals.items():
            value = f"old_{last}" if last in twice else last
            if goal != last:
                inner.append(
                    f"{goal} = where(within{loop.counter}, {value}, {goal})"
                    if loop.extent.terms
                    else f"{goal} = {value}"
                )
        if loop.counter in self.counted:
            found.append(f"n{loop.counter}: int32 = 0")
            inner.append(f"n{loop.counter} = n{loop.counter} + 1")
        rounds = loop.extent.extremes(self.program.trips)[1]
        return [*found, f"for k{loop.counter} in range({rounds}):", *(f"    {line}" for line in inner)]

    def _places(self, op: MeshCompute, bound: MeshBound, at: int) -> tuple[str, str]:
        """A line that sets where a tile's places begin, and the tile of them."""
        name = f"from{op.result}_{at}"
        steps = " + ".join(f"q{d} * {by}" for d, by in enumerate(bound.strides) if by) or "0"
        return f"{name}: int32 = {self.number(bound.base)}", stacked(op.shape, f"{name} + ({steps})")

    def _computed(self, op: MeshCompute) -> list[str]:
        given, goal = [self.name(one) for one in op.operands], self.name(op.result)
        kind = op.kind
        if kind == "full":
            assert isinstance(op.setting, int | float)
            if not op.shape:
                self.names[op.result] = _number(op.setting, TYPES[op.dtype])
                return []
            return [self.declared(op.result, _number(op.setting, TYPES[op.dtype]))]
        if kind == "cast":
            before, after = TYPES[self.program.shapes[op.operands[0]][1]], TYPES[op.dtype]
            if before == after:
                self.names[op.result] = given[0]
                return []
            return [f"{goal} = {after}({given[0]})"]
        if kind in _SIGNS:
            return [f"{goal} = {given[0]} {_SIGNS[kind]} {given[1]}"]
        if kind in _CALLS:
            return [f"{goal} = {_CALLS[kind]}({', '.join(given)})"]
        if kind.startswith("reduce_") and isinstance(op.setting, tuple):
            text = given[0]
            for axis in sorted((one for one in op.setting if isinstance(one, int)), reverse=True):
                text = f"{kind.removeprefix('reduce_')}({text}, axis={axis})"
            return [f"{goal} = {text}"]
        if kind in ("mask", "index") and isinstance(op.setting, tuple):
            bounds = [one for one in op.setting if isinstance(one, MeshBound)]
            rows = [self._places(op, bound, at) for at, bound in enumerate(bounds)]
            parts = [tile if kind == "index" else f"({tile} < 0)" for _, tile in rows]
            return [*(line for line, _ in rows), f"{goal} = {' and '.join(parts)}"]
        match kind:
            case "neg":
                return [f"{goal} = -{given[0]}"]
            case "rsqrt":
                return [f"{goal} = 1.0 / sqrt({given[0]})"]
            case "exp2":
                return [f"{goal} = exp({given[0]} * {math.log(2)!r})"]
            case "reshape":
                return [f"{goal} = {reshaped(given[0], self.program.shapes[op.operands[0]][0], op.shape)}"]
            case _:
                raise NotComputed(f"{kind}, which task programs have not")


def _number(value: float, dtype: str) -> str:
    if dtype != "float32":
        return str(int(value))
    return repr(float(max(min(value, _MOST), -_MOST)))


def reshaped(name: str, shape: Sequence[int], to: Sequence[int]) -> str:
    """The same places with dims of one put in or taken out."""
    if tuple(shape) == tuple(to):
        return name
    long = [d for d, size in enumerate(to) if size > 1]
    if [to[d] for d in long] != [size for size in shape if size > 1]:
        raise NotComputed(f"a tile of {list(shape)} read as {list(to)}")
    if not shape:
        return f"broadcast({name}, {shape_text(to)})"
    at = iter(long)
    return stacked(to, f"{name}[{', '.join(f'q{next(at)}' if size > 1 else '0' for size in shape)}]")


def stacked(shape: Sequence[int], element: str) -> str:
    """A tile whose element at q0, q1, ... is `element`."""
    for dim in reversed(range(len(shape))):
        element = f"stack([{element} for q{dim} in range({shape[dim]})])"
    return element
