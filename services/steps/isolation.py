"""Keeps a process away from the network: in namespaces of its own, where the machine allows them.

Probed once a process, since user namespaces are switched off on some machines.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

from compiler.errors import PenstockError

_NAMESPACES = ("--user", "--map-root-user", "--net")


@cache
def namespaces_work() -> bool:
    """Whether this machine lets this user make user and network namespaces."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    try:
        return subprocess.run([unshare, *_NAMESPACES, "true"], capture_output=True, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def isolated(command: Sequence[str], *, required: bool) -> list[str]:
    """The command without a network. Where that cannot be had: an error if `required`, else the command."""
    if namespaces_work():
        return ["unshare", *_NAMESPACES, "--", *command]
    if required:
        raise PenstockError(
            code="no-isolation", what="this machine cannot keep untrusted models away from the network",
            limit="user namespaces are switched off, or `unshare` is missing",
            hint="install util-linux and allow user namespaces, or submit a model of the zoo",
        )  # fmt: skip
    return list(command)
