"""Which channels of a design hold tensors that one kernel makes and another reads.

What comes from external memory, and what is on its way there, unfused kernels have outside too: parameters, caches and
inputs until something is computed of them, in FIFOs or in converters, and results once nobody computes with them any
more. A cache to which a computed row is joined is still what comes from outside; the row itself is a tensor between
kernels until then.
"""

from __future__ import annotations

from penstock.profiling.network import Task, TaskNetwork
from penstock.profiling.prefetch import computes


def handed_over(network: TaskNetwork) -> frozenset[str]:
    """Those of tensors between kernels."""
    return frozenset(network.channels) - loaded_channels(network) - stored_channels(network)


def loaded_channels(network: TaskNetwork) -> frozenset[str]:
    """Those that hold nothing but what loads bring, or that and fewer rows that are joined to it."""
    found: set[str] = set()
    for task in network.tasks:  # writers come before readers
        loads, read = _tokens(task, "read")
        brought = sum(tokens for name, tokens in read.items() if name in found)
        if not _computes(task) and (2 * brought > sum(read.values()) if read else loads):
            found.update(_tokens(task, "write")[1])
    return frozenset(found)


def stored_channels(network: TaskNetwork) -> frozenset[str]:
    """Those that hold nothing but what is stored."""
    found: set[str] = set()
    for task in reversed(network.tasks):
        stores, written = _tokens(task, "write")
        if not _computes(task) and (found.issuperset(written) if written else stores):
            found.update(_tokens(task, "read")[1])
    return frozenset(found)


def _computes(task: Task) -> bool:
    return any(computes(nest) for nest in task.nests)


def _tokens(task: Task, direction: str) -> tuple[bool, dict[str, int]]:
    """Whether it reads (or writes) external memory, and the tokens of each channel that it reads (or writes)."""
    ports = [port for nest in task.nests for port in nest.ports if port.direction == direction]
    found: dict[str, int] = {}
    for port in ports:
        if port.kind != "external":
            name = task.channel(port.channel)
            found[name] = found.get(name, 0) + port.tokens
    return any(port.kind == "external" for port in ports), found
