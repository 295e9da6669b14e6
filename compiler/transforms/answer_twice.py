"""A quantised layer answers twice: exactly for the host, and in the eight bits that the next layer reads.

What lies between two layers is then one memory of integers, whoever carries it from one to the other: the model's graph
gives the next layer the second answer, so layers that are started one by one hand on the same integers as a list of
calls does, and so does the interpreter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from penstock.compiler.feeds import feeds_of
from penstock.compiler.host_check import LAYER
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.transforms.editor import Editor, layer_of
from penstock.compiler.transforms.generics import is_elementwise

NEXT = ".next"
"""Behind the name of a result and its layer: the same once more, as the next layer reads it."""


def answer_twice(editor: Editor, exact: Collection[str] = ()) -> dict[SSAValue, tuple[SSAValue, SSAValue]]:
    """By each of the new results, the one that it repeats and the input that it feeds.

    None where layers feed each other nothing, or by the `exact` inputs, which take what the host is answered.
    """
    terminator = editor.block.last_op
    assert isinstance(terminator, func.ReturnOp)
    arguments = {editor.name(argument): argument for argument in editor.block.args}
    fed = {number: name for number, name in feeds_of(editor.program).ports.items() if name not in exact}
    if not all(_may_stand_twice(terminator.operands[number]) for number in fed):
        return {}
    found: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
    operands = list(terminator.operands)
    for number, name in fed.items():
        made = terminator.operands[number].owner
        assert isinstance(made, linalg.GenericOp)
        again = made.clone()
        again.attributes["penstock.layer"] = StringAttr(editor.free_layer(f"{layer_of(made)}{NEXT}"))
        editor.block.insert_op_after(again, made)
        found[again.results[0]] = made.results[0], arguments[name]
        operands.append(again.results[0])
        port = editor.signature.outputs[number]
        editor.program = _with_result(editor.program, number, replace(port, name=f"{port.name}{NEXT}"))
        editor.signature = Signature(editor.signature.inputs, editor.program.signature.outputs)
    editor.block.erase_op(terminator)
    editor.block.add_op(func.ReturnOp(*operands))
    return found


def handed_on(editor: Editor) -> dict[SSAValue, str]:
    """By each result that a layer hands to the next one, the input that it is there."""
    terminator = editor.block.last_op
    assert isinstance(terminator, func.ReturnOp)
    return {terminator.operands[number]: name for number, name in feeds_of(editor.program).ports.items()}


def _may_stand_twice(value: SSAValue) -> bool:
    return isinstance(value.owner, linalg.GenericOp) and is_elementwise(value.owner)


def _with_result(program: Program, number: int, port: Port) -> Program:
    """With one more result behind all others, which says the same as that one, and which layers are given instead."""
    layers, samples = program.layers, program.samples
    assert layers is not None
    whole, program = _in_host_part(program, number, port)
    hidden = {state.output for state in program.states}
    old, new = (sum(index not in hidden for index in range(place)) for place in whole)
    return replace(
        program,
        signature=Signature(program.signature.inputs, (*program.signature.outputs, port)),
        samples=samples and replace(samples, outputs=(*samples.outputs, samples.outputs[number])),
        layers=replace(layers, graph={**layers.graph, "nodes": _handed_on(layers.graph["nodes"], old, new)}),
        lengths=program.lengths and program.lengths.with_output_again(number),
    )


def _in_host_part(program: Program, number: int, port: Port) -> tuple[tuple[int, int], Program]:
    """Where the old and the new result stand among those of a layer with its host's part, and that part."""
    if program.host is None:
        return (number, len(program.signature.outputs)), program
    graph = program.host.graph
    made = graph["accelerator"]["outputs"]
    value, name = made[number], f"{made[number]}{NEXT}"
    old = graph["results"].index(value)
    changed = {
        **graph,
        "accelerator": {**graph["accelerator"], "outputs": [*made, name]},
        "outputs": [*graph["outputs"], {**graph["outputs"][old], "name": port.name}],
        "results": [*graph["results"], name],
    }
    answered = program.host.outputs
    host = replace(program.host, graph=changed, outputs=(*answered, *answered[old : old + 1]))
    return (old, len(graph["results"])), replace(program, host=host)


def _handed_on(nodes: list[dict[str, Any]], old: int, new: int) -> list[dict[str, Any]]:
    """The model's operations, where layers are given the new answer of the layer before and the host keeps the old."""
    calls = {str(node["name"]): node["args"] for node in nodes if node["op"] == LAYER}
    read = {str(one.get("value")) for given in calls.values() for one in given}
    instead: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for node in nodes:
        name, given = str(node["name"]), node["args"]
        if node["op"] == LAYER:
            found.append({**node, "args": [_renamed(one, instead) for one in given]})
            continue
        found.append(node)
        if name in read and node["op"] == "getitem" and given[0].get("value") in calls and given[1] == old:
            instead[name] = f"{name}{NEXT}"
            found.append({**node, "name": instead[name], "args": [given[0], new]})
    return found


def _renamed(argument: Any, instead: Mapping[str, str]) -> Any:
    name = argument.get("value")
    return {"value": instead[name]} if name in instead else argument
