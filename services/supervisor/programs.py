"""What the supervisor runs besides the servers, and the environment that they all share."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
from pathlib import Path

from penstock import IMPORT_ROOT
from penstock.services.supervisor.keeper import ROTATE_BYTES
from penstock.services.supervisor.process import Child

# -P keeps the working folder, which is the data folder, out of the import path.
PYTHON = (sys.executable, "-P", "-m")
MOST_STEPS_AT_ONCE = 4  # each one needs up to a gigabyte


def api(number: int, listener: int, logs: Path, environment: dict[str, str]) -> Child:
    """The REST API and the pages, on the supervisor's listening socket, which all its processes share."""
    command = (*PYTHON, "penstock.services.supervisor.serve_api", str(listener))
    name = "" if number == 1 else f"-{number}"
    title = "API" if number == 1 else f"API {number}"
    return Child(title, command, rotated(logs / f"api{name}.log"), environment, files=(listener,))


def worker(number: int, logs: Path, environment: dict[str, str]) -> Child:
    """A Celery worker. TERM lets it hand back its steps; after SIGKILL their leases expire."""
    command = (*PYTHON, "penstock.services.worker")
    return Child(f"worker {number}", command, rotated(logs / f"worker-{number}.log"), environment)


def dispatcher(logs: Path, environment: dict[str, str]) -> Child:
    """Wakes workers and takes steps back from workers that went silent."""
    command = (*PYTHON, "penstock.services.worker.dispatcher")
    return Child("dispatcher", command, rotated(logs / "dispatcher.log"), environment, stop_signal=signal.SIGTERM)


def shared_environment(home: Path, url: str, host: str, port: int) -> dict[str, str]:
    """The user's environment with the stack's addresses. Server URLs are added when the servers run."""
    environment = dict(os.environ)
    environment |= {
        "PENSTOCK_HOME": str(home),
        "PENSTOCK_URL": url,
        "PENSTOCK_API_HOST": host,
        "PENSTOCK_API_PORT": str(port),
        "PYTHONUNBUFFERED": "1",
    }
    environment.setdefault("PENSTOCK_CONCURRENCY", str(min(len(os.sched_getaffinity(0)), MOST_STEPS_AT_ONCE)))
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment.setdefault(threads, "1")  # as many steps as cores run at once, and would fight over them
    if Path(sysconfig.get_paths()["purelib"]).resolve() != IMPORT_ROOT:
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{IMPORT_ROOT}{os.pathsep}{known}" if known else str(IMPORT_ROOT)
    return environment


def rotated(log: Path) -> Path:
    """The log, moved aside first when it has grown large."""
    if log.exists() and log.stat().st_size > ROTATE_BYTES:
        log.replace(log.with_name(log.name + ".1"))
    return log
