"""What this machine has, what it lacks, and what the lack means: `penstock doctor`, and the page that shows it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from penstock.compiler.errors import PenstockError
from penstock.profiling.open_rtl.tools import CONSEQUENCES, FINDERS, status, waits_for_translation
from penstock.profiling.tool_runner.cluster import version_of
from penstock.profiling.tool_runner.clusters import CLUSTERS
from penstock.profiling.vitis.advice import advise
from penstock.profiling.vitis.detect import find_vitis
from penstock.services.steps.fence.probe import fence_advice, fence_problem
from penstock.services.supervisor.binaries import OLDEST_POSTGRES, postgres_candidates, redis_candidates
from penstock.services.supervisor.home import LEAST_FREE_BYTES, Home
from penstock.services.supervisor.identity import server_user
from penstock.services.supervisor.stack import health, listen
from penstock.services.supervisor.up import read_settings

CheckState = Literal["ok", "limited", "problem"]
COMPILERS = ("g++", "clang++", "c++")
PARTS = {
    "compiler": ("torch", "torch-mlir", "xdsl", "numpy", "optuna"),
    "api": ("fastapi", "uvicorn", "sqlalchemy", "psycopg", "alembic", "celery", "redis"),
    "examples": ("scikit-learn",),
}


@dataclass(frozen=True)
class Check:
    """One line of the answer. "limited" works without it, "problem" does not."""

    name: str
    state: CheckState
    what: str
    hint: str = ""


def examine() -> Iterable[Check]:
    """Every check, in the order of the report."""
    checks: tuple[Callable[[], Check], ...] = (
        python, machine, cxx_compiler, user, disk, postgres, redis_server, port, fence,
    )  # fmt: skip
    for check in checks:
        yield check()
    yield from open_tools()
    yield from vitis()
    yield from batch_systems()
    for extra, packages in PARTS.items():
        yield installed(extra, packages)


def batch_systems() -> Iterable[Check]:
    """What PENSTOCK_LAUNCHER could name; one that it does name has to be there."""
    chosen = os.environ.get("PENSTOCK_LAUNCHER", "").strip().lower()
    for name, cluster in CLUSTERS.items():
        found = version_of(cluster)
        if found is not None:
            used = "licensed tools run there" if chosen == name else f"not used: PENSTOCK_LAUNCHER={name} would"
            yield Check(name, "ok", f"{found}; {used}")
        elif chosen == name:
            hint = f"install {cluster.version[0]} on the workers, or unset PENSTOCK_LAUNCHER"
            yield Check(name, "problem", f"PENSTOCK_LAUNCHER={name}, and there is no {cluster.version[0]}", hint)


def python() -> Check:
    text = f"Python {platform.python_version()} ({sys.executable})"
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        return Check("python", "problem", text, "Penstock needs Python 3.11 to 3.14")
    return Check("python", "ok", text)


def machine() -> Check:
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    text = f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.0f} GB of memory"
    if memory < 3:
        return Check("machine", "limited", text, "importing PyTorch models needs about 2 GB a worker")
    return Check("machine", "ok", text)


def cxx_compiler() -> Check:
    for name in COMPILERS:
        program = shutil.which(name)
        if program:
            answer = _output([program, "--version"])
            return Check("c++", "ok", f"{answer.splitlines()[0] if answer else name} ({program})")
    hint = "install g++ or clang++: designs are verified by compiling and running them"
    return Check("c++", "problem", f"no C++ compiler on PATH; {CONSEQUENCES['c++']}", hint)


def open_tools() -> Iterable[Check]:
    """The tools of the open route; what is missing costs evidence, never the run."""
    for name in FINDERS:
        if name == "c++":
            continue  # it has a line of its own, since the C simulation needs it too
        if waits_for_translation(name):
            yield Check(
                name, "ok", "installed; it is translated to machine code at its first use, within a minute or so"
            )
            continue
        found = status(name)
        if found.tool is not None:
            yield Check(name, "ok", f"{found.tool.version} ({found.tool.origin})")
        else:
            yield Check(name, "limited", f"{found.problem}; {found.consequence}", found.hint)


def user() -> Check:
    try:
        servers = server_user()
    except PenstockError as error:
        return Check("user", "problem", error.what, error.hint)
    runs = f"; the servers run as {servers.name}" if servers.changed else ""
    return Check("user", "ok", f"uid {os.geteuid()}{runs}")


def disk() -> Check:
    try:
        folder = read_settings().home
    except PenstockError as error:
        return Check("disk", "problem", error.what, error.hint)
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 2**30:.1f} GB free for {folder}"
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("disk", "problem", f"{existing} cannot be written to", "set PENSTOCK_HOME to another folder")
    if free < LEAST_FREE_BYTES:
        return Check("disk", "problem", text, f"at least {LEAST_FREE_BYTES // 2**20} MB are needed")
    return Check("disk", "ok", text)


def postgres() -> Check:
    if read_settings().database_url:
        return Check("postgres", "ok", "PENSTOCK_DATABASE_URL names a server; none is started")
    found = [(one.version, one.origin) for one in postgres_candidates() if one.major >= OLDEST_POSTGRES]
    if not found:
        hint = "pip install 'penstock[embedded]', or set PENSTOCK_DATABASE_URL"
        return Check("postgres", "problem", f"no Postgres {OLDEST_POSTGRES} or newer", hint)
    return Check("postgres", "ok", _candidates(found))


def redis_server() -> Check:
    if read_settings().redis_url:
        return Check("redis", "ok", "PENSTOCK_REDIS_URL names a server; none is started")
    found = [(one.version, one.origin) for one in redis_candidates()]
    if not found:
        hint = "install redis-server, use Python 3.11 or 3.12 with penstock[embedded], or set PENSTOCK_REDIS_URL"
        return Check("redis", "problem", "no Redis server", hint)
    return Check("redis", "ok", _candidates(found))


def port() -> Check:
    settings = read_settings()
    running = Home(settings.home).running()
    if running is not None:
        alive = "healthy" if health(running.url) else "not answering"
        return Check("port", "ok", f"Penstock already runs: pid {running.pid}, {running.url}, {alive}")
    try:
        listen(settings.api_host, settings.api_port).close()
    except PenstockError as error:
        return Check("port", "limited", f"{error.where}: {error.what}", error.hint)
    return Check("port", "ok", f"{settings.api_host}:{settings.api_port} is free")


def vitis() -> Iterable[Check]:
    for line in advise(find_vitis()):
        yield Check(line.name, "ok" if line.complete else "limited", line.what, line.hint)


def fence() -> Check:
    if read_settings().fence == "off":
        what = "off by PENSTOCK_FENCE: whoever submits a model runs code as the service's user"
        return Check("fence", "limited", what, "unset PENSTOCK_FENCE unless the service runs in a container of its own")
    problem = fence_problem()
    if problem:
        return Check("fence", "limited", f"no model can be imported by the service: {problem}", fence_advice())
    return Check("fence", "ok", "models are imported with no network, no files of this machine, and limits")


def installed(extra: str, packages: Iterable[str]) -> Check:
    present: list[str] = []
    missing: list[str] = []
    for package in packages:
        try:
            present.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        hint = f"pip install 'penstock[{extra}]'"
        return Check(f"[{extra}]", "limited", f"not installed: {', '.join(missing)}", hint)
    return Check(f"[{extra}]", "ok", ", ".join(present))


def _candidates(found: list[tuple[str, str]]) -> str:
    """The one that will be used, and what else there is."""
    used, *others = [f"{number} ({origin})" for number, origin in found]
    return used + (f"; also {', '.join(others)}" if others else "")


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
