"""What converters and FIFOs between the kernels of a design hold, in bits of each channel.

As the model has it, FIFOs hold what waits in a run in which none is full. As they need it, tokens may come later where
that costs no time; that takes as long as a dozen looks at a setting. It may be too little, which a few simulated runs
say: they take two or three times as long again. All speak of the tensors that kernels hand over
(`profiling/handed_over.py`), as does what unfused kernels would hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.design import Design
from penstock.compiler.dialects.types import tensor_bits
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.fifo import prefetched, seen_depths, waiting_depths
from penstock.dse.support.budgets import QUICKLY_MODELLED
from penstock.profiling.handed_over import handed_over
from penstock.profiling.network import TaskNetwork

_MUCH = 0.15
"""Of what unfused kernels would hold: StreamTensor's designs hold so much."""
Held = Callable[[Evaluator, Evaluation, TaskNetwork], dict[str, int]]
"""Of a design and its network."""


def held_as_modelled(_: Evaluator, one: Evaluation, network: TaskNetwork) -> dict[str, int]:
    fifos = {c.name: c.bits * max(1, c.high_water) for c in one.figures.channels if c.kind == "stream"}
    held = {**converters_of(network), **fifos}
    return {name: held[name] for name in sorted(handed_over(network)) if name in held}


def held_as_needed(evaluator: Evaluator, one: Evaluation, network: TaskNetwork) -> dict[str, int]:
    """The same as modelled where no schedule says what is needed."""
    return _with_depths(evaluator, one, network, _needed(evaluator, one, network) or {})


def held_as_sized(evaluator: Evaluator, design: Design) -> dict[str, int]:
    """Of a design whose FIFOs have their depths."""
    network, depths = evaluator.assembler.network(design), design.fifo_depths
    channels = [network.channels[name] for name in sorted(handed_over(network))]
    return {c.name: c.bits * c.words * depths.get(c.name, c.depth) for c in channels}


def needs_more_than(bits: float, evaluator: Evaluator, one: Evaluation, *, seen: bool = False) -> bool:
    """Whether it is known that FIFOs and converters need more between kernels; what is told to suffice may be `seen`
    not to."""
    if bits == inf:
        return False
    network = evaluator.assembler.network(one.design)
    needed = _needed(evaluator, one, network)
    if needed is None:
        return False
    if sum(_with_depths(evaluator, one, network, needed).values()) > bits:
        return True
    if not seen:
        return False
    depths = seen_depths(network, evaluator.platform, evaluator.clock_mhz, needed, _prefetched(one))
    return sum(_with_depths(evaluator, one, network, depths).values()) > bits


def _needed(evaluator: Evaluator, one: Evaluation, network: TaskNetwork) -> Mapping[str, int] | None:
    """The depth of each FIFO."""
    most = _prefetched(one)
    return waiting_depths(network, evaluator.platform, evaluator.clock_mhz, one.figures.latency, most)


def _prefetched(one: Evaluation) -> Mapping[str, int]:
    return prefetched(one.figures.channels, one.design.prefetch_bits)


def _with_depths(
    evaluator: Evaluator, one: Evaluation, network: TaskNetwork, depths: Mapping[str, int]
) -> dict[str, int]:
    """Of FIFOs with these depths, all others as modelled."""
    held = held_as_modelled(evaluator, one, network)
    return held | {name: network.channels[name].bits * depths[name] for name in held if name in depths}


def held_between(evaluator: Evaluator, one: Evaluation, held: Held = held_as_modelled) -> int:
    """Bits that kernels hand over and converters and FIFOs hold meanwhile."""
    return sum(held(evaluator, one, evaluator.assembler.network(one.design)).values())


def between_kernels(graph: Graph) -> int:
    """Bits of all tensors that are made by a kernel and read by another: what unfused kernels would have to hold."""
    read = {value for node in graph.nodes for value in node.inputs}
    return sum(tensor_bits(op.result) for op in graph.operations if op.result in read)


def much_between(graph: Graph) -> float:
    """More is worth some effort, and a little time. Of few kernels nothing is: what their FIFOs hold is small."""
    return _MUCH * between_kernels(graph) if len(graph.operations) > QUICKLY_MODELLED else inf


def converters_of(network: TaskNetwork) -> dict[str, int]:
    """How many bits each converter holds."""
    return {name: c.bits * c.words * c.depth for name, c in network.channels.items() if c.kind == "block"}
