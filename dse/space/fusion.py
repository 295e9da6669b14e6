"""Which kernels stand together on the chip, and which pass tensors through external memory.

Fused kernels pay with memory: where one makes its result in another order than the next one reads it, a converter
holds what lies between, and where paths part and meet again, FIFOs hold whole tensors so that nothing can deadlock.
Groups pay with traffic: what one makes for another is written and read. `greedy_groups` is StreamTensor's walk under a
budget of memory a group; `exact_groups` finds the least traffic under the same budget.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

import networkx as nx
from xdsl.ir import SSAValue

from penstock.compiler.analysis.converting import converter_bits
from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, Windows
from penstock.compiler.design import Design
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.plan.value_orders import ValueOrders, dtype_of, loops_of
from penstock.dse.support.linear import LinearProgram

_MOST_SOLVED = 40

Groups = Mapping[str, int]
"""The group of every kernel; groups run in the order of their numbers."""


@dataclass(frozen=True)
class Tensor:
    """What passes between kernels. An input of the model has no `maker`; a result of it is `kept` outside anyway."""

    bits: int
    maker: str | None
    readers: tuple[str, ...]
    kept: bool = False


@dataclass(frozen=True)
class FusionGraph:
    """Kernels in program order, the converter's bits between each that makes and each that reads, and the tensors."""

    kernels: tuple[str, ...]
    edges: Mapping[tuple[str, str], int]
    tensors: tuple[Tensor, ...]

    def memory(self, groups: Groups) -> dict[int, int]:
        """The bits that converters and FIFOs hold in each group."""
        return {number: self.held({k for k in groups if groups[k] == number}) for number in set(groups.values())}

    def held(self, group: Set[str]) -> int:
        """What kernels hold between them when they are fused. It never shrinks when more kernels join."""
        converters = sum(bits for (maker, reader), bits in self.edges.items() if maker in group and reader in group)
        return converters + _held_where_paths_meet(self.tensors, frozenset(group))

    def traffic(self, groups: Groups) -> int:
        """Bits that are written to and read from external memory beyond what one group for all would move."""
        bits = 0
        for tensor in self.tensors:
            own = None if tensor.maker is None else groups[tensor.maker]
            elsewhere = {groups[reader] for reader in tensor.readers} - {own}
            reads = len(elsewhere) - (tensor.maker is None and bool(elsewhere))
            writes = bool(elsewhere) and tensor.maker is not None and not tensor.kept
            bits += tensor.bits * (reads + writes)
        return bits


@lru_cache(maxsize=1 << 12)
def _held_where_paths_meet(tensors: tuple[Tensor, ...], group: frozenset[str]) -> int:
    """The FIFOs between fused kernels that must hold a whole tensor; all designs of a model share these."""
    paths: nx.Graph[str] = nx.Graph()
    for number, tensor in enumerate(tensors):
        # what comes from outside the group is loaded once, and forked
        source = tensor.maker if tensor.maker is not None and tensor.maker in group else f"load {number}"
        paths.add_edges_from((source, reader, {"bits": tensor.bits}) for reader in tensor.readers if reader in group)
    alone: set[frozenset[str]] = {frozenset(edge) for edge in nx.bridges(paths)}
    return sum(int(paths.edges[pair]["bits"]) for pair in paths.edges if frozenset(pair) not in alone)


def fusion_graph(graph: Graph, design: Design) -> FusionGraph:
    """Of one design, as if all its kernels were fused. Slices and the like belong to whoever reads them."""
    orders = ValueOrders(design, graph, graph.nodes)
    makers: dict[SSAValue, Node] = {node.result: node for node in graph.nodes}
    edges: dict[tuple[str, str], int] = defaultdict(int)
    readers: dict[SSAValue, dict[str, None]] = defaultdict(dict)

    def trace(value: SSAValue, wanted: ITensorType, reader: str, bits: int) -> None:
        """From a value that a kernel reads back to the kernel, or input, that it comes from."""
        node = makers.get(value)
        if node is None:
            if not graph.is_param(value):
                readers[value][reader] = None
            return
        bits += converter_bits(orders.of(value), wanted)
        match node:
            case TensorOp():
                edges[node.layer, reader] += bits
                readers[value][reader] = None
            case Slice():
                trace(node.source, orders.cut(node), reader, bits)
            case Concat():
                for source, (_, size) in zip(node.sources, node.parts, strict=True):
                    trace(source, orders.part(node, size), reader, bits)
            case Windows():
                trace(node.source, orders.slid(node)[0], reader, bits)
            case Reshape():
                trace(node.source, orders.reshaped(node)[0], reader, bits)

    for operation in graph.operations:
        plan = loops_of(operation, design)
        for value, indexing_map in zip(operation.op.inputs, operation.operand_maps, strict=True):
            trace(value, plan.itensor(indexing_map, dtype_of(value)), operation.layer, 0)
    kept = set(graph.returned)
    tensors = tuple(
        Tensor(tensor_bits(value), node.layer if isinstance(node, TensorOp) else None, tuple(found), value in kept)
        for value, found in readers.items()
        for node in (makers.get(value),)
    )
    return FusionGraph(tuple(op.layer for op in graph.operations), dict(edges), tensors)


