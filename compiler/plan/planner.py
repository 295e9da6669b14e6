"""The plan of a design: its kernels, one a group, each with its parts in program order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.analysis.lengths import SizedGraph
from penstock.compiler.design import Design
from penstock.compiler.dialects.itensor_types import LayoutAttr
from penstock.compiler.names import Names
from penstock.compiler.plan.checks import check_layers
from penstock.compiler.plan.computations import Computations, KnownComputations
from penstock.compiler.plan.frames import Frame, Frames
from penstock.compiler.plan.kernels import KernelPlanner, Tensors
from penstock.compiler.plan.names import group_suffix
from penstock.compiler.plan.pace import ports_for
from penstock.compiler.plan.parts import Part, label_parts
from penstock.compiler.plan.port_tasks import assign_ports
from penstock.compiler.platforms import Platform


@dataclass(frozen=True, eq=False)
class Kernel:
    """The kernels of a group as one: which tensors it reads and makes, and the parts that do so."""

    frame: Frame
    parts: Sequence[Part]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a design becomes at the itensor level."""

    kernels: Sequence[Kernel]
    layouts: Mapping[SSAValue, LayoutAttr | None]
    """How tensors lie in external memory that are not plain there; all by the values of the graph."""


class Planner:
    """The plans of one graph's designs on one platform. What was found for one design is not looked for again.

    `known` is what planners of the same program have found, whose graphs are padded otherwise.
    """

    def __init__(self, graph: Graph, platform: Platform, known: KnownComputations | None = None) -> None:
        self.graph = graph
        self.platform = platform
        known = known or KnownComputations()
        self._orders = known.orders
        self._params = frozenset[SSAValue](a for a in graph.arguments if graph.is_param(a))
        self._names: dict[SSAValue, str] = {argument: graph.name(argument) for argument in graph.arguments}
        self._computations = Computations(graph, platform, known)
        self._frames = Frames(graph)
        self._sized = SizedGraph(graph)

    def plan(self, design: Design) -> Plan:
        check_layers(design, self.graph, self._sized)
        frames = self._frames.of(design)
        computing = {one.layer: self._computations.of(one, design) for one in self.graph.operations}
        on_chip: dict[SSAValue, None] = {}
        for operation in self.graph.operations:
            operands = computing[operation.layer].operands
            on_chip |= {v: None for v, order in zip(operation.inputs, operands, strict=True) if order is None}
        # where arguments are arrays on the chip nothing is packed: their banks deliver any slice as it is
        port_bits = 0 if self.platform.has_array_arguments else design.port_bits
        tensors = Tensors(
            port_bits,
            ports_for(design, self.platform),
            dict(self._names),
            dict(on_chip),
            Names(self.graph.by_layer),
            self._sized.grains,
        )
        kernels: list[Kernel] = []
        for frame in frames:
            suffix = group_suffix(frame.number) if kernels else ""
            kernel = KernelPlanner(design, self.graph, self._orders, self._params, computing, frame, tensors, suffix)
            kernels.append(Kernel(frame, kernel.parts()))
        label_parts([kernel.parts for kernel in kernels])
        assign_ports([kernel.parts for kernel in kernels], design, self.platform)
        return Plan(kernels, tensors.layouts)
