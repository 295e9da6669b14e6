"""How steps use tools that take long: within the service's limits, cancelled with the step, licences waited for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.dse.rungs import Bench
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.job import JobLimits
from penstock.services.history import SharedHistory
from penstock.services.profiles import SharedProfiles
from penstock.services.run_options import RunOptions
from penstock.services.settings import Settings
from penstock.services.steps.context import StepContext
from penstock.services.steps.result import Output, RetryLaterError
from penstock.services.store import TREE_MEDIA_TYPE

RESULTS = "reports"
TELLING_SECONDS, LONGEST_TEXT = 1.0, 300
_TELLING = re.compile(
    r"ERROR|CRITICAL WARNING|Estimated Fmax|Loop Constraint|Pipelining result|Finished Command|Run vpl: Step"
)
LONGEST_WAITS = 15
"""Claims of a step without a licence after which the wait for the next one grows no further."""


def bench_of(context: StepContext) -> Bench:
    """What a rung may use within a step: its cancel reaches the tools, their lines are its progress."""
    asked = RunOptions.stored(context.options)
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
        line=Telling(lambda text: context.progress(None, text)),
        results=context.folder / RESULTS,
        limits=hls_limits(context.settings),
        fifo_simulations=asked.fifo_simulations,
        fifo_slack=asked.fifo_slack,
    )


def tool_reports(context: StepContext) -> dict[str, Output]:
    """What the tools reported and logged in this step; nothing where kept profiles spared them."""
    folder = context.folder / RESULTS
    return {RESULTS: Output(folder, TREE_MEDIA_TYPE)} if folder.is_dir() else {}


def work_folder(context: StepContext) -> Path:
    """Where tools work: the step's own folder, which goes with the step, or one that stays. There each job removes what
    killed ones left.
    """
    settings = context.settings
    stays = settings.tool_folder or (settings.home / "tools" if settings.tool_keep != "never" else None)
    return (stays or context.folder) / "work"


def build_folder(context: StepContext) -> Path:
    """What outlives a step: compiled kernels, and links that stopped on the way."""
    return (context.settings.tool_folder or context.settings.home) / "builds"


def hls_limits(settings: Settings) -> JobLimits:
    disk = int(settings.tool_disk_gb * (1 << 30))
    return JobLimits(settings.tool_hours * 3600, _bytes(settings.tool_memory_gb), disk, keep=settings.tool_keep)


def build_limits(settings: Settings) -> JobLimits:
    """A bitstream takes longer and more room than a synthesis."""
    disk = int(10 * settings.tool_disk_gb * (1 << 30))
    return JobLimits(settings.build_hours * 3600, _bytes(settings.tool_memory_gb), disk)


def _bytes(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else int(gigabytes * (1 << 30))


@contextmanager
def licences(context: StepContext) -> Iterator[None]:
    """A failure for want of a licence puts the step off, longer each time, and uses up no attempt."""
    try:
        yield
    except ProfilingError as error:
        shown = _for_users(error, context)
        if not error.retry_later:
            raise shown from error
        wait = context.settings.licence_seconds * min(context.step.fence, LONGEST_WAITS)
        raise RetryLaterError(shown.code, shown.one_line(), wait) from error


def _for_users(error: ProfilingError, context: StepContext) -> ProfilingError:
    """The same without the server's own paths: they would tell its users nothing, and others too much."""
    places = {str(work_folder(context)): "the work folder", str(context.folder): "the step's folder"}
    places |= {str(build_folder(context)): "the builds' folder", str(context.settings.home): "the service's folder"}

    def shown(text: str) -> str:
        for place, words in places.items():
            text = text.replace(place, words)
        return text

    fields = {name: shown(getattr(error, name)) for name in ("what", "where", "limit", "hint", "log_tail")}
    return ProfilingError(error.kind, **fields)


class Telling:
    """Hands on a tool's lines, one a second at most: of those that came meanwhile the newest that tells something."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._waiting = ""
        self._told_at = 0.0

    def __call__(self, line: str) -> None:
        if line.strip() and (_TELLING.search(line) or not _TELLING.search(self._waiting)):
            self._waiting = line.strip()[:LONGEST_TEXT]
        now = time.monotonic()
        if self._waiting and now - self._told_at >= TELLING_SECONDS:
            self._tell(self._waiting)
            self._waiting, self._told_at = "", now
