"""Nodes of ONNX that hold nodes: branches, loops of known length and the file's own functions, written out.

What stands inside comes node by node: whoever takes them computes what is known before the next is asked for, so that
the condition of a loop may come from numbers of its last turn. Names inside get a prefix: each turn has its own.
"""

# protobuf's messages come with partial types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.onnx_walk import graphs_of

MOST_NODES = 20_000
"""That may come of branches, loops and functions, whatever stands in them."""
_MOST_DEEP = 32
_GRAPHS = ("If", "Loop", "Scan")
DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass
class WritingOut:
    """`known` gives the numbers of a value if they do not depend on the inputs, `shape` the shape of any value."""

    functions: Mapping[tuple[str, str], onnx.FunctionProto]
    known: Callable[[str], Array | None]
    shape: Callable[[str], tuple[int, ...]]
    model: str
    left: int = MOST_NODES
    deep: list[str] = field(default_factory=list[str])

    def holds_nodes(self, node: onnx.NodeProto) -> bool:
        if node.domain in DEFAULT_DOMAINS and node.op_type in _GRAPHS:
            return True
        return (node.domain, node.op_type) in self.functions

    def nodes(self, node: onnx.NodeProto, name: str) -> Iterator[onnx.NodeProto]:
        """In an order in which they can be computed; the last ones give `node`'s results their names."""
        where = f"node {name!r} of {self.model}"
        if len(self.deep) >= _MOST_DEEP:
            raise _refused(f"{node.op_type} stands in {_MOST_DEEP} others", where, "nothing stands so deep inside")
        self.deep.append(name)
        writers = {"If": self._branch, "Loop": self._loop, "Scan": self._scan}
        function = self.functions.get((node.domain, node.op_type))
        inner = writers[node.op_type](node, name, where) if function is None else _called(function, node, name)
        for one in inner:
            self.left -= 1
            if self.left < 0:
                raise _refused(
                    f"written out, its loops and functions have more than {MOST_NODES:,} nodes", where,
                    f"at most {MOST_NODES:,}",
                )  # fmt: skip
            yield one
        self.deep.pop()

    def _branch(self, node: onnx.NodeProto, name: str, where: str) -> Iterator[onnx.NodeProto]:
        condition = self._number(node.input[0], f"the condition of If ({node.input[0]!r})", where)
        graph = _graph(node, "then_branch" if condition else "else_branch")
        yield from _inside(graph, {}, f"{name}/")
        yield from _named(_results(graph, {}, f"{name}/"), node.output)

    def _loop(self, node: onnx.NodeProto, name: str, where: str) -> Iterator[onnx.NodeProto]:
        body, (count, first, *_) = _graph(node, "body"), (*node.input, "", "")
        turns = self._number(count, f"the number of turns of Loop ({count!r})", where) if count else None
        goes_on = self._number(first, f"the condition of Loop ({first!r})", where) if first else 1
        state, rows, turn = list(node.input[2:]), list[list[str]](), 0
        while goes_on and (turns is None or turn < turns):
            prefix = f"{name}/{turn}/"
            yield _constant(np.asarray(turn, np.int64), f"{prefix}turn")
            yield _constant(np.asarray(True), f"{prefix}goes_on")
            given = (f"{prefix}turn", f"{prefix}goes_on", *state)
            names = dict(zip((entry.name for entry in body.input), given, strict=False))
            yield from _inside(body, names, prefix)
            condition, *results = _results(body, names, prefix)
            state, kept = results[: len(state)], results[len(state) :]
            rows.append(kept)
            goes_on = self._number(condition, "whether Loop goes on", where)
            turn += 1
        yield from _named(state, node.output)
        yield from _stacked(rows, list(node.output)[len(state) :], [0] * len(body.output), name, where)

    def _scan(self, node: onnx.NodeProto, name: str, where: str) -> Iterator[onnx.NodeProto]:
        body, told = _graph(node, "body"), {a.name: helper.get_attribute_value(a) for a in node.attribute}
        count = int(told["num_scan_inputs"])
        state, series = list(node.input)[: len(node.input) - count], list(node.input)[len(node.input) - count :]
        many = len(body.output) - len(state)
        axes = list(told.get("scan_input_axes", [0] * count))
        backwards, out_backwards = told.get("scan_input_directions"), told.get("scan_output_directions")
        lengths = {self.shape(x)[axis] for x, axis in zip(series, axes, strict=True)}
        if len(lengths) != 1:
            raise _refused(f"Scan goes over series of {sorted(lengths)} steps", where, "all are as long")
        (turns,), rows = lengths, list[list[str]]()
        for turn in range(turns):
            prefix, taken = f"{name}/{turn}/", list[str]()
            for place, (x, axis) in enumerate(zip(series, axes, strict=True)):
                at = turns - 1 - turn if backwards and backwards[place] else turn
                yield _constant(np.asarray(at, np.int64), f"{prefix}at{place}")
                yield _node("Gather", [x, f"{prefix}at{place}"], f"{prefix}step{place}", axis=axis)
                taken.append(f"{prefix}step{place}")
            names = dict(zip((entry.name for entry in body.input), (*state, *taken), strict=True))
            yield from _inside(body, names, prefix)
            results = _results(body, names, prefix)
            state = results[: len(state)]
            rows.append(results[len(state) :])
        yield from _named(state, node.output)
        if out_backwards:
            turned = [reversed(c) if b else c for c, b in zip(zip(*rows, strict=True), out_backwards, strict=True)]
            rows = [list(row) for row in zip(*turned, strict=True)]
        out_axes = list(told.get("scan_output_axes", [0] * many))
        yield from _stacked(rows, list(node.output)[len(state) :], out_axes, name, where)

    def _number(self, name: str, what: str, where: str) -> int:
        value = self.known(name)
        if value is None or value.size != 1:
            raise _refused(
                f"{what} depends on the model's inputs", where, "what runs, and how often, is known at compile time"
            )
        return int(np.ravel(value)[0])


