"""The dependence cycle that a co-simulation prints when nothing can go on, in the names of our FIFOs and tasks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_PROCESS = re.compile(r"\(\d+\): Process: ([\w.$\[\]<>-]{1,300})")
_BLOCKED = re.compile(
    r"Blocked by (empty input|full output) (?:FIFO|PIPO|channel) '([^'\n]{1,300})'"
    r" (?:written|read) by process '([^'\n]{1,300})'",
    re.I,
)
_OLDER = re.compile(r"Channel: ([\w.$\[\]<>-]{1,300}), (FULL|EMPTY)")
_CYCLE = re.compile(r"Dependence cycle \d+:")
_DETECTED = re.compile(r"DEADLOCK DETECTED|Deadlock detected in co-simulation|\[HLS 200-742\]", re.I)
_TIME = re.compile(r"DEADLOCK DETECTED at ([\d.]{1,20}) ?ns", re.I)
_MAX = 256


@dataclass(frozen=True)
class Blocked:
    """`task` waits: its input `channel` is empty, or its output is full. `other` is at the channel's far end."""

    task: str
    channel: str
    reason: Literal["empty", "full"]
    other: str | None

    def __str__(self) -> str:
        way = f"{self.task} waits for {self.channel}, which is {self.reason}"
        far = "written" if self.reason == "empty" else "read"
        return f"{way} ({far} by {self.other})" if self.other else way


@dataclass(frozen=True)
class ReportedDeadlock:
    """`cycles` may be empty: some tools say only that there was one."""

    at_ns: float | None
    cycles: tuple[tuple[Blocked, ...], ...]

    def __str__(self) -> str:
        first = "; ".join(map(str, self.cycles[0])) if self.cycles else "the tool names no cycle"
        return f"deadlock{'' if self.at_ns is None else f' at {self.at_ns:.0f} ns'}: {first}"

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(blocked.channel for cycle in self.cycles for blocked in cycle))


def find_deadlock(text: str) -> ReportedDeadlock | None:
    """The deadlock that a log reports; other output may stand between its lines."""
    if not _DETECTED.search(text):
        return None
    found = _TIME.search(text)
    cycles: list[list[Blocked]] = []
    task: str | None = None
    count = 0
    for line in text.splitlines():
        if _CYCLE.search(line):
            cycles.append([])
            task = None
        elif match := _PROCESS.search(line):
            task = task_name(match.group(1))
        elif task is not None and cycles and count < _MAX:
            if match := _BLOCKED.search(line):
                reason: Literal["empty", "full"] = "empty" if "empty" in match.group(1).lower() else "full"
                cycles[-1].append(Blocked(task, channel_name(match.group(2)), reason, task_name(match.group(3))))
                count += 1
            elif match := _OLDER.search(line):
                reason = "empty" if match.group(2) == "EMPTY" else "full"
                cycles[-1].append(Blocked(task, channel_name(match.group(1)), reason, None))
                count += 1
    unique = dict.fromkeys(tuple(cycle) for cycle in cycles if cycle)
    return ReportedDeadlock(float(found.group(1)) if found and found.group(1).count(".") < 2 else None, tuple(unique))


def channel_name(path: str) -> str:
    """Our name of a FIFO: the tool prefixes the modules around it and calls the instance `<name>_U`."""
    return path.rsplit(".", 1)[-1].removesuffix("_U")


def task_name(path: str) -> str:
    return re.sub(r"_U\d+\Z", "", path.rsplit(".", 1)[-1])
