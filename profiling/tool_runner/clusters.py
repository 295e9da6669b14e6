"""How Slurm and LSF are spoken to: the words of their commands, and what their answers mean. Nothing runs here.

Slurm as of 23.11 (`sbatch --parsable`, `squeue`, `sacct --parsable2`); IBM Spectrum LSF as of 10.1 (`bsub`,
`bjobs -o`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

JobState = Literal[
    "waiting", "running", "done", "failed", "timeout", "out-of-memory", "cancelled", "node-failed", "gone"
]
"""`gone`: the cluster no longer knows the job. What it left in its folder says how it ended."""

OVER: frozenset[JobState] = frozenset(
    ("done", "failed", "timeout", "out-of-memory", "cancelled", "node-failed", "gone")
)


@dataclass(frozen=True)
class JobRequest:
    """What a job may take and where it works; `options` are the administrator's, such as a partition."""

    name: str
    folder: Path
    script: Path
    output: Path
    seconds: float | None
    memory: int | None
    options: tuple[str, ...]


@dataclass(frozen=True)
class ClusterAnswer:
    """What a command of the cluster said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Cluster:
    """One kind of batch system."""

    name: str
    submit: Callable[[JobRequest], list[str]]
    submitted: Callable[[ClusterAnswer], str | None]
    """The id of a job that was taken."""
    looks: tuple[Callable[[str], list[str]], ...]
    """Commands that tell of a job, asked until one knows it."""
    state: Callable[[ClusterAnswer], JobState | None]
    """None where the answer says nothing: the system is away, or does not know the job (any more)."""
    unknown: Callable[[ClusterAnswer], bool]
    """Whether the answer is that there is no such job."""
    cancel: Callable[[str], list[str]]
    version: list[str]


def _minutes(seconds: float) -> int:
    return max(1, math.ceil(seconds / 60))


def _sbatch(job: JobRequest) -> list[str]:
    limits = [f"--time={_minutes(job.seconds)}"] if job.seconds is not None else []
    limits += [f"--mem={max(1, job.memory >> 20)}M"] if job.memory is not None else []
    return [
        "sbatch", "--parsable", "--no-requeue", "--export=NONE", f"--job-name={job.name}", f"--chdir={job.folder}",
        f"--output={job.output}", f"--error={job.output}", *limits, *job.options, str(job.script),
    ]  # fmt: skip


def _sbatch_id(answer: ClusterAnswer) -> str | None:
    """`12345`, or `12345;cluster`; whatever a site's plug-ins print comes before it."""
    lines = answer.out.strip().splitlines()
    number = lines[-1].partition(";")[0] if lines else ""
    return number if answer.code == 0 and number.isdecimal() else None


_SLURM: dict[str, JobState] = {
    "PENDING": "waiting", "CONFIGURING": "waiting", "REQUEUED": "waiting", "REQUEUE_HOLD": "waiting",
    "REQUEUE_FED": "waiting", "RESV_DEL_HOLD": "waiting", "SPECIAL_EXIT": "waiting",
    "RUNNING": "running", "COMPLETING": "running", "SUSPENDED": "running", "STOPPED": "running",
    "RESIZING": "running", "SIGNALING": "running", "STAGE_OUT": "running",
    "COMPLETED": "done", "FAILED": "failed", "TIMEOUT": "timeout", "DEADLINE": "timeout",
    "OUT_OF_MEMORY": "out-of-memory", "CANCELLED": "cancelled", "REVOKED": "cancelled",
    "NODE_FAIL": "node-failed", "BOOT_FAIL": "node-failed", "PREEMPTED": "node-failed", "LAUNCH_FAILED": "node-failed",
}  # fmt: skip


def _slurm_state(answer: ClusterAnswer) -> JobState | None:
    """The first word of the first line: `RUNNING`, `CANCELLED by 1000|0:15`, `FAILED|1:0`."""
    lines = answer.out.strip().splitlines()
    word = re.split(r"[ |+]", lines[0].strip(), maxsplit=1)[0] if lines else ""
    return _SLURM.get(word) if answer.code == 0 else None


