"""What has to be stored on the chip: the memories of tasks, blocks between tasks, and FIFOs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.compiler.errors import PenstockError
from penstock.compiler.schedule import MemoryUse, OperatorLibrary, fifo_choices, memory_choices
from penstock.profiling.network import TaskNetwork

WHOLE_CHIP = "chip"
"""The region of a design that was not partitioned."""


@dataclass(frozen=True)
class StoredItem:
    """One memory or FIFO, with every way to build it; `region` is the die that it stands on, `owner` its task."""

    name: str
    choices: tuple[MemoryUse, ...]
    region: str = WHOLE_CHIP
    owner: str = ""

    @property
    def usual(self) -> MemoryUse:
        return self.choices[0]


def stored_items(
    network: TaskNetwork, library: OperatorLibrary, dies: Mapping[str, str] | None = None
) -> tuple[StoredItem, ...]:
    """Everything that a scheduled design stores. A channel's memory stands with its reader.

    A task's memories are named `task.memory`, since other tasks may have one of the same name.
    """
    ends = network.ends()

    def region(task: str) -> str:
        return dies[task] if dies is not None else WHOLE_CHIP

    found: list[StoredItem] = []
    for task in network.tasks:
        for memory in {m.name: m for n in task.nests for m in n.memories}.values():
            name = f"{task.name}.{memory.name}"
            ways = memory_choices(library, name, memory.shape, copies=memory.copies)
            found.append(StoredItem(name, ways, region(task.name), task.name))
    for name, channel in network.channels.items():
        if channel.kind == "stream":
            ways = fifo_choices(library, name, channel.depth, channel.bits, channel.lanes)
        else:
            ways = memory_choices(library, name, channel.shape, copies=channel.depth)
        found.append(StoredItem(name, ways, region(ends[name][1]), ends[name][1]))
    return tuple(found)


def decided(items: Sequence[StoredItem], kinds: Mapping[str, str]) -> tuple[StoredItem, ...]:
    """The memories with only the choices that a design record leaves them."""
    if not kinds:
        return tuple(items)
    known = {item.name for item in items}
    if unknown := sorted(set(kinds) - known):
        raise PenstockError(
            code="unknown-memory", what="there is no such buffer or FIFO in the design", where=f"memories.{unknown[0]}",
            limit=f"{len(known)} of them", hint="check the names in the design record",
        )  # fmt: skip
    found: list[StoredItem] = []
    for item in items:
        ways = tuple(c for c in item.choices if c.kind == kinds.get(item.name, c.kind))
        if not ways:
            raise PenstockError(
                code="bad-design", what=f"it cannot be built of {kinds[item.name]}", where=f"memories.{item.name}",
                limit="it can be built of " + ", ".join(c.kind for c in item.choices), hint="choose one of these",
            )  # fmt: skip
        found.append(replace(item, choices=ways))
    return tuple(found)
