"""The model behind the `Profiler` protocol: a profiler that needs no tool."""

from __future__ import annotations

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.compiler.platforms import Platform, load_platform
from penstock.compiler.schedule import load_library
from penstock.profiling.model import DesignFigures, DesignModel, TaskFigures, parse_request
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.protocol import Profile, ProfileRequest, ProfilingError


def model_design(network: TaskNetwork, platform: Platform, clock_mhz: float, *, bounded: bool = True) -> DesignFigures:
    """Time and area of one scheduled network. `bounded=False` ignores channel depths (to find them)."""
    return DesignModel(platform, clock_mhz).figures(network, bounded=bounded)


class ModelProfiler:
    """The model behind the `Profiler` protocol."""

    tool = "penstock-model"
    evidence: Evidence = "modelled"

    def version(self) -> str:
        return "1"

    def profile(self, request: ProfileRequest) -> Profile:
        try:
            platform = load_platform(request.platform)
            library = load_library(platform.operators, platform.check_clock(request.clock_mhz))
            network = network_of(parse_request(request), library)
            figures = model_design(network, platform, request.clock_mhz)
        except ProfilingError:
            raise
        except PenstockError as error:
            raise ProfilingError(
                "bad-request",
                what=error.what,
                where=error.where or request.name,
                limit=error.limit,
                hint=error.hint,
            ) from error
        only = _kernel_of(network, figures)
        return Profile(
            key=request.key(self.tool, self.version()),
            name=request.name,
            tool=self.tool,
            tool_version=self.version(),
            evidence=self.evidence,
            clock_mhz=request.clock_mhz,
            latency_cycles=figures.latency,
            interval_cycles=figures.interval,
            initial_delay_cycles=figures.initial_delay,
            ii=only.ii if only else None,
            depth=only.depth if only else None,
            resources=figures.resources,
        )


def _kernel_of(network: TaskNetwork, figures: DesignFigures) -> TaskFigures | None:
    """The one task that computes, where a single kernel is profiled; None for a larger design.

    Loads, stores and converters only move data: every step of theirs names a memory or a channel.
    """
    inside = [t.name for t in network.tasks if any(" " not in s.name for n in t.nests for s in n.stages)]
    return next(t for t in figures.tasks if t.name == inside[0]) if len(inside) == 1 else None
