"""Which results of a layer are inputs of the next one as they leave, so that one start may run all layers.

That holds where the host computes nothing between two layers of what the first of them answered: what else enters a
layer is known before the first one starts, and what else leaves it is looked at after the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.compiler.host_check import LAYER
from penstock.compiler.program import Program


@dataclass(frozen=True)
class Feeds:
    """`ports` has an input's name for the number of each result that feeds it; else `obstacle` says what is between."""

    ports: Mapping[int, str] = field(default_factory=dict[int, str])
    obstacle: str = ""


class _BetweenError(Exception):
    """What stands between two layers, in words."""


def feeds_of(program: Program) -> Feeds:
    """Of a program whose layers share the accelerator."""
    if program.layers is None:
        return Feeds(obstacle="no layers share the accelerator")
    try:
        visible = _visible_pairs(program.layers.graph["nodes"])
        ports = {_result(program, one): _input(program, other) for one, other in visible}
        for result, port in ports.items():
            _check_form(program, result, port)
    except _BetweenError as found:
        return Feeds(obstacle=str(found))
    return Feeds(ports)


def _visible_pairs(nodes: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Results and inputs of a layer, as the model sees them, where a result goes from each layer into the next."""
    late: set[str] = set()
    results: dict[str, tuple[str, int]] = {}
    found: list[list[tuple[int, int]]] = []
    before = ""
    for node in nodes:
        given = _values(node["args"]) + _values(list(node.get("kwargs", {}).values()))
        is_late = not late.isdisjoint(given)
        name = str(node["name"])
        if node["op"] == "getitem" and given and given[0] == before:
            results[name] = (before, int(node["args"][1]))
        if node["op"] == LAYER:
            if node["number"] != len(found):
                raise _BetweenError("the model calls its layers in another order than they stand")
            fed: list[tuple[int, int]] = []
            for place, value in enumerate(given):
                owner, number = results.get(value, ("", 0))
                if value in late and (owner != before or not before):
                    by = "the host, or a layer before the last, makes of a layer's answer"
                    raise _BetweenError(f"layer {len(found)} is given what {by}")
                if value in late:
                    fed.append((number, place))
            found.append(fed)
            before, is_late = name, True
        if is_late:
            late.add(name)
    fed = found[1] if len(found) > 1 else []
    if not fed:
        raise _BetweenError("no layer is given what the one before it answers")
    if any(one != fed for one in found[1:]):
        raise _BetweenError("not every layer is given the same results of the one before it")
    return fed


def _values(arguments: Any) -> list[str]:
    """The names that arguments mention, however deep."""
    found: list[str] = []
    for one in arguments:
        if isinstance(one, list):
            found += _values(cast(Any, one))
        elif isinstance(one, dict) and "value" in one:
            found.append(str(cast(Any, one)["value"]))
    return found


def _result(program: Program, number: int) -> int:
    """The accelerator's result that a layer's answer is."""
    hidden = {state.output for state in program.states}
    host = program.host.graph if program.host else None
    count = len(host["results"]) if host else len(program.signature.outputs)
    whole = [index for index in range(count) if index not in hidden][number]
    if host is None:
        return whole
    if host.get("between"):
        raise _BetweenError("the host computes in the middle of a layer")
    made = list(host["accelerator"]["outputs"])
    if host["results"][whole] not in made:
        raise _BetweenError("the host computes with a layer's answer before the next layer")
    return made.index(host["results"][whole])


def _input(program: Program, number: int) -> str:
    """The accelerator's input that an argument of a layer is."""
    entering, held = {state.input for state in program.states}, program.held_inputs(0)
    passed = [port.name for port in program.signature.inputs if port.name not in held]
    host = program.host.graph if program.host else None
    count = len(host["inputs"]) if host else len(passed)
    whole = [index for index in range(count) if index not in entering][number]
    if host is None:
        return passed[whole]
    name = str(host["inputs"][whole]["name"])
    read = {value for node in (*host["before"], *host["after"]) for value in _values(node["args"])}
    if name in read or list(host["accelerator"]["inputs"]).count(name) != 1 or name in host["results"]:
        raise _BetweenError("the host computes with what a layer is given")
    return passed[list(host["accelerator"]["inputs"]).index(name)]


def _check_form(program: Program, result: int, port: str) -> None:
    made = program.signature.outputs[result]
    given = next(one for one in program.signature.inputs if one.name == port)
    if made.shape != given.shape:
        raise _BetweenError(f"a layer answers a tensor of {made.shape}, and the next one takes {given.shape}")
    if made.dtype != given.dtype or made.quant != given.quant:
        raise _BetweenError(f"a layer answers {made.dtype}, and the next one takes {given.dtype} of a scale of its own")
