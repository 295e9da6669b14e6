"""Measures kernels with the open tools, behind the one interface of all profilers; evidence `open-rtl`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from penstock.compiler.dialects import stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.profiling.cache import CacheStore, fetch_many
from penstock.profiling.open_rtl.area import REVISION as AREA_REVISION
from penstock.profiling.open_rtl.area import measure_area
from penstock.profiling.open_rtl.fmax import device_of, measure_fmax
from penstock.profiling.open_rtl.kernels import CoreRun, nests_of, prepare
from penstock.profiling.open_rtl.measure import Measurement, document_of, measure_many, measurement_from
from penstock.profiling.open_rtl.tools import find_cxx, find_verilator, find_yosys
from penstock.profiling.protocol import Profile, ProfileRequest, ProfilingError
from penstock.profiling.sources import sources_digest
from penstock.profiling.store import FolderProfiles, ProfileStore
from penstock.profiling.tool_runner import ToolRunner

REVISION = "1"
"""Raise it whenever this measures in another way."""


@dataclass(frozen=True)
class OpenRtlProfiler:
    """Cycles from Verilator, area from yosys; with `clock`, Fmax from nextpnr where the platform is an ECP5."""

    tools: ToolRunner | None = None
    clock: bool = False
    processes: int = 2
    profiles: ProfileStore = field(default_factory=FolderProfiles)

    tool = "penstock-open-rtl"
    evidence: Evidence = "open-rtl"

    def version(self) -> str:
        """All that a figure depends on: the tools, the RTL backend, the operator tables."""
        programs = (find_verilator().version, find_cxx().version, find_yosys().version)
        digest = hashlib.sha256("\n".join((*programs, route_digest(), str(AREA_REVISION))).encode()).hexdigest()
        return f"{REVISION}{'c' if self.clock else ''}.{digest[:16]}"

    def profile(self, request: ProfileRequest) -> Profile:
        result = self.profile_many([request])[0]
        if isinstance(result, PenstockError):
            raise result
        return result

    def profile_many(self, requests: Sequence[ProfileRequest]) -> list[Profile | PenstockError]:
        """Measure what is not known yet, each content once, many kernels in one build."""
        version = self.version()
        asked = {request.key(self.tool, version): request for request in requests}

        def make(keys: list[str]) -> dict[str, Profile | ProfilingError]:
            return self._measure({key: asked[key] for key in keys}, version)

        label = requests[0].name if len(asked) == 1 else f"{len(asked)} kernels"
        found = self.profiles.fetch_many(list(asked), make, label=label)
        return [_named(found[request.key(self.tool, version)], request) for request in requests]

    def cycles_many(self, requests: Sequence[ProfileRequest]) -> list[Measurement | ProfilingError]:
        """Cycles alone, which take a tenth of the time that area takes; kept in the same way."""
        version = self.version()
        asked = {request.key("cycles", version): request for request in requests}

        def make(keys: list[str]) -> dict[str, Measurement | ProfilingError]:
            failures: dict[str, Measurement | ProfilingError] = {}
            ready: list[str] = []

            def kernels() -> Iterator[CoreRun]:  # prepared while the tools work on those before
                for key in keys:
                    try:
                        kernel = prepare(asked[key])
                    except ProfilingError as error:
                        failures[key] = error
                        continue
                    ready.append(key)
                    yield kernel

            measured = measure_many(kernels(), self.tools or ToolRunner(), self.processes, count=len(keys))
            return failures | dict(zip(ready, measured, strict=True))

        found = fetch_many(CacheStore("cycles", keep=50_000), list(asked), measurement_from, make, document_of)
        return [found[request.key("cycles", version)] for request in requests]

    def _measure(self, asked: dict[str, ProfileRequest], version: str) -> dict[str, Profile | ProfilingError]:
        result: dict[str, Profile | ProfilingError] = {}
        kernels: dict[str, CoreRun] = {}
        inner: dict[str, CoreRun] = {}
        for key, request in asked.items():
            try:
                kernels[key] = prepare(request)
                if alone := _only_computing_task(kernels[key]):
                    inner[key] = prepare(request, [alone])
            except ProfilingError as error:
                result[key] = error
                kernels.pop(key, None)
        tools = self.tools or ToolRunner()
        every = [*kernels.values(), *inner.values()]
        measured = dict(zip(map(id, every), measure_many(every, tools, self.processes), strict=True))
        for key, kernel in kernels.items():
            whole, alone = measured[id(kernel)], measured[id(inner[key])] if key in inner else None
            problem = next((one for one in (whole, alone) if isinstance(one, ProfilingError)), None)
            if problem is not None:
                result[key] = problem
                continue
            assert isinstance(whole, Measurement)
            try:
                result[key] = self._profile(key, asked[key], version, kernel, whole, alone, tools)
            except ProfilingError as error:
                result[key] = error
        return result

    def _profile(
        self, key: str, request: ProfileRequest, version: str, kernel: CoreRun, whole: Measurement,
        alone: Measurement | ProfilingError | None, tools: ToolRunner,
    ) -> Profile:  # fmt: skip
        area = measure_area(kernel.design, kernel.platform.family.synthesis, tools)
        fmax = None
        if self.clock and kernel.platform.family.has_open_clock:
            target = request.clock_mhz
            fmax = measure_fmax(kernel.design, device_of(kernel.platform), target_mhz=target, tools=tools).mhz
        single = alone if isinstance(alone, Measurement) else whole
        return Profile(
            key=key,
            name=request.name,
            tool=self.tool,
            tool_version=version,
            evidence=self.evidence,
            clock_mhz=request.clock_mhz,
            latency_cycles=whole.latency,
            interval_cycles=whole.interval,
            initial_delay_cycles=whole.initial_delay,
            ii=single.ii,
            depth=single.depth,
            resources=area.resources,
            fmax_mhz=fmax,
        )


def _named(result: Profile | PenstockError, request: ProfileRequest) -> Profile | PenstockError:
    """The name is not part of the content, so a kept profile may carry another."""
    return replace(result, name=request.name) if isinstance(result, Profile) else result


def _only_computing_task(kernel: CoreRun) -> str | None:
    """The one task that computes, in a design where the others only move data; None for others."""
    if len(kernel.tasks) == 1:
        return None
    computing = [
        task.sym_name.data
        for task in kernel.tasks
        if any(" " not in stage.name for one in kernel.schedules[task.sym_name.data] for stage in one.stages)
    ]
    single = len(computing) == 1 and len(nests_of(_task(kernel, computing[0]))) == 1
    return computing[0] if single else None


def _task(kernel: CoreRun, name: str) -> stream.TaskOp:
    return next(task for task in kernel.tasks if task.sym_name.data == name)


def route_digest() -> str:
    """A change of the RTL backend, the schedule or this package is another version."""
    return sources_digest(
        "compiler.scalars", "compiler.backend.rtl", "compiler.schedule", "compiler.platforms", "profiling.open_rtl"
    )
