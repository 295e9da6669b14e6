"""Random tensor graphs and random designs, drawn as short lists of small numbers so that failures shrink well.

Every list means a graph: an index that points past the end wraps around, a step that does not fit becomes a plain
one. So hypothesis may drop and lower numbers as it likes, and what is left is the smallest graph that still fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from xdsl.parser import Parser

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.transforms.pad_dims import Dims
from tests.compiler.designs import divisors, sizes_of
from tests.compiler.windows import CONVOLVE, FILTER, DrawnWindows

Choice = TypeVar("Choice")

KINDS = {"int32": "i32", "int8": "i8", "float32": "f32"}
SIZES = (4, 1, 2, 6, 8, 3, 5)
OPS = ("relu", "dense", "add", "bias", "rows less their sum", "columns over their largest", "times transposed",
       "times", "transpose", "slice", "join", "reshape", "windows")  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step: what it does, on which earlier value, and two numbers that mean what the step makes of them."""

    op: str
    source: int
    first: int
    second: int


@dataclass(frozen=True)
class GraphSpec:
    """A graph. `heads` is a leading dim that all values have; 0 is none. With `tap` a second value is a result."""

    kind: str
    heads: int
    rows: int
    columns: int
    steps: tuple[Step, ...]
    tap: bool = False


def graph_specs(max_steps: int = 9) -> st.SearchStrategy[GraphSpec]:
    small = st.integers(0, 11)
    steps = st.builds(Step, st.sampled_from(OPS), small, small, small)
    return st.builds(
        GraphSpec, st.sampled_from(sorted(KINDS, reverse=True)), st.sampled_from([0, 0, 1, 2]), st.sampled_from(SIZES),
        st.sampled_from(SIZES), st.lists(steps, min_size=1, max_size=max_steps).map(tuple), st.booleans(),
    )  # fmt: skip


@dataclass(frozen=True)
class _Node:
    """A step that fits: `sources` are earlier values, `shape` is rows and columns of the result."""

    op: str
    sources: tuple[int, ...]
    shape: tuple[int, int]
    numbers: tuple[int, ...] = ()
    windows: DrawnWindows | None = None


def _resolve(spec: GraphSpec) -> list[_Node]:
    """The steps as they are meant, value 0 being the input."""
    nodes = [_Node("input", (), (spec.rows, spec.columns))]
    for step in spec.steps:
        source = len(nodes) - 1 - max(0, step.source - 5) % len(nodes)  # mostly the last value: few dead ends
        nodes.append(_fit(step, nodes, source))
    return nodes


