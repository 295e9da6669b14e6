"""How long before the first element of what lies outside can be read by a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.schedule import OperatorLibrary
from penstock.dse.bounds.operators import LeastBody, weighed
from penstock.dse.bounds.overlap import COUNTED

_READ = 1
"""What is written in one cycle is read in a later one."""


@dataclass(frozen=True)
class Loads:
    """Of one graph on one platform. `limits` are amounts of resources, by name."""

    graph: Graph
    bodies: Mapping[str, LeastBody]
    library: OperatorLibrary
    arrays: bool
    """Whether what lies outside lies in arrays on the chip."""
    limits: Mapping[str, int]

    def __call__(self, value: SSAValue) -> int:
        """Of an input, in cycles.

        A memory answers in a later stage; where that is too late in it for a token to leave, one leaves in the next.
        An array of one word is registers, which answer at once; but all of it is one token then.
        """
        memory, rules = self.library.memory, self.library.chains
        if self.arrays and self._may_be_one_word(value):
            return _READ
        late = rules is not None and rules.word_ns >= rules.token_ns
        return (memory.load_latency if self.arrays else memory.external_load_latency) + late + _READ

    def _may_be_one_word(self, value: SSAValue) -> bool:
        """Banks are as many as the lanes that meet them, of several readers at most the product of theirs."""
        readers = [node for node in self.graph.nodes if value in node.inputs]
        lanes = prod(self._most_lanes(one) if isinstance(one, TensorOp) else inf for one in readers)
        return lanes >= prod(tensor_type(value).get_shape())

    def _most_lanes(self, op: TensorOp) -> float:
        """That it could have by itself; less than one does not count."""
        needed = self.bodies[op.layer].needed
        costs = max(weighed(needed, {name: 1 / max(self.limits[name], 1)}) for name in COUNTED)
        return max(2 / costs, 1) if costs else inf
