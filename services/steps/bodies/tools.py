"""How steps use tools that take long: within the service's limits, cancelled with the step, licences waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dse.rungs import Bench
from profiling.protocol import ProfilingError
from profiling.vitis.job import Limits
from services.history import SharedHistory
from services.profiles import SharedProfiles
from services.settings import Settings
from services.steps.context import StepContext
from services.steps.result import RetryLaterError

LONGEST_WAITS = 15
"""Claims of a step without a licence after which the wait for the next one grows no further."""


def bench_of(context: StepContext) -> Bench:
    """What a rung may use within a step: its cancel reaches the tools, their lines are its progress."""
    return Bench(
        tools=context.tools,
        profiles=SharedProfiles(
            context.database,
            context.run.id,
            lease_seconds=context.settings.lease_seconds,
            check=context.check,
            platform=str(context.options.get("platform") or ""),
        ),
        history=SharedHistory(context.database, context.run.id),
        progress=lambda text: context.progress(None, text),
        work_root=work_folder(context),
        line=lambda text: context.progress(None, text),
        limits=hls_limits(context.settings),
    )


def work_folder(context: StepContext) -> Path:
    """Where tools work: the step's own folder, which goes with the step, or the disk that was set for them."""
    return (context.settings.tool_folder or context.folder) / "tools"


def build_folder(context: StepContext) -> Path:
    """What outlives a step: compiled kernels, and links that stopped on the way."""
    return (context.settings.tool_folder or context.settings.home) / "builds"


def hls_limits(settings: Settings) -> Limits:
    return Limits(settings.tool_hours * 3600, _bytes(settings.tool_memory_gb), int(settings.tool_disk_gb * (1 << 30)))


def build_limits(settings: Settings) -> Limits:
    """A bitstream takes longer and more room than a synthesis."""
    disk = int(10 * settings.tool_disk_gb * (1 << 30))
    return Limits(settings.build_hours * 3600, _bytes(settings.tool_memory_gb), disk)


def _bytes(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else int(gigabytes * (1 << 30))


@contextmanager
def licences(context: StepContext) -> Iterator[None]:
    """A failure for want of a licence puts the step off, longer each time, and uses up no attempt."""
    try:
        yield
    except ProfilingError as error:
        if not error.retry_later:
            raise
        wait = context.settings.licence_seconds * min(context.step.fence, LONGEST_WAITS)
        raise RetryLaterError(error.code, error.one_line(), wait) from error
