"""Runs tools as jobs of a batch system: submitted, followed, cancelled, and taken up again after a worker's restart.

A job works in the tool's own folder, which lies on a disk that the cluster shares. Its script leaves the exit code
there, and that counts: accounting may be off, late, or forget. The job's id is written down before anything is waited
for, so a worker that takes the same folder up again follows the job that is there already.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.profiling.tool_runner.clusters import OVER, Cluster, ClusterAnswer, JobRequest, JobState
from penstock.profiling.tool_runner.command import ToolCommand, ToolOutcome, ToolResult
from penstock.profiling.tool_runner.runner import Cancellable, ToolRunner

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0
SETTLE_SECONDS = 30.0
"""How long a shared disk may take to show what a job has left."""
AWAY_SECONDS = 3600.0
"""How long a batch system may be away before a job counts as lost."""
SUBMISSIONS = 3
"""A job whose node failed is submitted again, so often in all."""
_COMMAND_SECONDS = 60.0
_TAIL_BYTES = 8192
_OUTCOMES: dict[JobState, ToolOutcome] = {
    "timeout": ToolOutcome.TIMEOUT, "out-of-memory": ToolOutcome.OUT_OF_MEMORY, "cancelled": ToolOutcome.LOST,
    "node-failed": ToolOutcome.LOST, "gone": ToolOutcome.LOST, "failed": ToolOutcome.LOST, "done": ToolOutcome.LOST,
}  # fmt: skip
_NOTES: dict[JobState, str] = {
    "cancelled": "somebody cancelled it there", "node-failed": "its node failed, each time",
    "gone": "the batch system knows it no more, and it left no exit code",
    "failed": "it failed before the tool ended", "done": "it left no exit code",
}  # fmt: skip


@dataclass(frozen=True)
class _Job:
    """What is written down of a job, beside the files that it works on."""

    id: str
    command: str
    """Digest of what it runs: the job of another command in this folder is none of ours."""
    submissions: int


class _Running:
    """A job as whoever watches it sees it."""

    def __init__(self, stdout: Path) -> None:
        self.stdout = stdout
        self.asked = threading.Event()
        self.left = False

    def cancel(self) -> None:
        self.asked.set()


class ClusterRunner(ToolRunner):
    """The tools of one step, as jobs. `options` go to each submission, such as `--partition=fpga`."""

    def __init__(self, cluster: Cluster, options: tuple[str, ...] = (), *, poll: float = POLL_SECONDS) -> None:
        super().__init__()
        self._cluster = cluster
        self._options = options
        self._poll = poll
        self._jobs: set[_Running] = set()

    def run(self, command: ToolCommand, watch: Callable[[Cancellable], None] | None = None) -> ToolResult:
        running = _Running(command.logs / "stdout.log")
        with self._lock:
            if self._closed:
                running.cancel()
            self._jobs.add(running)
        try:
            return _Following(self._cluster, command, self._options, self._poll, running, watch).follow()
        finally:
            with self._lock:
                self._jobs.discard(running)

    def logs(self) -> tuple[Path, ...]:
        with self._lock:
            return tuple(job.stdout for job in self._jobs)

    def cancel_all(self, *, leave: bool = False) -> None:
        """`leave`: the worker ends, and whoever takes the step up finds the jobs."""
        with self._lock:
            self._closed = True
            for job in self._jobs:
                job.left = job.left or leave
                job.cancel()


class _Following:
    """One run of a command, from its submission to its end."""

    def __init__(
        self, cluster: Cluster, command: ToolCommand, options: tuple[str, ...], poll: float, running: _Running,
        watch: Callable[[Cancellable], None] | None,
    ) -> None:  # fmt: skip
        digest = hashlib.sha256(json.dumps([command.argv, sorted(command.env.items())]).encode()).hexdigest()
        self.cluster, self.command, self.options, self.poll = cluster, command, options, poll
        self.running, self.watch, self.digest = running, watch, digest
        folder = command.folder
        stem = f".job-{digest[:12]}"
        self.record, self.script = folder / f"{stem}.json", folder / f"{stem}.sh"
        self.exit_code, self.output = folder / f"{stem}.exit", folder / f"{stem}.log"
        self.copied = 0
        self.began = time.monotonic()

    def follow(self) -> ToolResult:
        self.command.logs.mkdir(parents=True, exist_ok=True)
        (self.command.logs / "stdout.log").write_bytes(b"")
        (self.command.logs / "stderr.log").write_bytes(b"")
        if self.running.asked.is_set():
            return self._result(ToolOutcome.CANCELLED, "before it was submitted")
        job = self._known() or self._submit(1)
        while True:
            state = self._until_over(job)
            code = self._code(state)
            if state is None:
                return self._stopped(job)
            if code is None and state == "node-failed" and job.submissions < SUBMISSIONS:
                log.warning("%s job %s: its node failed; submitted again", self.cluster.name, job.id)
                job = self._submit(job.submissions + 1)
                continue
            self.record.unlink(missing_ok=True)
            return self._ended(job, state, code)

    def _known(self) -> _Job | None:
        with contextlib.suppress(OSError, ValueError, TypeError):
            found = _Job(**json.loads(self.record.read_text()))
            if found.command == self.digest:
                log.info("%s job %s is followed further", self.cluster.name, found.id)
                return found
        return None

    def _submit(self, number: int) -> _Job:
        self.exit_code.unlink(missing_ok=True)
        self.script.write_text(self._script())
        self.script.chmod(0o755)
        command = self.command
        request = JobRequest(
            f"penstock-{self.digest[:12]}", command.folder, self.script, self.output, command.timeout,
            command.tree_memory_limit or command.memory_limit, self.options,
        )  # fmt: skip
        answer = _ask(self.cluster.submit(request))
        number_of = self.cluster.submitted(answer)
        if number_of is None:
            said = ["it said nothing", *(answer.err or answer.out).strip().splitlines()][-1]
            raise PenstockError(
                code="cluster-refused", what=f"{self.cluster.name} took no job: {said}",
                where=self.cluster.name, hint="check PENSTOCK_LAUNCHER_OPTIONS; `penstock doctor` says what is found",
            )  # fmt: skip
        job = _Job(number_of, self.digest, number)
        fresh = self.record.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(job)))
        os.replace(fresh, self.record)
        return job

    def _script(self) -> str:
        """The tool in exactly the environment that it is given; its exit code appears whole."""
        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(self.command.env.items()))
        code = shlex.quote(str(self.exit_code))
        return (
            "#!/bin/sh\n"
            f"cd {shlex.quote(str(self.command.folder))} || exit 1\n"
            f"env -i {env} {shlex.join(self.command.argv)}\n"
            f"echo $? > {code}.new && mv {code}.new {code}\n"
        )

    def _until_over(self, job: _Job) -> JobState | None:
        """How it ended; None if it is to be stopped."""
        answered = time.monotonic()
        while True:
            self._copy_log()
            if self.watch is not None:
                self.watch(self.running)
            state = self._state(job)
            if state in OVER or self.exit_code.exists():
                return state if state in OVER else "done"
            if state is not None:
                answered = time.monotonic()
            elif time.monotonic() - answered > AWAY_SECONDS:
                return "gone"
            if self.running.asked.wait(self.poll):
                return None

    def _state(self, job: _Job) -> JobState | None:
        unknown = 0
        for look in self.cluster.looks:
            answer = _ask(look(job.id))
            state = self.cluster.state(answer)
            if state is not None:
                return state
            unknown += self.cluster.unknown(answer) or answer.code == 127
        return "gone" if unknown == len(self.cluster.looks) else None

    def _code(self, state: JobState | None) -> int | None:
        """The exit code that the script left; a shared disk may show it a little late."""
        wait = state in ("done", "failed", "gone")
        deadline = time.monotonic() + (SETTLE_SECONDS if wait else 0.0)
        while True:
            with contextlib.suppress(OSError, ValueError):
                return int(self.exit_code.read_text())
            if time.monotonic() >= deadline or self.running.asked.wait(min(self.poll, 1.0)):
                return None

    def _stopped(self, job: _Job) -> ToolResult:
        if self.running.left:
            return self._result(ToolOutcome.CANCELLED, f"{self.cluster.name} job {job.id} goes on")
        _ask(self.cluster.cancel(job.id))
        self.record.unlink(missing_ok=True)
        return self._result(ToolOutcome.CANCELLED, "")

    def _ended(self, job: _Job, state: JobState, code: int | None) -> ToolResult:
        self._copy_log()
        where = f"{self.cluster.name} job {job.id}"
        if code is not None:
            outcome = ToolOutcome.OK if code == 0 else ToolOutcome.NOT_FOUND if code == 127 else ToolOutcome.EXIT
            if code != 0 and state == "out-of-memory":
                outcome = ToolOutcome.OUT_OF_MEMORY
            return self._result(outcome, where, code)
        return self._result(_OUTCOMES[state], f"{where}: {_NOTES[state]}" if state in _NOTES else where)

    def _result(self, outcome: ToolOutcome, note: str, code: int | None = None) -> ToolResult:
        logs = self.command.logs
        tail = ""
        with contextlib.suppress(OSError), self.output.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            tail = file.read().decode(errors="replace")
        return ToolResult(
            outcome, code, None, time.monotonic() - self.began, None, None, logs / "stdout.log", logs / "stderr.log",
            tail, 0, note,
        )  # fmt: skip

    def _copy_log(self) -> None:
        """What the job has written since the last look, up to the log's limit."""
        with contextlib.suppress(OSError), self.output.open("rb") as source:
            source.seek(self.copied)
            new = source.read(max(0, self.command.log_limit - self.copied))
            with (self.command.logs / "stdout.log").open("ab") as target:
                target.write(new)
            self.copied += len(new)


def _ask(argv: list[str]) -> ClusterAnswer:
    """Run a command of the batch system; one that hangs or is not there has said nothing."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_COMMAND_SECONDS, stdin=subprocess.DEVNULL
        )  # fmt: skip
    except FileNotFoundError:
        return ClusterAnswer(127, "", f"{argv[0]} is not found")
    except (OSError, subprocess.TimeoutExpired) as error:
        return ClusterAnswer(-1, "", str(error))
    return ClusterAnswer(done.returncode, done.stdout, done.stderr)


def version_of(cluster: Cluster) -> str | None:
    """What the batch system calls itself; None where it is not installed."""
    answer = _ask(cluster.version)
    lines = (answer.out or answer.err).strip().splitlines()
    return None if answer.code in (127, -1) or not lines else lines[0]
