"""A C++ kernel as a model: which options it takes, what they mean for its exploration, and what comes out of it.

The same for `penstock explore KERNEL.cpp` and for a run of the service. Light to import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from typing import TYPE_CHECKING, Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.fence import KERNELS
from penstock.compiler.platforms import Platform, load_platform
from penstock.dse.evaluation.objectives import DEFAULT_OBJECTIVES, Goal
from penstock.profiling.kernels.explore.limits import RESOURCES
from penstock.services.run_options import RunOptions

if TYPE_CHECKING:
    from penstock.profiling.kernels.explore.search import KernelObjective

HEADERS = (".h", ".hpp", ".hh", ".hxx", ".inc")
PARTS = ("xcu", "xczu", "xcvu")
"""How the names of parts begin whose operators are known."""
TAKEN = ("objectives", "limits", "trials", "platform")
_ALSO = ("priority", "bitstream", "warm_start")
"""Options of a run that mean the same for a kernel, or nothing at their defaults."""


def is_kernel(model: str) -> bool:
    return model.lower().endswith(KERNELS)


def check_kernel_options(options: Mapping[str, Any]) -> None:
    """Refuses what a run of a kernel does not take. What says the default says nothing."""
    defaults = RunOptions.model_construct()
    asked = {name: value for name, value in options.items() if value != getattr(defaults, name, value)}
    if odd := sorted(name for name in asked if name not in (*TAKEN, *_ALSO)):
        raise _odd_option(f"{', '.join(odd)} of a C++ kernel")
    if "bitstream" in asked and asked["bitstream"] not in (None, "none"):
        raise _odd_option("a bitstream of a C++ kernel")
    platform = load_platform(options.get("platform") or defaults.platform)
    if not platform.part.lower().startswith(PARTS):
        raise PenstockError(
            code="bad-option", what=f"a C++ kernel for {platform.name}", where="platform",
            limit="operators are known of UltraScale+ parts", hint="choose u55c, u280, zcu104 or the like",
        )  # fmt: skip
    objective_of(options.get("objectives") or (), "objectives")
    limits_of(options.get("limits") or (), platform)


def _odd_option(what: str) -> PenstockError:
    return PenstockError(
        code="bad-option", what=what, where="options",
        limit="a kernel keeps its own types, and takes a platform, trials, one objective and limits of resources",
        hint="leave it out",
    )  # fmt: skip


def objective_of(objectives: Sequence[str], where: str) -> KernelObjective:
    """What is to be short: one run, or the time from one run to the next of many."""
    match list(objectives):
        case [] | ["latency"]:
            return "latency"
        case ["throughput"]:
            return "throughput"
        case given if given == list(DEFAULT_OBJECTIVES):
            return "latency"  # what nobody changed
        case _:
            raise PenstockError(
                code="bad-option", what=f"the objectives {', '.join(objectives)} of a C++ kernel", where=where,
                limit="latency, or throughput; resources are limits", hint="give one of them, and limits",
            )  # fmt: skip


def limits_of(texts: Sequence[str], platform: Platform) -> dict[str, int]:
    """What the platform leaves to a design, or less of it: counts of each resource."""
    whole = platform.limits.as_dict()
    found = {name: floor(whole[name]) for name in RESOURCES}
    for limit in Goal.of((), texts).on(platform).limits:
        if limit.name not in RESOURCES or limit.sense != "<=" or limit.share is None:
            raise PenstockError(
                code="bad-limit", what=f"{limit.text} of a C++ kernel", where="--limit",
                limit="known are " + ", ".join(f"{name}<=" for name in RESOURCES), hint="limit resources alone",
            )  # fmt: skip
        given = limit.value if limit.value > 1 else limit.share * whole[limit.name]
        found[limit.name] = min(found[limit.name], floor(given))
    return found


def figures_of(
    latency: int, interval: int | None, area: Mapping[str, int], limits: Mapping[str, int], clock_mhz: float
) -> dict[str, float]:
    """A source's figures as trials have them. Shares are of the limits that hold."""
    shares = {f"{name}_share": area.get(name, 0) / max(1, limit) for name, limit in limits.items()}
    found = {"latency_cycles": float(latency), "latency_us": latency / clock_mhz, **shares}
    if interval is not None:
        found |= {"interval_cycles": float(interval), "interval_us": interval / clock_mhz}
    return {**found, "resource_share": max(shares.values(), default=0.0)}


def params_of(nests: Sequence[Mapping[str, Any]], tasks: int, changes: Sequence[str]) -> dict[str, Any]:
    """What was decided in a source: of each nest, by its line, the order of its loops and the lanes of each."""
    found: dict[str, Any] = {"tasks": tasks}
    seen: dict[int, int] = {}
    for nest in nests:
        line = int(nest["line"])
        seen[line] = seen.get(line, 0) + 1
        name = f"L{line}" + ("" if seen[line] == 1 else chr(ord("a") + seen[line] - 1) if seen[line] < 27 else "z")
        found[f"{name}.order"] = ",".join(map(str, nest["order"]))
        for variable in nest["source"]:
            found[f"{name}.{variable}"] = int(nest["lanes"].get(variable, 1))
    return found | ({"changes": len(changes)} if changes else {})