def greedy_groups(graph: FusionGraph, budget: int) -> dict[str, int]:
    """Each kernel, in program order, joins the latest group that it reads from, if the memory is there."""
    members: list[set[str]] = []
    groups: dict[str, int] = {}
    for kernel in graph.kernels:
        latest = max((groups[maker] for maker, reader in graph.edges if reader == kernel), default=len(members))
        if latest == len(members) or graph.held(members[latest] | {kernel}) > budget:
            latest = len(members)
            members.append(set())
        members[latest].add(kernel)
        groups[kernel] = latest
    return groups


def exact_groups(graph: FusionGraph, budget: int, most: int) -> dict[str, int] | None:
    """The least traffic with at most so many groups; None where every choice needs more memory somewhere.

    What a group holds depends on all of it: a choice that holds too much is ruled out, with all that contain the
    kernels to blame, and the program is solved again.
    """
    apart: list[Set[str]] = [{m, r} for m, r in graph.edges if graph.held({m, r}) > budget]
    for _ in range(_MOST_SOLVED):
        found = _least_traffic(graph, most, apart)
        if found is None:
            return None
        wrong = [{k for k in found if found[k] == g} for g, bits in graph.memory(found).items() if bits > budget]
        if not wrong:
            return found
        apart += [_least_held(graph, group, budget) for group in wrong]
    return None


def _least_traffic(graph: FusionGraph, most: int, apart: Sequence[Set[str]]) -> dict[str, int] | None:
    """Groups with the least traffic such that none of some sets of kernels stands together whole."""
    program = LinearProgram("fusion")
    numbers = range(most)
    lies = {kernel: [program.choice() for _ in numbers] for kernel in graph.kernels}
    for place in lies.values():
        program.row(dict.fromkeys(place, 1), "==", 1)
    for maker, reader in graph.edges:
        # never back to an earlier group: what is made up to a group holds all that is read up to it
        for g in numbers[:-1]:
            earlier = {lies[reader][h]: 1.0 for h in range(g + 1)} | {lies[maker][h]: -1.0 for h in range(g + 1)}
            program.row(earlier, "<=", 0)
    for kernels in apart:
        for g in numbers:
            program.row({lies[kernel][g]: 1 for kernel in kernels}, "<=", len(kernels) - 1)
    for tensor in graph.tensors:
        written = program.choice(0 if tensor.kept or tensor.maker is None else tensor.bits)
        for g in numbers:
            fetched = program.choice(tensor.bits)
            for reader in tensor.readers:
                made = {} if tensor.maker is None else {lies[tensor.maker][g]: 1.0}
                program.row({fetched: 1, lies[reader][g]: -1, **made}, ">=", 0)
            program.row({written: 1, fetched: -1}, ">=", 0)
    solution = program.solve(presolve=False)
    if solution is None:
        return None
    return in_sequence({k: next(g for g in numbers if solution.chosen(place[g])) for k, place in lies.items()})


def _least_held(graph: FusionGraph, group: Set[str], budget: int) -> Set[str]:
    """Kernels of a group that hold too much together, none of which could be left out."""
    for kernel in sorted(group):
        if graph.held(group - {kernel}) > budget:
            group = group - {kernel}
    return group


def in_sequence(groups: Groups) -> dict[str, int]:
    """The same groups, numbered without gaps."""
    numbers = {old: new for new, old in enumerate(sorted(set(groups.values())))}
    return {kernel: numbers[group] for kernel, group in groups.items()}
