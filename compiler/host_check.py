"""What the operations of a host part may say. They run beside the service, so what an import wrote is checked whole.

Which ATen operations exist, and which of them only compute, the runtime decides that looks them up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from penstock.compiler.arrays import Array
from penstock.compiler.host_parts import HostParts
from penstock.compiler.layers import Layers
from penstock.compiler.lengths import sizes_of

LAYER = "penstock.layer"
"""As the runtime calls it, which stands above."""
MOST_NODES = 100_000
MOST_ELEMENTS = 1 << 28
"""Of a shape that an operation is given: 1 GiB of float32."""
_OPERATION = re.compile(r"aten\.\w+\.\w+|getitem")
_KINDS = ("value", "float", "dtype", "layout", "memory_format")


class BadHostPartError(ValueError):
    """What is wrong, in words."""


def check_host(parts: HostParts) -> None:
    """That every value is there when it is read, and nothing asks for more than `MOST_ELEMENTS`."""
    graph = at_largest(parts.graph)
    known = _at_start(graph, parts.values)
    _check_nodes(graph["before"], known)
    made = _names(graph["accelerator"]["outputs"])
    for turn in graph.get("between", []):
        _check_names(turn["outputs"], set(made), "the host between two calls")
        known |= set(_names(turn["outputs"]))
        _check_nodes(turn["operations"], known)
    _check_later(graph["accelerator"])
    _check_names(graph["accelerator"]["inputs"], known, "the accelerator")
    known |= set(made)
    _check_nodes(graph["after"], known)
    _check_names(graph["results"], known, "the results")


def _check_later(accelerator: Mapping[str, Any]) -> None:
    """Zeros stand for inputs that the host makes later: they are of a size."""
    for name, shape in accelerator.get("later", {}).items():
        _check_names([name], set(accelerator["inputs"]), "a later input")
        if not isinstance(shape, list):
            raise BadHostPartError(f"the later input {str(name)[:60]!r} has no shape")
        sizes = cast("list[object]", shape)
        whole = [size for size in sizes if type(size) is int and size >= 0]
        if len(whole) < len(sizes) or math.prod(whole) > MOST_ELEMENTS:
            raise BadHostPartError(f"the later input {str(name)[:60]!r} has the shape {str(sizes)[:80]}")


def check_layers(layers: Layers) -> None:
    """The same of a whole model; each call of the accelerator is of a layer that there is."""
    graph = at_largest(layers.graph)
    known = _at_start(graph, layers.values)
    _check_nodes(graph["nodes"], known, calls=len(layers.weights))
    _check_names(graph["results"], known, "the results")


def at_largest(graph: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the host does at the largest lengths that a call may say."""
    most = graph.get("lengths", {})
    if not isinstance(most, dict) or not all(type(size) is int for size in cast("dict[str, object]", most).values()):
        raise BadHostPartError("its lengths are no numbers")
    return cast("Mapping[str, Any]", _at(graph, cast("Mapping[str, int]", most)))


def _at(document: object, most: Mapping[str, int]) -> object:
    """Each {"size": what it follows from} as a number."""
    if isinstance(document, list):
        return [_at(one, most) for one in cast("list[object]", document)]
    if not isinstance(document, dict):
        return document
    found = cast("dict[str, Any]", document)
    inner = found["size"] if found.keys() == {"size"} else None
    if not isinstance(inner, dict) or cast("dict[str, Any]", inner).keys() != {"factors", "offset"}:
        return {key: _at(one, most) for key, one in found.items()}
    factors = cast("dict[str, Any]", inner)["factors"]
    if not isinstance(factors, dict):
        raise BadHostPartError(f"a size is {str(found)[:80]}")
    (size,) = sizes_of([inner])
    if size is None or any(type(n) is not int for _, n in size.factors) or type(size.offset) is not int:
        raise BadHostPartError(f"a size is {str(found)[:80]}")
    if odd := next((name for name, _ in size.factors if name not in most), None):
        raise BadHostPartError(f"a size follows from {str(odd)[:60]!r}, which no call says")
    return size.at(most)


def _at_start(graph: Mapping[str, Any], values: Mapping[str, Array]) -> set[str]:
    inputs = _names([port["name"] for port in graph["inputs"]])
    _check_names(list(graph["tables"]), set(inputs), "a table")
    if not all(isinstance(size, int) for size in graph["tables"].values()):
        raise BadHostPartError("the size of a table is no number")
    return {*inputs, *values}


def _check_nodes(nodes: Sequence[Mapping[str, Any]], known: set[str], calls: int = 0) -> None:
    if len(nodes) > MOST_NODES:
        raise BadHostPartError(f"there are {len(nodes)} operations on the host, at most {MOST_NODES}")
    for node in nodes:
        [name] = _names([node["name"]])
        operation, where = str(node["op"]), f"operation {name!r}"
        if operation == LAYER and calls:
            if type(node["number"]) is not int or not 0 <= node["number"] < calls:
                raise BadHostPartError(f"{where} is of a layer that there is not")
        elif not _OPERATION.fullmatch(operation):
            raise BadHostPartError(f"{where} is {operation[:60]!r}, which is no operation of ATen")
        elif not isinstance(node["layer"], str) or not isinstance(node["kwargs"], dict):
            raise BadHostPartError(f"{where} does not say what it is of")
        if not isinstance(node["args"], list):
            raise BadHostPartError(f"{where} has no list of arguments")
        arguments = cast("list[object]", [*node["args"], *node.get("kwargs", {}).values()])
        for argument in arguments:
            _check_argument(argument, known, where)
        known.add(name)


def _check_argument(value: object, known: set[str], where: str) -> None:
    match value:
        case list():
            parts = cast("list[object]", value)
            sizes = [part for part in parts if type(part) is int]
            if len(sizes) == len(parts) and math.prod(abs(size) for size in sizes if size) > MOST_ELEMENTS:
                raise BadHostPartError(f"{where} is given the shape {str(sizes)[:80]}, over {MOST_ELEMENTS} elements")
            for part in parts:
                _check_argument(part, known, where)
        case dict():
            [(kind, text)] = cast("dict[str, object]", value).items()
            if kind not in _KINDS:
                raise BadHostPartError(f"{where} has an argument of the kind {kind[:40]!r}")
            if kind == "value" and text not in known:
                raise BadHostPartError(f"{where} reads {str(text)[:60]!r}, which nothing before it computes")
        case str() | int() | float() | None:
            pass
        case _:
            raise BadHostPartError(f"{where} has an argument {str(value)[:60]!r}")


def _check_names(names: Sequence[object], known: set[str], who: str) -> None:
    for name in names:
        if name not in known:
            raise BadHostPartError(f"{who} reads {str(name)[:60]!r}, which nothing computes")


def _names(found: Sequence[object]) -> list[str]:
    names = [name for name in found if isinstance(name, str) and name]
    if len(names) < len(found):
        raise BadHostPartError("a value has no name")
    return names
