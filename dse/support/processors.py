"""How many processors this process may keep busy: those it may run on, as far as a container's quota goes."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

CGROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def processors(cgroups: Path = CGROUPS, own_groups: Path = OWN_GROUPS) -> int:
    """At least one. What cannot be read limits nothing."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([here, *(int(quota) for quota in _quotas(cgroups, own_groups))]))


def _quotas(cgroups: Path, own_groups: Path) -> list[float]:
    """Processors' time per time, of every group that this process is in, inside and out; both versions of cgroups."""
    found: list[float] = []
    for line in _words(own_groups, "\n"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            tops = [cgroups]
        elif "cpu" in controllers.split(","):
            tops = [cgroups / controllers, cgroups / "cpu"]
        else:
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for top in tops:
            for group in (top / inside, *(top / parent for parent in inside.parents)):
                most = _words(group / "cpu.max") or [
                    *_words(group / "cpu.cfs_quota_us"),
                    *_words(group / "cpu.cfs_period_us"),
                ]
                if len(most) == 2 and all(word.isdecimal() for word in most) and int(most[1]):
                    found.append(int(most[0]) / int(most[1]))
    return found


def _words(file: Path, separator: str | None = None) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").strip().split(separator)
    except (OSError, UnicodeDecodeError):
        return []
