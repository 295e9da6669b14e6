"""The calls of Linux that Python 3.11 has no names for; each raises OSError with the reason."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

LIBC = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
PR_SET_SECCOMP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 22, 47, 4
SECCOMP_MODE_FILTER = 2
CAP_SYS_ADMIN = 21

_MOUNT_SETATTR, _RECURSIVE = 442, 0x8000
_ATTRIBUTE_READ_ONLY, _ATTRIBUTE_NO_SUID, _ATTRIBUTE_NO_DEVICES = 1, 2, 4
_CAPABILITY_VERSION = 0x20080522
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
MACHINES = tuple(_PIVOT_ROOT)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _checked(LIBC.unshare(flags), "new namespaces")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    result = LIBC.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), data.encode() or None
    )
    _checked(result, f"mount of {source} on {target}")


def unmount(target: str) -> None:
    _checked(LIBC.umount2(target.encode(), MNT_DETACH), f"unmount of {target}")


def pivot_root(new: str, old: str) -> None:
    _checked(LIBC.syscall(ctypes.c_long(_PIVOT_ROOT[platform.machine()]), new.encode(), old.encode()), "pivot_root")


def prctl(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(LIBC.prctl(option, *padded), f"prctl {option}")


def sethostname(name: str) -> None:
    _checked(LIBC.sethostname(name.encode(), len(name)), "sethostname")


def drop_bounding_set() -> None:
    """Whatever this process becomes, it gains no capability; a change of the user must come after this."""
    for number in range(64):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:
            break  # the kernel knows no further ones


def drop_capabilities() -> None:
    """Give all of them up."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    _checked(LIBC.syscall(ctypes.c_long(_CAPSET[platform.machine()]), header, none), "capset")


def has_capability(number: int) -> bool:
    with open("/proc/self/status") as file:
        effective = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> number & 1)


def bind_read_only(source: str, target: str, *, devices: bool = False) -> None:
    """Show a file or a folder, with all that is mounted below it, at another place; nobody can write to it there."""
    attributes = _ATTRIBUTE_READ_ONLY | _ATTRIBUTE_NO_SUID | (0 if devices else _ATTRIBUTE_NO_DEVICES)
    mount(source, target, None, MS_BIND | MS_REC)
    described = struct.pack("QQQQ", attributes, 0, 0, 0)
    wanted = ctypes.create_string_buffer(described, len(described))
    arguments = (ctypes.c_long(_MOUNT_SETATTR), ctypes.c_int(-1), target.encode(), ctypes.c_uint(_RECURSIVE))
    result = LIBC.syscall(*arguments, wanted, ctypes.c_size_t(len(described)))
    _checked(result, f"making {target} read-only")
