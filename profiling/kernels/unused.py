"""Directives that change nothing: partitions that no loop needs, and targets that cannot be met."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.compiler.hls_in.banks import port_bound
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.hls_in.timed import Timed


def unused_directives(timed: Timed, delays: Delays) -> Iterator[str]:
    accesses: dict[KernelArray, list[tuple[Pipeline, list[KernelValue]]]] = {}
    for item, schedule in timed.schedules.items():
        if not isinstance(item, Pipeline):
            continue
        if item.explicit and schedule.ii > item.target:
            reason = schedule.limit.reason if schedule.limit else "its dependences"
            yield f"{item.where}: pipeline II={item.target} of {item.name} cannot be met; II = {schedule.ii}: {reason}"
        met: dict[KernelArray, list[KernelValue]] = {}
        for node in schedule.starts:
            if node.op in ("load", "store") and node.array is not None:
                met.setdefault(node.array, []).append(node)
        for array, nodes in met.items():
            accesses.setdefault(array, []).append((item, nodes))
    for array, users in accesses.items():
        if array.partition and not array.registers and all(
            _bound_without(array, nodes, delays.ports) <= timed.schedules[item].ii for item, nodes in users
        ):  # fmt: skip
            yield f"{array.where}: array_partition of {array.name} into {array.banks} banks is needed by no loop's II"


def _bound_without(array: KernelArray, nodes: list[KernelValue], ports: int) -> int:
    kept = array.partition
    array.partition = {}
    try:
        return port_bound(array, nodes, ports)[0]
    finally:
        array.partition = kept