def _slurm_unknown(answer: ClusterAnswer) -> bool:
    return "Invalid job id" in answer.err or (answer.code == 0 and not answer.out.strip())


def _bsub(job: JobRequest) -> list[str]:
    limits = ["-W", str(_minutes(job.seconds))] if job.seconds is not None else []
    limits += ["-M", f"{max(1, job.memory >> 20)}MB"] if job.memory is not None else []
    output = ["-o", str(job.output), "-e", str(job.output)]
    return ["bsub", "-rn", "-env", "none", "-J", job.name, "-cwd", str(job.folder), *output, *limits, *job.options,
            str(job.script)]  # fmt: skip


def _bsub_id(answer: ClusterAnswer) -> str | None:
    """`Job <1234> is submitted to queue <normal>.`, or `… to default queue …`."""
    found = re.search(r"^Job <(\d+)> is submitted", answer.out, re.MULTILINE)
    return found[1] if answer.code == 0 and found else None


_LSF: dict[str, JobState] = {
    "PEND": "waiting", "PSUSP": "waiting", "WAIT": "waiting", "FWD_PEND": "waiting", "PROV": "waiting",
    "RUN": "running", "USUSP": "running", "SSUSP": "running", "UNKWN": "running", "DONE": "done",
    "ZOMBI": "node-failed",
}  # fmt: skip
_LSF_REASONS: tuple[tuple[str, JobState], ...] = (
    ("TERM_RUNLIMIT", "timeout"), ("TERM_DEADLINE", "timeout"), ("TERM_CPULIMIT", "timeout"),
    ("TERM_MEMLIMIT", "out-of-memory"), ("TERM_SWAP", "out-of-memory"),
    ("TERM_OWNER", "cancelled"), ("TERM_ADMIN", "cancelled"), ("TERM_FORCE_OWNER", "cancelled"),
    ("TERM_FORCE_ADMIN", "cancelled"), ("TERM_PREEMPT", "node-failed"), ("TERM_UNKNOWN", "node-failed"),
    ("TERM_ZOMBI", "node-failed"), ("TERM_ORPHAN_SYSTEM", "node-failed"), ("TERM_EXTERNAL_SIGNAL", "node-failed"),
)  # fmt: skip


def _lsf_state(answer: ClusterAnswer) -> JobState | None:
    """`RUN|-|-`, `DONE|-|-`, `EXIT|1|-`, `EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit`."""
    lines = answer.out.strip().splitlines()
    word, _, rest = lines[0].partition("|") if lines else ("", "", "")
    if word.strip() == "EXIT":
        known: list[JobState] = [state for reason, state in _LSF_REASONS if reason in rest]
        return known[0] if known else "failed"
    return _LSF.get(word.strip())


def _lsf_unknown(answer: ClusterAnswer) -> bool:
    return "is not found" in answer.out + answer.err


SLURM = Cluster(
    name="slurm",
    submit=_sbatch,
    submitted=_sbatch_id,
    looks=(
        lambda job: ["squeue", "--noheader", "--format=%T", f"--jobs={job}"],
        lambda job: ["sacct", f"--jobs={job}", "--noheader", "--parsable2", "--allocations", "--format=State,ExitCode"],
    ),
    state=_slurm_state,
    unknown=_slurm_unknown,
    cancel=lambda job: ["scancel", job],
    version=["sbatch", "--version"],
)
LSF = Cluster(
    name="lsf",
    submit=_bsub,
    submitted=_bsub_id,
    looks=(lambda job: ["bjobs", "-a", "-noheader", "-o", "stat exit_code exit_reason delimiter='|'", job],),
    state=_lsf_state,
    unknown=_lsf_unknown,
    cancel=lambda job: ["bkill", job],
    version=["bsub", "-V"],
)
CLUSTERS = {one.name: one for one in (SLURM, LSF)}
