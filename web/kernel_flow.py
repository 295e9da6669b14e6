"""The tasks and FIFOs of a C++ kernel as the drawing of a dataflow has them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.web.dataflow_view import COMPUTES, FlowEdge, FlowGraph, FlowNode
from penstock.web.text import Document


def view_kernel_flow(found: Document, part: str) -> FlowGraph | None:
    """None where there is nothing to draw: one task alone. `part` is what the lines of this source are called by."""
    if len(found["tasks"]) < 2:
        return None
    slowest: dict[str, int] = {}
    lines: dict[str, int] = {}
    for loop in found["loops"]:
        slowest[loop["task"]] = max(slowest.get(loop["task"], 1), loop["ii"])
        line = loop["where"].split(":")[1:2]
        if line and line[0].isdecimal():
            lines.setdefault(loop["task"], int(line[0]))
    nodes = tuple(_node(task, slowest, lines, part) for task in found["tasks"])
    known = {node.key for node in nodes}
    edges = tuple(
        FlowEdge(
            name=fifo["name"], source=fifo["writer"], target=fifo["reader"], kind="fifo",
            width=fifo["bits"] * fifo["lanes"], depth=fifo["depth"], held=min(fifo["needed"], fifo["depth"]),
            evidence="simulated", memory="", tokens=None,
        )
        for fifo in found["fifos"]
        if fifo["writer"] in known and fifo["reader"] in known
    )  # fmt: skip
    return FlowGraph(nodes, edges, (), "simulated")


def _node(task: Document, slowest: Mapping[str, int], lines: Mapping[str, int], part: str) -> FlowNode:
    name, span = task["name"], task["end"] - task["start"]
    return FlowNode(
        key=name, group=name, kind=COMPUTES, tasks=(name,), die="", ii=slowest.get(name, 1), latency=span,
        busy=task["busy"], waited=max(0, span - task["busy"]), area={}, critical=False,
        at=f"#{part}-{lines[name]}" if name in lines else f"#{part}-tasks",
    )  # fmt: skip
