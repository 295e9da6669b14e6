"""Over how many banks of external memory a tensor is striped: as many as bring it as fast as its reader takes it."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod

from penstock.compiler.analysis.graph import Node, TensorOp
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.plan.parts import Computing, Order
from penstock.compiler.platforms import Platform

PortsFor = Callable[[float], int]
"""How many ports bring so many bits a cycle."""


def bits_a_cycle(node: Node, computing: Computing | None, order: Order) -> float:
    """What a node takes of an operand at most: all of it in as many cycles as it computes, or a token a cycle."""
    bits = order.bits * order.kind.token_count
    if not isinstance(node, TensorOp) or computing is None:
        return order.bits
    return bits / prod(step.trip for step in computing.plan.steps)


def ports_for(design: Design, platform: Platform) -> PortsFor:
    """A power of two of ports, at most those that the design allows a tensor.

    A platform without a memory of its own fills small ones beside the core, which deliver a word a cycle each.
    """
    if design.stripes == 1 or platform.has_array_arguments:
        return lambda _: 1
    memory, sustained = platform.fastest_memory, float(design.port_bits)
    if memory is not None:
        if design.stripes > memory.ports:
            raise PenstockError(
                code="bad-design", what=f"a tensor on {design.stripes} banks", where="stripes",
                limit=f"{memory.name} of {platform.name} has {memory.ports}", hint=f"at most {memory.ports}",
            )  # fmt: skip
        if not design.few_banks:
            sustained = min(sustained, memory.port_bits_a_cycle(design.clock_mhz))
    most = 1 << (design.stripes.bit_length() - 1)
    return lambda bits: min(most, 1 << (max(1, ceil(bits / sustained)) - 1).bit_length())
