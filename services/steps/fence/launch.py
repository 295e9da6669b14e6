"""`python -m penstock.services.steps.fence.launch SPEC`: run one command behind the fence and bring out what it made.

Three processes. This one makes the namespaces, waits, and copies the outputs; it never meets the foreign code's
processes, which cannot see it. Its child is the first process of the new PID namespace: it builds the root, and when it
ends the kernel kills whatever is left. Its grandchild gives up every right and becomes the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
from dataclasses import asdict, dataclass
from typing import Any

from penstock.services.steps.fence import linux, seccomp
from penstock.services.steps.fence.collect import collect

NO_FENCE = 125
"""Exit code where the fence could not be made: nothing was run."""

INSIDE_UID = 65533
_OWN_UIDS = 0x7A000000  # far from every range that people, containers or services are given
_DEVICES = ("null", "zero", "full", "random", "urandom")
_PEOPLE = {
    "etc/passwd": "penstock:x:{uid}:{uid}:fenced:/tmp:/nonexistent\n",
    "etc/group": "penstock:x:{uid}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/hosts": "127.0.0.1 localhost\n",
}


@dataclass(frozen=True)
class Spec:
    """What runs, what it sees, and how much it may use. `shown` are read-only places: (where it is, where it is seen).

    `outputs` are the files that come out of /out into `out`, whatever else lies there.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    stage: str
    shown: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...]
    out: str
    outputs: tuple[str, ...]
    out_bytes: int
    tmp_bytes: int
    cpu_seconds: int
    memory_bytes: int
    processes: int
    open_files: int

    def text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def read(text: str) -> Spec:
        fields: dict[str, Any] = json.loads(text)
        for name in ("argv", "outputs", "hidden"):
            fields[name] = tuple(fields[name])
        for name in ("shown", "links"):
            fields[name] = tuple((first, second) for first, second in fields[name])
        return Spec(**fields)


