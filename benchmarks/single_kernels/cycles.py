"""Cycles of kernels from Verilator, kept by content; evidence `open-rtl`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.single_kernels.measure import Measurement, document_of, measure_many, measurement_from
from benchmarks.single_kernels.requests import CoreRun, prepare
from penstock.profiling.cache import CacheStore, content_key, fetch_many
from penstock.profiling.open_rtl.tools import find_cxx, find_verilator
from penstock.profiling.open_rtl.version import route_digest
from penstock.profiling.protocol import ProfileRequest, ProfilingError
from penstock.profiling.tool_runner import ToolRunner

REVISION = "1"
"""Raise it whenever this measures in another way."""


def cycles_of(requests: Sequence[ProfileRequest]) -> list[Measurement | ProfilingError]:
    """Measure what is not known yet, each content once, many kernels in one build."""
    version = _version()
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

        measured = measure_many(kernels(), ToolRunner(), count=len(keys))
        return failures | dict(zip(ready, measured, strict=True))

    found = fetch_many(CacheStore("cycles", keep=50_000), list(asked), measurement_from, make, document_of)
    return [found[request.key("cycles", version)] for request in requests]


def _version() -> str:
    """All that a figure depends on: the tools, the RTL backend, the operator tables."""
    return content_key(REVISION, find_verilator().version, find_cxx().version, route_digest())[:16]
