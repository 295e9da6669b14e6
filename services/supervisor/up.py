"""The foreground program behind `penstock up`: start the stack, watch it, stop it on a signal."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from penstock.compiler.errors import PenstockError
from penstock.services.settings import Settings
from penstock.services.supervisor.home import Home
from penstock.services.supervisor.stack import Stack, StackPlan

PR_SET_CHILD_SUBREAPER = 36
LOOK_SECONDS = 0.2
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Options:
    """The command line's wishes; None leaves it to the environment."""

    port: int | None = None
    host: str | None = None
    home: str | None = None
    workers: int = 1
    json_status: bool = False
    allow_python: bool = False


class StopRequested(BaseException):
    """Raised by the first stopping signal, wherever the start or the watch stands."""


def run(options: Options, way_in: Callable[[str, str], str]) -> int:
    """Serve until a signal comes. `way_in` makes, of a database and the service's address, the link for its user.

    Returns 0 after an orderly stop, raises PenstockError on a failed start."""
    began = time.monotonic()
    settings = read_settings()
    home = Home(Path(options.home).expanduser() if options.home else settings.home)
    home.prepare()
    home.lock()
    plan = StackPlan(
        host=options.host or settings.api_host,
        port=settings.api_port if options.port is None else options.port,
        workers=options.workers,
        database_url=settings.database_url,
        redis_url=settings.redis_url,
        allow_python=options.allow_python,
        api_processes=settings.api_processes,
    )
    stack = Stack(home, plan, say)
    adopt_orphans()
    try:
        with stopping_signals(stack) as stopping:
            try:
                stack.start()
                link = way_in(stack.database_url, stack.url)
                report(stack, time.monotonic() - began, options.json_status, link)
                while True:
                    stack.watch()
                    reap_orphans(stack)
                    time.sleep(LOOK_SECONDS)
            except StopRequested:
                say("stopping")
            finally:
                stopping.begun = True
                stack.stop()
                kill_descendants()
    finally:
        home.release()
    say("stopped")
    return 0


def read_settings() -> Settings:
    """The settings, with a sentence where not even a home folder can be named."""
    try:
        return Settings.from_environment()
    except RuntimeError:  # pathlib, for a user without a home
        raise PenstockError(
            code="no-home",
            what=f"uid {os.geteuid()} has no home folder",
            hint="set PENSTOCK_HOME to a folder that it can write to",
        ) from None


def report(stack: Stack, seconds: float, as_json: bool, link: str) -> None:
    """One clear block when everything answers."""
    if as_json:
        status = {
            "pid": os.getpid(),
            "url": stack.url,
            "login": link,
            "home": str(stack.home.root),
            "servers": stack.servers,
            "workers": stack.plan.workers,
            "seconds": round(seconds, 2),
        }
        print(json.dumps(status), flush=True)
        return
    servers = ", ".join(f"{name} {origin}" for name, origin in stack.servers.items())
    print(
        f"Penstock runs (pid {os.getpid()}), ready in {seconds:.1f} s\n"
        f"  pages          {link}  (a way in, once; `penstock login` prints another)\n"
        f"  API            {stack.url}\n"
        f"  servers        {servers}\n"
        f"  workers        {stack.plan.workers}\n"
        f"  data           {stack.home.root}\n"
        f"  logs           {stack.home.logs}\n"
        "Ctrl-C stops it.",
        flush=True,
    )


def say(line: str) -> None:
    """One line on stderr, with the time; a closed terminal must not stop the supervisor."""
    with contextlib.suppress(OSError):
        print(f"penstock {time.strftime('%H:%M:%S')}: {line}", file=sys.stderr, flush=True)


@dataclass
class Stopping:
    """Whether the stop has begun, by a signal or because the start failed."""

    begun: bool = False


@contextlib.contextmanager
def stopping_signals(stack: Stack) -> Iterator[Stopping]:
    """The first signal raises StopRequested; one during the stop only makes it hurry."""
    stopping = Stopping()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stopping.begun:
            stack.hurry = True
        else:
            stopping.begun = True
            raise StopRequested

    before = {number: signal.signal(number, on_signal) for number in STOPPING_SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def adopt_orphans() -> None:
    """Make grandchildren whose parent dies our own children, so that `kill_descendants` finds them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(stack: Stack) -> None:
    """Collect adopted processes that ended. Our own children are left to the objects that started them."""
    own = {kept.child.pid for kept in stack.keeper.programs if kept.child is not None}
    for pid in set(children_of(os.getpid())) - own:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def kill_descendants() -> None:
    """SIGKILL for every process below us that outlived the orderly stop."""
    deadline = time.monotonic() + 5.0
    while (children := children_of(os.getpid())) and time.monotonic() < deadline:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def children_of(pid: int) -> list[int]:
    """The direct children of all threads of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(text) for text in task.read_text().split()]
    return found
