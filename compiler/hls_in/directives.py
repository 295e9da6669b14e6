"""Declarations, and pragmas that say how a memory or stream is built."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from penstock.compiler.errors import Mistakes, PenstockError, nearest
from penstock.compiler.hls_in.bindings import (
    ArrayView,
    Binding,
    Slot,
    StreamView,
    WordView,
    kind_of,
    unsupported,
    where,
)
from penstock.compiler.hls_in.expressions import ExpressionWalk
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.loops import pragma
from penstock.compiler.hls_in.parsing import Unit, shown
from penstock.compiler.hls_in.pragma_values import Constants
from penstock.compiler.hls_in.pragmas import KNOWN, PlacedPragmas, Pragma
from penstock.compiler.hls_in.records import Region
from penstock.compiler.hls_in.storage import KernelArray, KernelStream
from penstock.compiler.hls_in.syntax import Tree

_HELD = "use numbers, arrays of them, or hls::stream"
MOST_FIRST_VALUES = 4096
MOST_ZEROS = 1 << 20
"""Words of a memory without first values of its own."""
Directed = dict[tuple[str, str], tuple[dict[int, tuple[str, int]], dict[int, tuple[str, int]]]]


class PragmaWalk(ExpressionWalk):
    unit: Unit
    pragmas: PlacedPragmas
    mistakes: Mistakes
    items: list[Region] | None
    arrays: list[KernelArray]
    streams: list[KernelStream]
    directed: Directed
    apart: dict[KernelArray, int]
    """What pragmas in the pipeline in hand say of words that are read again."""
    late: bool
    """Whether an array was cut after it had been used."""
    rolled: bool
    """Loops stay loops, whatever pragmas say: what is computed is the same in fewer operations."""
    instance: tuple[int, ...]
    """Which call of a dataflow region this is: each has memories of its own."""
    initial: dict[KernelArray, tuple[float | int, ...]]
    """What lies in memories before the run."""
    listed: set[str]
    """Places of memories that live on and whose first words the source lists."""
    unchanged: Set[str]
    """Those of them that nobody writes."""
    in_turns: int
    """How many loops that are no pipelines stand around."""
    calls: list[str]
    """The functions that the walk is in. Those that a template makes have memories of their own."""
    _kept: dict[tuple[Any, ...], Binding]

    def asked(self, block: Tree, kind: str) -> Pragma | None:
        """The pragma of a kind in a block, as far as it counts."""
        return None if self.rolled and kind in ("pipeline", "unroll") else pragma(self.pragmas.of(block), kind)

    def _globals(self) -> None:
        for tree in self.unit.declarations:
            if tree[0] == "declare":
                lives = tree[3][0] == "array"
                with self.mistakes.noted():
                    self.declare([*tree[:5], tree[5] or lives, tree[6]])
            elif tree[0] == "record" and tree[4]:
                with self.mistakes.noted():
                    raise unsupported(tree[1], f"virtual functions of {tree[2]!r}", "call the function that is meant")

    def _argument(self, name: str, type_: Tree, place: list[Any], depths: dict[str, int]) -> Binding:
        """An argument of the top. A pointer is as long as the `depth` of its interface says, as in co-simulation."""
        inner = type_[1] if type_[0] == "reference" else type_
        if inner[0] == "pointer" and name in depths:
            inner = ["array", depths[name], inner[1]]
        if inner[0] == "pointer" and where(place) in self.reached:
            inner = ["array", self.reached[where(place)], inner[1]]
        if inner[0] == "pointer":
            made = self._made(name, ["array", 1, inner[1]], place, argument=True)
            if isinstance(made, ArrayView):
                made.array.unsized = (
                    f"declare it as an array, {name}[N], or give `#pragma HLS INTERFACE m_axi port={name} depth=N`"
                )
            return made
        kind = kind_of(inner)
        if kind is not None:
            return Slot(name, *kind, self.graph.fresh("input", *kind))
        return self._made(name, inner, place, argument=True)

    def declare(self, tree: Tree) -> None:
        _, place, name, type_, init, static, constant = tree
        kind = kind_of(type_)
        if kind is None and static and init is not None and init[0] == "list":
            self.listed.add(where(place))
            constant |= where(place) in self.unchanged
        if kind is not None and static and not constant:
            self._static_number(tree)
            return
        if kind is not None and type_[0] != "reference":
            if (
                (slot := self.scope.names.get(name)) is not None
                and isinstance(slot, Slot)
                and slot in self.memories.phis
            ):
                if init is not None:  # declared around an inner loop: see _sunk
                    slot.write(self.convert(self.value(init), *kind), self.path, self.graph)
                return
            value = None
            if init is not None and init[0] != "construct":
                value = self.convert(self.value(init if init[0] != "list" else init[2][0]), *kind)
            elif static:
                value = self.graph.constant(0, *kind)
            self.scope.names[name] = Slot(name, *kind, value, self.path)
            return
        if type_[0] in ("reference", "pointer") and init is not None and init[0] != "bad":
            target = self.target(init)
            self.scope.names[name] = WordView(target[0].array, target[1]) if isinstance(target, tuple) else target
            return
        key = (*place, name, *self.calls[-1:], *(() if static else self.instance))
        known = key in self._kept
        if not known:
            self._kept[key] = self._made(name, type_, place, argument=False, init=init, constant=constant)
        self.scope.names[name] = made = self._kept[key]
        if isinstance(made, ArrayView) and not constant and (static or (init is not None and init[0] == "list")):
            self._begin_with(made.array, init, once=static or not (known or self.in_turns or self.items is None))

    def _static_number(self, tree: Tree) -> None:
        """A number that lives on is a memory of one word."""
        _, place, name, type_, init, _, _ = tree
        key = (*place, name, *self.calls[-1:])
        if key not in self._kept:
            made = self._made(name, ["array", 1, type_], place, argument=False)
            assert isinstance(made, ArrayView)
            made.array.number = True
            self._kept[key] = made
            given = [init] if init is not None and init[0] != "construct" else []
            self._begin_with(made.array, ["list", place, given], once=True)
        self.scope.names[name] = self._kept[key]

    def _begin_with(self, array: KernelArray, init: Tree | None, *, once: bool) -> None:
        """What lies in a memory before it is written: `once` before the run, else whenever it is declared."""
        if once and init is None and array.words <= MOST_ZEROS:
            self.initial[array] = (0,) * array.words
            return
        nodes = self._filled(init if init is not None else ["list", None, []], array.dims)
        values = [node.value for node in nodes if node.value is not None]
        if array.words > MOST_FIRST_VALUES or len(nodes) != array.words or (not once and self.items is not None):
            self.beyond.append((array.where, f"the array {array.name!r} with values from the start, time and again"))
        elif once and len(values) == len(nodes):
            self.initial[array] = tuple(values)
        elif once:
            self.beyond.append((array.where, f"the array {array.name!r}, whose first values are no constants"))
        else:
            for flat, node in enumerate(nodes):
                index = [self.graph.constant(int(i)) for i in np.unravel_index(flat, array.dims)]
                value = self.convert(node, array.kind, array.bits, array.signed)
                self.memories.write(array, tuple(index), value, self.path, 0)

    def _filled(self, init: Tree, dims: tuple[int, ...]) -> list[KernelValue]:
        """The words of an array as a list in braces gives them; what is not said is 0."""
        if not dims:
            return [self.value(init[2][0] if init[0] == "list" else init)]
        nested = len(dims) == 1 or any(part[0] == "list" for part in init[2])
        nodes = [node for part in init[2] for node in self._filled(part, dims[1:] if nested else ())]
        return nodes + [self.graph.constant(0)] * (prod(dims) - len(nodes))

    def _made(
        self, name: str, type_: Tree, place: list[Any], argument: bool, init: Tree | None = None, constant: bool = False
    ) -> Binding:
        dims: list[int] = []
        blocks, inner = (type_[1], type_[2]) if type_[0] == "blocks" else (0, type_)
        lanes: list[int] = []
        while inner[0] in ("array", "lanes"):
            if inner[0] == "lanes":
                lanes.append(len(dims))
            if inner[1] is None:
                raise unsupported(place, f"the array {name!r} without a length", f"declare it as {name}[N]")
            dims.append(inner[1])
            inner = inner[2]
        if inner[0] == "stream":
            token = kind_of(inner[1])
            kind, bits, signed = token or ("float", 32, True)
            streams = KernelStream(
                name, tuple(dims), bits, inner[2] or 2, argument, where(place), kind, signed, of_token=len(lanes)
            )  # fmt: skip
            self.streams.append(streams)
            return StreamView(streams)
        kind = kind_of(inner)
        if kind is None or not dims:
            said = inner[1] if inner[0] == "named" else inner[0]
            hint = "write ap_uint<1> for 0 and 1, or ap_int<2>" if said == "ap_int<1>" else _HELD
            raise unsupported(place, f"{name!r} of type {said}", hint)
        array = KernelArray(name, tuple(dims), *kind, where(place), argument, constant, blocks=blocks)
        if blocks:
            self.beyond.append((where(place), f"the stream of blocks {name!r}"))
        array.partition |= {d: ("complete", dims[d]) for d in lanes}
        if (array.where, name) in self.directed:
            array.partition, array.reshape = map(dict, self.directed[array.where, name])
        if constant and init is not None and init[0] == "list":
            values = [node.value for node in self._filled(init, array.dims) if node.value is not None]
            if len(values) == array.words:
                self.tables[array] = tuple(values)
        self.arrays.append(array)
        return ArrayView(array)

    def constants(self) -> Constants:
        """Integer constants and macros that a pragma may name."""
        found: dict[str, int | str] = dict(self.unit.macros)
        seen: set[str] = set()
        scope = self.scope
        while True:
            for name, binding in scope.names.items():
                if isinstance(binding, Slot) and binding.value is not None and isinstance(binding.value.value, int):
                    if name not in seen:
                        found[name] = binding.value.value
                    seen.add(name)
            if scope.around is None:
                return found
            scope = scope.around

    def directives(self, pragmas: list[Pragma]) -> None:
        """Refuse pragmas that do not exist."""
        for p in pragmas:
            with self.mistakes.noted():
                if p.kind not in KNOWN:
                    raise PenstockError(
                        code="bad-pragma", what=f"there is no #pragma HLS {p.kind}", where=shown(p.where),
                        hint=nearest(p.kind, KNOWN, "see UG1399 for the pragmas of Vitis HLS"),
                    )  # fmt: skip

    def apply(self, p: Pragma) -> None:
        """A pragma that names a variable, once that is declared."""
        name = p.options.get("variable", "").partition("[")[0]
        if p.kind == "dependence" and not name:
            return  # of a class of variables: none is taken for apart
        known: list[str] = []
        scope = self.scope
        while scope is not None:
            known += scope.names
            scope = scope.around
        binding = self.scope.find(name)
        fields = dict.fromkeys(one for one in known if one.startswith(f"{name}.")) if binding is None else {}
        for field in fields:
            with self.mistakes.noted():
                self.apply(replace(p, options={**p.options, "variable": field}))
        if binding is None:
            if fields:
                return
            raise PenstockError(
                code="bad-pragma", what=f"#pragma HLS {p.kind} names {name!r}, which is no variable here",
                where=shown(p.where), hint=nearest(name, known, "name a variable that is declared before it"),
            )  # fmt: skip
        if isinstance(binding, ArrayView) and p.kind in ("array_partition", "array_reshape"):
            self._partition(p, binding.array)
        elif isinstance(binding, StreamView) and p.kind == "stream":
            depth = p.number("depth", self.constants())
            if depth is not None:
                binding.streams.depth, binding.streams.directive = depth, shown(p.where)
        elif isinstance(binding, ArrayView) and p.kind in ("resource", "bind_storage"):
            binding.array.storage = p.options.get("core", p.options.get("type", "")).lower()
            binding.array.built_of = p.options.get("impl", "").lower()
        elif isinstance(binding, ArrayView) and p.kind == "dependence":
            self._apart(p, binding.array)

    def _apart(self, p: Pragma, array: KernelArray) -> None:
        """What is said of words that are written and read again by a later iteration."""
        said = {*p.options, *(value.lower() for key, value in p.options.items() if key != "variable")}
        if said & {"intra", "war", "waw"}:
            return
        apart = (p.number("distance", self.constants()) or 1) if "true" in said else 0
        if self.items is None:
            self.apart[array] = apart
        else:
            array.apart = apart

    def _partition(self, p: Pragma, array: KernelArray) -> None:
        way = next(
            (w for w in ("complete", "cyclic", "block") if w in p.options or p.options.get("type", "").lower() == w),
            "complete",
        )
        dimension = p.number("dim", self.constants())
        dimension = 1 if dimension is None else dimension
        if dimension > len(array.dims):
            raise PenstockError(
                code="bad-pragma", what=f"{array.name!r} has {len(array.dims)} dimensions, not {dimension}",
                where=shown(p.where),
                hint="count dimensions from 1, the outermost; 0 is all of them",
            )  # fmt: skip
        into = array.partition if p.kind == "array_partition" else array.reshape
        for d in range(len(array.dims)) if dimension == 0 else (dimension - 1,):
            length = array.dims[d]
            factor = length if way == "complete" else min(length, p.number("factor", self.constants()) or 1)
            self.late |= array in self.touched and into.get(d) != (way, factor)
            into[d] = (way, factor)
            if p.kind == "array_partition":
                array.directives[d] = shown(p.where)
        self.directed[array.where, array.name] = dict(array.partition), dict(array.reshape)
