"""The filter of system calls inside the fence, assembled as classic BPF: what foreign code has no use for is refused.

What would reach outside (sockets, other processes, mounts, keys, the disk's cache, what others do with shown files),
what counts against no limit (shared memory without a file, message queues, rings) or against one that the service
itself shares (watches), and what enlarges the surface of the kernel (BPF, perf, new namespaces, modules).
A refused call fails with EPERM, or ENOSYS where the C library then takes an older call that can be looked into.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from penstock.services.steps.fence.linux import PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prctl

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Numbers of the calls by machine: x86_64, aarch64; None where the machine does not have the call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "socketpair": (53, 199),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "statmount": (457, 457), "listmount": (458, 458), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "swapon": (167, 224), "swapoff": (168, 225), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "unshare": (272, 97), "setns": (308, 268),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0), "io_submit": (209, 2), "fanotify_init": (300, 262),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "sync": (162, 81), "syncfs": (306, 267),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "map_shadow_stack": (453, 453),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
    "semop": (65, 193), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "syslog": (103, 116), "vhangup": (153, 58), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "create_module": (174, None), "personality": (135, 92), "sethostname": (170, 161), "setdomainname": (171, 162),
    "mknod": (133, None), "mknodat": (259, 33), "seccomp": (317, 277), "landlock_create_ruleset": (444, 444),
    "lsm_set_self_attr": (460, 460), "vmsplice": (278, 75),
}  # fmt: skip
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_IOCTL = {"x86_64": 16, "aarch64": 29}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW… that clone takes
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put words into the mouth of whoever sits at a terminal
_OF_SHOWN_FILES = (1024, 1026)  # F_SETLEASE has others wait for a file, F_NOTIFY tells when they open one
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENT_0, _ARGUMENT_1 = 0, 4, 16, 24
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _instruction(_RETURN, _ERROR | number)


def program(machine: str) -> bytes:
    """The filter for that machine."""
    column = tuple(_AUDIT_ARCH).index(machine)
    code = [
        _instruction(_LOAD, _ARCH),
        _instruction(_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        code += [_instruction(_AT_LEAST, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        number = numbers[column]
        if number is not None:
            code += [_instruction(_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    # its flags lie in memory, where a filter cannot look: the C library falls back to clone
    code += [_instruction(_EQUAL, _CLONE3, 0, 1), _refuse(errno.ENOSYS)]
    code += [
        _instruction(_EQUAL, _CLONE[machine], 0, 4),
        _instruction(_LOAD, _ARGUMENT_0),
        _instruction(_ANY_BIT, _NEW_NAMESPACES, 0, 1),
        _refuse(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
        _instruction(_EQUAL, _IOCTL[machine], 0, 5),
        _instruction(_LOAD, _ARGUMENT_1),
        *(_instruction(_EQUAL, number, 1 - place, place) for place, number in enumerate(_TERMINAL_INPUT)),
        _refuse(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
        _instruction(_EQUAL, _FCNTL[machine], 0, 5),
        _instruction(_LOAD, _ARGUMENT_1),
        *(_instruction(_EQUAL, number, 1 - place, place) for place, number in enumerate(_OF_SHOWN_FILES)),
        _refuse(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _ALLOW),
    ]
    return b"".join(code)


def install() -> None:
    """Put the filter on this process, for good; it needs no_new_privs."""
    code = program(platform.machine())
    held = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
    handed = ctypes.create_string_buffer(described, len(described))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(handed))