def _fit(step: Step, nodes: list[_Node], source: int) -> _Node:
    rows, columns = nodes[source].shape

    def other(fits: list[int]) -> int:
        return fits[step.first % len(fits)]

    match step.op:
        case "dense":
            width = SIZES[step.first % len(SIZES)]
            return _Node("dense", (source,), (rows, width), (step.second % 2,))
        case "add":
            fits = [i for i, node in enumerate(nodes) if node.shape == (rows, columns)]
            return _Node("add", (source, other(fits)), (rows, columns))
        case "times transposed":
            fits = [i for i, node in enumerate(nodes) if node.shape[1] == columns]
            return _Node("times transposed", (source, other(fits)), (rows, nodes[other(fits)].shape[0]))
        case "times":
            fits = [i for i, node in enumerate(nodes) if node.shape[0] == columns]
            if fits:
                return _Node("times", (source, other(fits)), (rows, nodes[other(fits)].shape[1]))
        case "transpose":
            return _Node("transpose", (source,), (columns, rows))
        case "windows":
            drawn = DrawnWindows.of(step.first, step.second, rows, columns, SIZES)
            return _Node(drawn.kind, (source,), drawn.shape, (), drawn)
        case "reshape":
            width = divisors(rows * columns)[step.first % len(divisors(rows * columns))]
            return _Node("reshape", (source,), (rows * columns // width, width))
        case "slice":
            dim = step.second % 2
            extent = nodes[source].shape[dim]
            if extent > 1:
                size = 1 + step.first % (extent - 1)
                start = (step.first // 3) % (extent - size + 1)
                return _Node("slice", (source,), (size, columns) if dim == 0 else (rows, size), (dim, start))
        case "join":
            dim = step.second % 2
            fits = [i for i, node in enumerate(nodes) if node.shape[1 - dim] == nodes[source].shape[1 - dim]]
            total = nodes[source].shape[dim] + nodes[other(fits)].shape[dim]
            return _Node("join", (source, other(fits)), (total, columns) if dim == 0 else (rows, total), (dim,))
        case _:
            return _Node(step.op, (source,), (rows, columns))
    return _Node("relu", (source,), (rows, columns))


def build_graph(spec: GraphSpec, seed: int = 0) -> Program:
    """The canonical program that a spec means; values that no result needs are left out."""
    nodes = _resolve(spec)
    results = [len(nodes) - 1]
    if spec.tap and len(nodes) > 2:
        results.append(1 + (len(nodes) // 2) % (len(nodes) - 2))
    live = set(results)
    for number in reversed(range(len(nodes))):
        if number in live:
            live |= set(nodes[number].sources)
    writer = _Writer(spec, np.random.default_rng(seed))
    for number, node in enumerate(nodes):
        if number in live and node.op != "input":
            writer.write(number, node)
    return writer.program(nodes, results)


_INTEGER = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "max": "arith.maxsi"}
_FLOAT = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "max": "arith.maximumf"}


@dataclass
class _Writer:
    """Writes nodes as linalg. Dims: h the heads, i rows, j columns, k what a sum runs over."""

    spec: GraphSpec
    generator: np.random.Generator
    lines: list[str] = field(default_factory=list[str])
    arguments: list[str] = field(default_factory=list[str])
    params: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def __post_init__(self) -> None:
        self.scalar = KINDS[self.spec.kind]
        self.ops = _FLOAT if self.scalar == "f32" else _INTEGER
        self.h = "h" if self.spec.heads else ""
        self.shapes["%v0"] = self._full((self.spec.rows, self.spec.columns))
        self.arguments.append(f'%v0: {self._type("%v0")} {{penstock.name = "x", penstock.kind = "input"}}')

    def program(self, nodes: list[_Node], results: list[int]) -> Program:
        types = ", ".join(self._type(f"%v{r}") for r in results)
        values = ", ".join(f"%v{r}" for r in results)
        head = f"func.func @main({', '.join(self.arguments)}) -> ({types})"
        body = "\n".join(self.lines)
        module = Parser(make_context(), f"{head} {{\n{body}\nfunc.return {values} : {types}\n}}").parse_module()
        module.verify()
        outputs = tuple(Port(f"output{i}", self.shapes[f"%v{r}"], self.spec.kind) for i, r in enumerate(results))
        inputs = (Port("x", self.shapes["%v0"], self.spec.kind),)
        return Program("drawn", module, self.params, Signature(inputs, outputs))

    def write(self, number: int, node: _Node) -> None:
        h, out, layer = self.h, f"%v{number}", f"{node.op.replace(' ', '_')}{number}"
        sources = [f"%v{s}" for s in node.sources]
        x, ij = sources[0], f"{h}ij"
        self.shapes[out] = self._full(node.shape)
        match node.op:
            case "relu":
                self._generic(
                    layer, out, ij, [(x, ij)], f"%y = {self.ops['max']} %a0, %zero : {self.scalar}", zero=True
                )
            case "transpose":
                body = f"%y = {self.ops['sub']} %zero, %a0 : {self.scalar}"
                self._generic(layer, out, ij, [(x, f"{h}ji")], body, zero=True)
            case "add":
                self._generic(layer, out, ij, [(x, ij), (sources[1], ij)], self._binary("add"))
            case "bias":
                self._generic(layer, out, ij, [(x, ij), (self._param(layer, node.shape[1:]), "j")], self._binary("add"))
            case "dense":
                inner, outer = self.shapes[x][-1], node.shape[1]
                weight, order = ((outer, inner), "jk") if node.numbers[0] else ((inner, outer), "kj")
                self._contract(layer, out, [(x, f"{h}ik"), (self._param(layer, weight), order)])
            case "times":
                self._contract(layer, out, [(x, f"{h}ik"), (sources[1], f"{h}kj")])
            case "times transposed":
                self._contract(layer, out, [(x, f"{h}ik"), (sources[1], f"{h}jk")])
            case "rows less their sum":
                self._reduce(layer, x, out, "add", "sub", kept="i", gone="j")
            case "columns over their largest":
                self._reduce(layer, x, out, "max", "max", kept="j", gone="i")
            case "slice":
                self._slice(x, out, *node.numbers)
            case "convolve" | "filter" | "pool":
                assert node.windows is not None
                self._windows(layer, x, out, node.windows)
            case "reshape":
                self._reshape(x, out)
            case _:
                types = ", ".join(self._type(s) for s in sources)
                dim = node.numbers[0] + len(h)
                self.lines.append(
                    f"{out} = tensor.concat dim({dim}) {', '.join(sources)} : ({types}) -> {self._type(out)}"
                )

    def _reshape(self, x: str, out: str) -> None:
        """Through the flat rows, as imported models have it."""
        heads = [self.spec.heads] if self.spec.heads else []
        last = len(heads)
        groups = f"[{'[0], ' if heads else ''}[{last}, {last + 1}]]"
        flat = f"tensor<{'x'.join(str(n) for n in [*heads, prod(self.shapes[x][last:])])}x{self.scalar}>"
        self.lines += [
            f"{out}f = tensor.collapse_shape {x} {groups} : {self._type(x)} into {flat}",
            f"{out} = tensor.expand_shape {out}f {groups} output_shape {list(self.shapes[out])} "
            f": {flat} into {self._type(out)}",
        ]

    def _windows(self, layer: str, x: str, out: str, drawn: DrawnWindows) -> None:
        h, heads, places, window = self.h, len(self.h), drawn.places, f"{out}w"
        shapes = drawn.shapes(self.shapes[x], heads)
        self.shapes |= {window: shapes[-1]}
        types = [self._typed(shape) for shape in shapes]
        fill = "0.0 : f32" if self.scalar == "f32" else f"0 : {self.scalar}"
        self.lines += drawn.written(x, out, types, fill, heads)
        sizes = shapes[-1][heads + 2 :]
        product = f"%p = {self.ops['mul']} %a0, %a1 : {self.scalar}\n%y = {self.ops['add']} %o, %p : {self.scalar}"
        if drawn.kind == CONVOLVE:
            weight = self._param(layer, (self.shapes[out][-1], self.shapes[x][-1], *sizes))
            sources = [(window, f"{h}ik{places}"), (weight, f"jk{places}")]
            self._generic(layer, out, f"{h}ij", sources, product, dims=f"{h}ijk{places}", init=True)
        elif drawn.kind == FILTER and places:
            sources = [(window, f"{h}ij{places}"), (self._param(layer, sizes), places)]
            self._generic(layer, out, f"{h}ij", sources, product, dims=f"{h}ij{places}", init=True)
        else:
            body = f"%y = {self.ops['max']} %o, %a0 : {self.scalar}"
            if places:
                self._generic(
                    layer, out, f"{h}ij", [(window, f"{h}ij{places}")], body, dims=f"{h}ij{places}", init=True
                )
            else:
                body = f"%y = {self.ops['sub']} %zero, %a0 : {self.scalar}"
                self._generic(layer, out, f"{h}ij", [(window, f"{h}ij")], body, zero=True)

    def _contract(self, layer: str, out: str, sources: list[tuple[str, str]]) -> None:
        body = f"%p = {self.ops['mul']} %a0, %a1 : {self.scalar}\n%y = {self.ops['add']} %o, %p : {self.scalar}"
        self._generic(layer, out, f"{self.h}ij", sources, body, dims=f"{self.h}ijk", init=True)

    def _reduce(self, layer: str, x: str, out: str, combine: str, apply: str, *, kept: str, gone: str) -> None:
        h, stat = self.h, f"{out}s"
        extent = self.shapes[x][-2 if kept == "i" else -1]
        self.shapes[stat] = (*self.shapes[x][: len(h)], extent)
        body = f"%y = {self.ops[combine]} %o, %a0 : {self.scalar}"
        self._generic(f"{layer}.stat", stat, h + kept, [(x, f"{h}ij")], body, dims=f"{h}{kept}{gone}", init=True)
        self._generic(layer, out, f"{h}ij", [(x, f"{h}ij"), (stat, h + kept)], self._binary(apply))

    def _slice(self, x: str, out: str, dim: int, start: int) -> None:
        rank = len(self.shapes[out])
        starts = [start if d == dim + len(self.h) else 0 for d in range(rank)]
        sizes, ones = list(self.shapes[out]), [1] * rank
        kinds = f"{self._type(x)} to {self._type(out)}"
        self.lines.append(f"{out} = tensor.extract_slice {x}{starts} {sizes} {ones} : {kinds}")

    def _binary(self, op: str) -> str:
        return f"%y = {self.ops[op]} %a0, %a1 : {self.scalar}"

    def _generic(
        self, layer: str, out: str, written: str, sources: list[tuple[str, str]], body: str, *, dims: str = "",
        init: bool = False, zero: bool = False,
    ) -> None:  # fmt: skip
        """One linalg.generic over `dims` (by default those written); a sum or maximum starts from a constant."""
        dims = dims or written
        space = ", ".join(dims)
        maps = [f"affine_map<({space}) -> ({', '.join(used)})>" for used in (*(u for _, u in sources), written)]
        iterators = ", ".join('"parallel"' if d in written else '"reduction"' for d in dims)
        names, types = ", ".join(s for s, _ in sources), ", ".join(self._type(s) for s, _ in sources)
        arguments = ", ".join([*(f"%a{i}: {self.scalar}" for i in range(len(sources))), f"%o: {self.scalar}"])
        start, kind = f"{out}e", self._type(out)
        self.lines.append(f"{start} = tensor.empty() : {kind}")
        constant = "0.0" if self.scalar == "f32" else "0"
        if init:
            self.lines.append(f"{out}c = arith.constant {constant} : {self.scalar}")
            self.lines.append(f"{out}f = linalg.fill ins({out}c : {self.scalar}) outs({start} : {kind}) -> {kind}")
            start = f"{out}f"
        inside = f"%zero = arith.constant {constant} : {self.scalar}\n" if zero else ""
        self.lines.append(
            f"{out} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{iterators}]}} "
            f'ins({names} : {types}) outs({start} : {kind}) attrs = {{penstock.layer = "{layer}"}} {{\n'
            f"^bb0({arguments}):\n{inside}{body}\nlinalg.yield %y : {self.scalar}\n}} -> {kind}"
        )

    def _param(self, layer: str, shape: tuple[int, ...]) -> str:
        name, value = f"{layer}.weight", f"%{layer}w"
        if self.scalar == "f32":
            self.params[name] = self.generator.standard_normal(shape).astype(np.float32)
        else:
            self.params[name] = self.generator.integers(-9, 9, shape, endpoint=True).astype(self.spec.kind)
        self.shapes[value] = shape
        kind = '{penstock.name = "' + name + '", penstock.kind = "param"}'
        self.arguments.append(f"{value}: {self._type(value)} {kind}")
        return value

    def _full(self, shape: tuple[int, int]) -> tuple[int, ...]:
        return (self.spec.heads, *shape) if self.spec.heads else shape

    def _type(self, value: str) -> str:
        return self._typed(self.shapes[value])

    def _typed(self, shape: Sequence[int]) -> str:
        return f"tensor<{'x'.join(str(d) for d in shape)}x{self.scalar}>"


@dataclass
class Knobs:
    """Choices taken one after the other from a list of small numbers; when it is used up, each is the first one."""

    numbers: tuple[int, ...]
    taken: int = 0

    def choose(self, options: Sequence[Choice]) -> Choice:
        number = self.numbers[self.taken] if self.taken < len(self.numbers) else 0
        self.taken += 1
        return options[number % len(options)]


def knobs(count: int = 30) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, 11), min_size=count, max_size=count).map(tuple)


@dataclass(frozen=True)
class Case:
    """One graph under one design."""

    graph: GraphSpec
    knobs: tuple[int, ...]

    def lowered(self) -> Lowered:
        program = build_graph(self.graph)
        return lower(program, turned(program, self.knobs))


def cases() -> st.SearchStrategy[Case]:
    return st.builds(Case, graph_specs(), knobs())


def turned(program: Program, numbers: tuple[int, ...]) -> Design:
    """The legal design that the numbers mean; none of them mean whole dims, one lane, one kernel, plain memory."""
    knob, kernels, groups = Knobs(numbers), dict[str, KernelDesign](), dict[str, int]()
    grouping, port_bits = knob.choose(["fused", "unfused", "some"]), knob.choose([8, 512, 64, 128, 32])
    stripes = knob.choose([1, 2, 1, 8, 1, 4])
    group, graph = 0, read_graph(program.module)
    dims = Dims(graph)
    sizes = {number: knob.choose(sizes_of(dims, number)) for number in dims.sizes}
    for operation in graph.operations:
        trips = [sizes[dims.of_loop(operation, d)] for d in range(len(operation.trips))]
        tile = tuple(knob.choose(divisors(t)[::-1]) for t in trips)
        unroll = tuple(knob.choose(divisors(t)) for t in tile)
        order = knob.choose(list(itertools.permutations(range(len(tile)))))
        kernels[operation.layer] = KernelDesign(tile, unroll, order, knob.choose(["rom", "stream"]))
        groups[operation.layer] = group
        group += {"fused": 0, "unfused": 1, "some": knob.choose([0, 1])}[grouping]
    return Design(
        platform="u55c", clock_mhz=300.0, kernels=kernels, groups=groups, port_bits=port_bits, stripes=stripes
    )