def _called(function: onnx.FunctionProto, node: onnx.NodeProto, name: str) -> Iterator[onnx.NodeProto]:
    """A function sees nothing but its own: every name that it does not get is one of its own."""
    prefix, given = f"{name}/", list(node.input)
    names = {x: given[i] if i < len(given) else "" for i, x in enumerate(function.input)}
    attributes = {a.name: a for a in (*function.attribute_proto, *node.attribute)}
    for inner in function.node:
        yield _filled(_renamed(inner, names, prefix, own=True), attributes)
    yield from _named([names[x] for x in function.output], node.output)


def _inside(graph: onnx.GraphProto, names: dict[str, str], prefix: str) -> Iterator[onnx.NodeProto]:
    """`names` are those under which its own are known outside; it is added to."""
    for tensor in graph.initializer:
        if tensor.name not in names:
            names[tensor.name] = prefix + tensor.name
            yield _node("Constant", [], names[tensor.name], value=tensor)
    for node in graph.node:
        yield _renamed(node, names, prefix)


def _results(graph: onnx.GraphProto, names: dict[str, str], prefix: str) -> list[str]:
    """Results of a graph, as they are called outside; one may be a value from outside."""
    own = _own_names(graph)
    return [names.get(x, prefix + x if x in own else x) for x in (entry.name for entry in graph.output)]


def _renamed(node: onnx.NodeProto, names: dict[str, str], prefix: str, *, own: bool = False) -> onnx.NodeProto:
    def called(name: str) -> str:
        return names.get(name, prefix + name if own and name else name)

    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.name = prefix + (node.name or node.op_type)
    made.input[:] = [called(x) for x in node.input]
    for graph in graphs_of(made):
        _rename_within(graph, called)
    for x in node.output:
        if x:
            names[x] = prefix + x
    made.output[:] = [prefix + x if x else "" for x in node.output]
    return made


def _rename_within(graph: onnx.GraphProto, called: Callable[[str], str]) -> None:
    """Names from further out; those of the graph itself stay until it is written out in its turn."""
    own = _own_names(graph)

    def seen(name: str) -> str:
        return name if name in own else called(name)

    for node in graph.node:
        node.input[:] = [seen(x) for x in node.input]
        for inner in graphs_of(node):
            _rename_within(inner, seen)
    for entry in graph.output:
        entry.name = seen(entry.name)


def _filled(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """With the attributes of the call where the function's text says so; what the call leaves out is left out."""
    kept: list[onnx.AttributeProto] = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            kept.append(attribute)
        elif attribute.ref_attr_name in given:
            made = onnx.AttributeProto()
            made.CopyFrom(given[attribute.ref_attr_name])
            made.name = attribute.name
            kept.append(made)
    for graph in graphs_of(node):
        filled = [_filled(inner, given) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(filled)
    copies = [onnx.AttributeProto.FromString(attribute.SerializeToString()) for attribute in kept]
    del node.attribute[:]
    node.attribute.extend(copies)
    return node


def _own_names(graph: onnx.GraphProto) -> set[str]:
    entries: Iterable[Any] = (*graph.input, *graph.initializer)
    return {entry.name for entry in entries} | {x for node in graph.node for x in node.output}


def _graph(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def _named(results: Iterable[str], names: Iterable[str]) -> Iterator[onnx.NodeProto]:
    for result, name in zip(results, names, strict=False):
        if name:
            yield _node("Identity", [result], name)


def _stacked(
    rows: list[list[str]], names: list[str], axes: list[int], name: str, where: str
) -> Iterator[onnx.NodeProto]:
    """What each turn leaves, one behind the other along a new axis."""
    for place, result in enumerate(names):
        if not result:
            continue
        if not rows:
            raise _refused(f"the loop leaves nothing in {result!r}", where, "every dimension has at least one element")
        yield _constant(np.asarray([axes[place]], np.int64), f"{name}/axis{place}")
        parts = [f"{name}/{turn}/row{place}" for turn in range(len(rows))]
        for part, row in zip(parts, rows, strict=True):
            yield _node("Unsqueeze", [row[place], f"{name}/axis{place}"], part)
        yield _node("Concat", parts, result, axis=axes[place])


def _node(kind: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [output], name=output, **attributes)


def _constant(value: Array, name: str) -> onnx.NodeProto:
    return _node("Constant", [], name, value=numpy_helper.from_array(value))


def _refused(what: str, where: str, limit: str) -> PenstockError:
    return PenstockError(
        code="unsupported-op", what=what, where=where, limit=limit,
        hint="export the model without it: with fixed shapes and constants folded",
    )  # fmt: skip
