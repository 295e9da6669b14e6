"""Whether this machine lets this user put up the fence, found out by doing it; and what to do where it does not."""

from __future__ import annotations

import platform
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from penstock import IMPORT_ROOT
from penstock.profiling.tool_runner import clean_environment
from penstock.services.steps.fence.linux import MACHINES
from penstock.services.steps.fence.plan import OUT, FenceLimits, fenced

_SECONDS = 60.0
_MODEST = FenceLimits(cpu_seconds=20, memory_bytes=1 << 29, out_bytes=1 << 20, tmp_bytes=1 << 20)
_DONE = "done"
# Looks for the secret by its name outside, asks for a socket, and leaves a word if neither can be had.
_LOOK = f"""
import os, socket, sys
assert not os.path.exists(sys.argv[1]), "a file of the host can be seen"
try:
    socket.socket(socket.AF_UNIX)
except OSError:
    open("{OUT}/{_DONE}", "w").write("fenced")
"""
_CONTAINER = (
    "inside a container: start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
    "--security-opt systempaths=unconfined; or, where the container itself is the fence, set PENSTOCK_FENCE=off"
)
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
)


@cache
def fence_problem() -> str:
    """Why there can be no fence; empty if there can."""
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        return f"it is made for Linux on {' and '.join(MACHINES)}, not for {platform.system()} {platform.machine()}"
    with tempfile.TemporaryDirectory(prefix="penstock-probe-") as name:
        folder = Path(name)
        stage, out, secret = folder / "stage", folder / "out", folder / "secret"
        stage.mkdir()
        out.mkdir()
        secret.touch()
        command = fenced(["-c", _LOOK, str(secret)], stage=stage, out=out, outputs=(_DONE,), limits=_MODEST)
        environment = clean_environment(PYTHONPATH=str(IMPORT_ROOT))
        try:
            answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"it could not be tried: {error}"
        if answer.returncode == 0 and (out / _DONE).exists():
            return ""
        said = answer.stderr.strip().splitlines()
        return said[-1] if said else f"it ended with {answer.returncode}"


def fence_advice() -> str:
    """What an administrator can do about it."""
    for name, off, command in _SWITCHES:
        path = Path("/proc/sys") / name
        if path.exists() and path.read_text().strip() == off:
            return f"as root: {command}"
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return _CONTAINER
    return f"run the worker as root or allow user namespaces; {_CONTAINER}"
