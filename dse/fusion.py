"""Which kernels stand together on the chip, and which pass tensors through external memory.

Fused kernels pay with memory: where one makes its result in another order than the next one reads it, a converter
holds what lies between. Groups pay with traffic: what one makes for another is written and read. `greedy_groups` is
StreamTensor's walk under a budget of memory a group; `exact_groups` finds the least traffic under the same budget.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.ir import SSAValue

from compiler.analysis.converting import converter_bits
from compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp
from compiler.analysis.orders import Orders, dtype_of, plan_of
from compiler.design import Design
from compiler.dialects.itensor_types import ITensorType
from compiler.dialects.types import tensor_type
from dse.linear import LinearProgram

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
        """The converters' bits in each group."""
        found = dict.fromkeys(groups.values(), 0)
        for (maker, reader), bits in self.edges.items():
            if groups[maker] == groups[reader]:
                found[groups[maker]] += bits
        return found

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


def fusion_graph(graph: Graph, design: Design) -> FusionGraph:
    """Of one design, as if all its kernels were fused. Slices and the like belong to whoever reads them."""
    orders = Orders(design, graph, graph.nodes)
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
            case Reshape():
                trace(node.source, orders.reshaped(node)[0], reader, bits)

    for operation in graph.operations:
        plan = plan_of(operation, design)
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
    used: list[int] = []
    groups: dict[str, int] = {}
    for kernel in graph.kernels:
        costs: dict[int, int] = defaultdict(int)
        for (maker, reader), bits in graph.edges.items():
            if reader == kernel:
                costs[groups[maker]] += bits
        latest = max(costs, default=len(used))
        if latest == len(used) or used[latest] + costs[latest] > budget:
            groups[kernel] = len(used)
            used.append(0)
        else:
            groups[kernel] = latest
            used[latest] += costs[latest]
    return groups


def exact_groups(graph: FusionGraph, budget: int, most: int) -> dict[str, int] | None:
    """The least traffic with at most so many groups; None where every choice needs more memory somewhere."""
    program = LinearProgram("fusion")
    numbers = range(most)
    lies = {kernel: [program.choice() for _ in numbers] for kernel in graph.kernels}
    for place in lies.values():
        program.row(dict.fromkeys(place, 1), "==", 1)
    inside: dict[int, dict[int, float]] = {g: {} for g in numbers}
    for (maker, reader), bits in graph.edges.items():
        # never back to an earlier group: what is made up to a group holds all that is read up to it
        for g in numbers[:-1]:
            earlier = {lies[reader][h]: 1.0 for h in range(g + 1)} | {lies[maker][h]: -1.0 for h in range(g + 1)}
            program.row(earlier, "<=", 0)
        if bits:
            for g in numbers:
                both = program.choice()
                program.row({both: 1, lies[maker][g]: -1, lies[reader][g]: -1}, ">=", -1)
                inside[g][both] = bits
    for factors in inside.values():
        program.row(factors, "<=", budget)
    for tensor in graph.tensors:
        written = program.choice(0 if tensor.kept or tensor.maker is None else tensor.bits)
        for g in numbers:
            fetched = program.choice(tensor.bits)
            for reader in tensor.readers:
                made = {} if tensor.maker is None else {lies[tensor.maker][g]: 1.0}
                program.row({fetched: 1, lies[reader][g]: -1, **made}, ">=", 0)
            program.row({written: 1, fetched: -1}, ">=", 0)
    solution = program.solve()
    if solution is None:
        return None
    return in_sequence({k: next(g for g in numbers if solution.chosen(place[g])) for k, place in lies.items()})


def in_sequence(groups: Groups) -> dict[str, int]:
    """The same groups, numbered without gaps."""
    numbers = {old: new for new, old in enumerate(sorted(set(groups.values())))}
    return {kernel: numbers[group] for kernel, group in groups.items()}


def tensor_bits(value: SSAValue) -> int:
    """The size of a whole tensor."""
    dtype: Any = dtype_of(value)
    return prod(tensor_type(value).get_shape()) * int(dtype.bitwidth)
