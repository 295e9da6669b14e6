"""How the tool cuts memories on its own account: of the design's own, without a pragma about them.

Where an iteration meets a memory more often than two ports allow at the II that a pragma asks for, or that the ports of
arguments leave, the tool cuts as many banks as that II needs: from the last dimension on, each into as many as the
iteration has places in it at the most. What comes back through a memory is asked first: where its recurrence with usual
adders takes no less than its ports in one piece, it stays so. csynth lists the banks of 29 memories that are cut so, or
are here, of five designs by two generators: 28 are cut as here, and one in two that is in one piece here.
"""

from __future__ import annotations

from math import prod

from penstock.compiler.hls_in.banks import port_bound
from penstock.compiler.hls_in.bounds import IntervalBounds, bounds_of
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.records import Pipeline, Region, graphs
from penstock.compiler.hls_in.storage import KernelArray


def cut_memories(items: list[Region], delays: Delays) -> None:
    pipelines = [(item, bounds_of(item, delays)) for item in graphs(items)]
    own = {array for _, bounds in pipelines for array in bounds.accesses if cut_by_itself(array)}
    own -= {
        array for _, bounds in pipelines for array, met in bounds.accesses.items()
        if not all(arg.linear is not None for node in met for arg in node.index)
    }  # fmt: skip
    for item, bounds in pipelines:
        if isinstance(item, Pipeline):
            _cut(bounds, own, delays)
    for item, _ in pipelines:
        for node in [node for node in item.graph.nodes if node.op == "load"]:
            _hand_on(item.graph, node)


def _hand_on(graph: ValueGraph, load: KernelValue) -> None:
    """A word that the iteration may just have filled is not read from a memory in pieces, but chosen."""
    if load.array is None or not load.array.own_cut or len(load.after) != 1:
        return
    store = load.after[0]
    if store.op == "store" and store.guard is not None and store.index == load.index:
        older = graph.access(
            "load", load.args, load.kind, load.bits, signed=load.signed, array=load.array, line=load.line
        )
        load.op, load.args, load.array = "select", (store.guard, store.args[0], older), None
        load.after.clear()


def cut_by_itself(array: KernelArray) -> bool:
    """Whether the tool may partition a memory, if all addresses are what loop counters decide."""
    return not (array.argument or array.constant or array.partition or array.reshape or array.storage)


def _cut(bounds: IntervalBounds, own: set[KernelArray], delays: Delays) -> None:
    met = {array: nodes for array, nodes in bounds.accesses.items() if not array.registers}
    ports = {array: port_bound(array, nodes, delays.ports_of(array))[0] for array, nodes in met.items()}
    asked = max([bounds.target, *(bound for array, bound in ports.items() if array not in own)])
    for array, bound in ports.items():
        if array in own and bound > (max(asked, bounds.usual) if array in bounds.carried else asked):
            _divide(array, met[array], asked * delays.ports_of(array))


def _divide(array: KernelArray, nodes: list[KernelValue], each: int) -> None:
    """Into so many banks that each is met as often as it can be."""
    wanted = -(-len({(node.op, *(arg.linear for arg in node.index)) for node in nodes}) // each)
    for d in reversed(range(len(array.dims))):
        places = [node.index[d].linear for node in nodes]
        if all(linear is not None and not linear.terms for linear in places):
            array.own_cut[d] = "complete", array.dims[d]  # an access names its piece
            continue
        missing = -(-wanted // prod(factor for other, (_, factor) in array.own_cut.items() if other != d))
        factor = min(len(set(places)), missing, array.dims[d])
        if factor > array.own_cut.get(d, ("", 1))[1]:
            array.own_cut[d] = "cyclic" if factor < array.dims[d] else "complete", factor
