"""Start a program that dies with its parent, perhaps as another user. A script that imports nothing of ours.

    python -I -S launch.py PARENT_PID SIGNAL UID GID COMMAND...

A script rather than a preexec_fn: that would run Python between fork and exec of a process with threads.
UID -1 keeps the user. The death signal is set after the change of user, because the kernel clears it there.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    parent, death_signal, uid, gid = (int(text) for text in arguments[:4])
    command = arguments[4:]
    try:
        if uid >= 0:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
        if os.getppid() != parent:
            return 0  # the parent died before the death signal was armed
        os.execv(command[0], command)
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]} as uid {uid if uid >= 0 else os.getuid()}: {error}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
