"""The owner's side of a tool run: start its supervisor, wait for the report, cancel from any thread."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from penstock.profiling.tool_runner.command import ToolCommand, ToolOutcome, ToolResult, result_from

_SUPERVISOR = Path(__file__).with_name("supervise.py")
_MARK = "PENSTOCK_TOOL"
_TAIL_LIMIT = 8192
WATCH_SECONDS = 0.2


class ToolProcess:
    """A running tool. `cancel` may be called from any thread; `wait` from one."""

    def __init__(self, command: ToolCommand) -> None:
        if not command.folder.is_dir():
            raise NotADirectoryError(f"the working folder {command.folder} does not exist")
        command.logs.mkdir(parents=True, exist_ok=True)
        self.command = command
        self.stdout = command.logs / "stdout.log"
        self.stderr = command.logs / "stderr.log"
        self._mark = uuid.uuid4().hex
        self._scratch = Path(tempfile.mkdtemp(prefix="tmp-", dir=command.folder))
        if command.user is not None:
            os.chown(self._scratch, *command.user)
        self._lock = threading.Lock()
        self._answer = bytearray()
        self._started = time.monotonic()
        try:
            self._start()
        except OSError:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise

    def _start(self) -> None:
        control_read, self._control = os.pipe()
        self._status, status_write = os.pipe()
        try:
            # A session of its own: no Ctrl-C and no kill of the worker's process group reaches it.
            numbers = (str(control_read), str(status_write), str(os.getpid()))
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), *numbers],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(control_read, status_write), start_new_session=True, env={}, cwd="/",
            )  # fmt: skip
        except OSError:
            os.close(self._control)
            os.close(self._status)
            raise
        finally:
            os.close(control_read)
            os.close(status_write)
        os.write(self._control, json.dumps(self._spec()).encode() + b"\n")

    def _spec(self) -> dict[str, Any]:
        command = self.command
        scratch = str(self._scratch)
        temporary = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), scratch)
        user, group = command.user or (None, None)
        return {
            "argv": command.argv, "folder": str(command.folder), "timeout": command.timeout,
            "memory_limit": command.memory_limit, "tree_memory_limit": command.tree_memory_limit,
            "tree_cpu_limit": command.tree_cpu_limit, "plain_text": command.plain_text,
            "log_limit": command.log_limit, "grace": command.grace,
            "stdout": str(self.stdout), "stderr": str(self.stderr), "scratch": scratch,
            "tail_limit": _TAIL_LIMIT, "user": user, "group": group,
            "env": {"PATH": os.defpath, **command.env} | temporary | {_MARK: self._mark},
        }  # fmt: skip

    def cancel(self) -> None:
        """Have the whole process tree killed; returns at once, `wait` returns when nothing is left."""
        with self._lock:
            if self._control >= 0:
                os.close(self._control)
                self._control = -1

    def wait(self, timeout: float | None = None) -> ToolResult | None:
        """The result once the tool and all its processes are gone; None if that is after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._status, select.POLLIN | select.POLLHUP)
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not poll.poll(None if left is None else left * 1000):
                return None
            chunk = os.read(self._status, 65536)
            if not chunk:
                return self._finish()
            self._answer += chunk

    def _finish(self) -> ToolResult:
        self.cancel()
        self._process.wait()
        os.close(self._status)
        if self._answer.endswith(b"\n"):
            return result_from(json.loads(self._answer), self.stdout, self.stderr)
        _kill_marked(self._mark)
        shutil.rmtree(self._scratch, ignore_errors=True)
        return ToolResult(
            ToolOutcome.LOST, None, None, time.monotonic() - self._started, None, None,
            self.stdout, self.stderr, "", 0,
        )  # fmt: skip


class Cancellable(Protocol):
    """What whoever watches a tool can do to it."""

    def cancel(self) -> None: ...


class ToolRunner:
    """The tools of one step. After `cancel_all` the running ones are killed and new ones end as cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[ToolProcess] = set()
        self._closed = False

    def run(self, command: ToolCommand, watch: Callable[[Cancellable], None] | None = None) -> ToolResult:
        """Run a tool to its end. `watch` is called a few times a second meanwhile; it may cancel the process, or raise,
        which ends it."""
        with self._lock:
            closed = self._closed
            process = None if closed else ToolProcess(command)
            if process is not None:
                self._running.add(process)
        if process is None:
            logs = command.logs
            return ToolResult(
                ToolOutcome.CANCELLED, None, None, 0.0, None, None, logs / "stdout.log", logs / "stderr.log", "", 0
            )
        result: ToolResult | None = None
        try:
            while result is None:
                result = process.wait(None if watch is None else WATCH_SECONDS)
                if result is None and watch is not None:
                    watch(process)
            return result
        finally:
            if result is None:  # `watch` raised: nothing of the tool may be left all the same
                process.cancel()
                process.wait()
            with self._lock:
                self._running.discard(process)

    def logs(self) -> tuple[Path, ...]:
        """Of the tools that run now, the files that they write to."""
        with self._lock:
            return tuple(process.stdout for process in self._running)

    def cancel_all(self, *, leave: bool = False) -> None:
        """`leave` is for tools that can outlive their worker; those of this runner cannot."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.cancel()


def _kill_marked(mark: str) -> None:
    """Kill what a killed supervisor left, found by the mark in its environment, until nothing is left."""
    needle = f"{_MARK}={mark}".encode()
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        found = False
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if needle in (entry / "environ").read_bytes():
                    found = True
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue  # it has ended, or it belongs to someone else
        if not found:
            return
        time.sleep(0.02)