def main(arguments: list[str]) -> int:
    spec = Spec.read(arguments[0])
    out = os.open(spec.out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        uid = _separate()
        status = _run_first_process(spec, uid)
    except OSError as error:
        return _no_fence(error)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == NO_FENCE:
        return NO_FENCE
    root = os.open("/out", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    problem = collect(root, out, spec.outputs, spec.out_bytes)
    if problem:
        sys.stderr.write(f"{problem}\n")
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _no_fence(error: OSError) -> int:
    sys.stderr.write(f"{error.args[1] if len(error.args) > 1 else error}\n")
    return NO_FENCE


def _separate() -> int:
    """Enter new namespaces; returns the uid that the command is to run as, as it is called in there."""
    apart = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    apart |= linux.CLONE_NEWCGROUP
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 and linux.has_capability(linux.CAP_SYS_ADMIN):
        linux.unshare(apart)
        return _own_uid()
    linux.unshare(apart | linux.CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"), ("uid_map", f"{INSIDE_UID} {uid} 1"), ("gid_map", f"{INSIDE_UID} {gid} 1"),
    ):  # fmt: skip
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return INSIDE_UID


def _own_uid() -> int:
    """A uid for this run alone, so that no two runs share a count of processes; nobody's where that is not mapped."""
    wanted = _OWN_UIDS + os.getpid()
    with open("/proc/self/uid_map") as file:
        ranges = [[int(word) for word in line.split()] for line in file]
    return wanted if any(first <= wanted < first + count for first, _, count in ranges) else INSIDE_UID


def _run_first_process(spec: Spec, uid: int) -> int:
    """The wait status of the first process of the new PID namespace, once nothing of it is left."""
    alive, held = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(held)
        _guarded(lambda: _first_process(spec, uid, alive))
    os.close(alive)
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # a new user namespace has reset it
    return os.waitpid(first, 0)[1]


def _guarded(work: Any) -> None:
    """In a forked process: do it, or end with what went wrong; never go on as the parent would."""
    try:
        code = work()
    except OSError as error:
        code = _no_fence(error)
    except BaseException as error:  # noqa: BLE001  (a forked process must not return into its parent's code)
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        code = NO_FENCE
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
    os._exit(code)


def _first_process(spec: Spec, uid: int, alive: int) -> int:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:
        raise OSError(0, "the process that asked for the fence has ended")  # before this one could be bound to it
    linux.prctl(linux.PR_SET_DUMPABLE, 0)  # /proc/1 stays closed to those who come
    linux.sethostname("penstock")
    _build_root(spec, uid)
    os.closerange(3, 1 << 16)
    command = os.fork()
    if command == 0:
        _guarded(lambda: _command(spec, uid))
    linux.drop_bounding_set()
    linux.drop_capabilities()
    while True:  # orphans come to this process, too
        pid, status = os.wait()
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _build_root(spec: Spec, uid: int) -> None:
    """A root of its own: a small tmpfs with what is shown, read-only; only /tmp and /out can be written to."""
    root = spec.stage
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,mode=0755,nr_inodes=4096")
    for name, size in (("tmp", spec.tmp_bytes), ("out", spec.out_bytes)):
        _place_for(f"{root}/{name}", folder=True)
        options = f"size={size},nr_inodes=20000,mode=0700,uid={uid},gid={uid}"
        linux.mount("tmpfs", f"{root}/{name}", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
    for source, seen in sorted(spec.shown, key=lambda pair: pair[1]):
        _place_for(root + seen, folder=os.path.isdir(source))
        linux.bind_read_only(source, root + seen)
    for path in spec.hidden:
        if os.path.isdir(root + path):
            linux.mount("tmpfs", root + path, "tmpfs", linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV, "size=4k")
    for link, target in spec.links:
        os.symlink(target, root + link)
    for name in _DEVICES:
        _place_for(f"{root}/dev/{name}", folder=False)
        linux.bind_read_only(f"/dev/{name}", f"{root}/dev/{name}", devices=True)
    for name, text in _PEOPLE.items():
        if not os.path.exists(f"{root}/{name}"):
            _place_for(f"{root}/{name}", folder=False)
            with open(f"{root}/{name}", "w") as file:
                file.write(text.format(uid=uid))
    _place_for(f"{root}/proc", folder=True)
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC | linux.MS_RDONLY
    with contextlib.suppress(OSError):  # inside a container whose own /proc is masked: it has none then
        linux.mount("proc", f"{root}/proc", "proc", flags, "hidepid=2")
    _place_for(f"{root}/old", folder=True)
    os.chdir(root)
    linux.pivot_root(".", "old")
    os.chdir("/")
    linux.unmount("/old")
    os.rmdir("/old")
    here = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("none", "/", None, here)


def _place_for(path: str, *, folder: bool) -> None:
    """An empty folder or file to mount on."""
    if os.path.exists(path):
        return
    os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)
    if not folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _command(spec: Spec, uid: int) -> int:
    """Become the command, with no right left but to compute."""
    os.setsid()
    os.chdir("/tmp")
    os.nice(5)
    data = spec.memory_bytes
    for kind, limit in (
        (resource.RLIMIT_DATA, data), (resource.RLIMIT_AS, 4 * data),
        (resource.RLIMIT_FSIZE, max(spec.out_bytes, spec.tmp_bytes)), (resource.RLIMIT_NPROC, spec.processes),
        (resource.RLIMIT_NOFILE, spec.open_files), (resource.RLIMIT_MEMLOCK, 1 << 20), (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_SIGPENDING, 256), (resource.RLIMIT_MSGQUEUE, 0),
    ):  # fmt: skip
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (spec.cpu_seconds, spec.cpu_seconds + 5))  # the first one tells why
    linux.drop_bounding_set()
    if uid != INSIDE_UID or os.geteuid() != uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    seccomp.install()
    os.execve(spec.argv[0], spec.argv, spec.env)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
