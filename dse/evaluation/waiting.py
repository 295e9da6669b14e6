"""What converters and FIFOs between the kernels of a design hold, in bits of each channel.

As the model has it, FIFOs hold what waits in a run in which none is full. As they need it, tokens may come later where
that costs no time; that takes as long as a dozen looks at a setting.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.fifo import prefetched, waiting_depths
from penstock.profiling.handed_over import handed_over
from penstock.profiling.network import TaskNetwork

Held = Callable[[Evaluator, Evaluation, TaskNetwork], dict[str, int]]
"""Of a design and its network."""


def held_as_modelled(_: Evaluator, one: Evaluation, network: TaskNetwork) -> dict[str, int]:
    fifos = {c.name: c.bits * max(1, c.high_water) for c in one.figures.channels if c.kind == "stream"}
    held = {**converters_of(network), **fifos}
    return {name: held[name] for name in sorted(handed_over(network)) if name in held}


def held_as_needed(evaluator: Evaluator, one: Evaluation, network: TaskNetwork) -> dict[str, int]:
    """The same as modelled where no schedule says what is needed."""
    held = held_as_modelled(evaluator, one, network)
    most = prefetched(one.figures.channels, one.design.prefetch_bits)
    depths = waiting_depths(network, evaluator.platform, evaluator.clock_mhz, one.figures.latency, most)
    if depths is None:
        return held
    return {name: network.channels[name].bits * depths.get(name, 0) or bits for name, bits in held.items()}


def held_between(evaluator: Evaluator, one: Evaluation, held: Held = held_as_modelled) -> int:
    """Bits that kernels hand over and converters and FIFOs hold meanwhile."""
    return sum(held(evaluator, one, evaluator.assembler.network(one.design)).values())


def converters_of(network: TaskNetwork) -> dict[str, int]:
    """How many bits each converter holds."""
    return {name: c.bits * c.words * c.depth for name, c in network.channels.items() if c.kind == "block"}
