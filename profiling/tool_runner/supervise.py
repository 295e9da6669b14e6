"""Runs one tool and makes sure that nothing of it outlives its end, its cancellation or its owner.

A program of its own, started as `python -I -S supervise.py CONTROL STATUS OWNER` and importing as little as
possible, since it starts once a tool run. It becomes the reaper of all orphans below it
(PR_SET_CHILD_SUBREAPER), so that a double-forked daemon with its own session still is its descendant.
When the control pipe closes, whether by a cancel or because the owner was killed, every descendant is
killed. The owner reads one JSON object from the status pipe.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
POLL_SECONDS = 0.05
WATCH_SECONDS = 0.25  # adopted orphans that ended are collected, and the deadline is looked at, so often
UNKILLABLE_SECONDS = 20.0
MEMORY_SECONDS = 0.5  # memory and computing time of the whole tree are added up so often
MOST_TIMES = 10  # a tool that waits for a processor gets up to so many times its timeout
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


# What a terminal would obey, and everything beyond ASCII, of which some is the same: shown as a question mark.
PLAIN = bytes(b if 32 <= b < 127 or b in b"\n\t" else ord("\n") if b == ord("\r") else ord("?") for b in range(256))


class BoundedLog:
    """Keeps the first and the last part of a stream: the first as it comes, the last at the end."""

    def __init__(self, path, limit):
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self.room = limit // 2
        self.tail_limit = limit - self.room
        self.tail = bytearray()
        self.skipped = 0
        self.failure = None

    def write(self, data):
        if self.room:
            head, data = data[: self.room], data[self.room :]
            self._put(head)
            self.room -= len(head)
        self.tail += data
        if len(self.tail) > 2 * self.tail_limit:
            self._trim()

    def close(self):
        self._trim()
        if self.skipped:
            self._put(b"\n[... %d bytes left out ...]\n" % self.skipped)
        self._put(self.tail)
        os.close(self.descriptor)

    def _put(self, data):
        try:
            os.write(self.descriptor, data)
        except OSError as error:
            self.failure = error.errno  # a full disk must not stop the watching; it is reported

    def _trim(self):
        excess = len(self.tail) - self.tail_limit
        if excess > 0:
            del self.tail[:excess]
            self.skipped += excess


def descendants():
    """All processes below this one, by their parents in /proc; zombies are not counted."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # the command in parentheses may contain anything: the fields follow the last one
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue  # it has just ended
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        below = children.get(todo.pop(), ())
        found += below
        todo += below
    return found


def resident_bytes(pids, limit):
    """What processes hold together. Pages that forks share are counted once, where a first sum is over the limit."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", "rb") as file:  # it may have just ended
            total += int(file.read().split()[1]) * PAGE_BYTES
    if total <= limit:
        return total
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                total += next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), 0)
        except OSError:
            continue  # it has just ended
    return total


def cpu_ticks(pids):
    """The time that processes took to compute, with those below them that have ended; whether one could go on."""
    total, ready = 0, False
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:  # it may have just ended
            fields = file.read().rpartition(b")")[2].split()
            total += sum(map(int, fields[11:15]))
            ready = ready or fields[0] == b"R"
    return total, ready


def send(pids, number):
    for pid in pids:
        # it may have ended, or run as another user: what stays alive is counted in the report
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def find_program(name, search_path):
    """The file to execute. Done here, since the tool's user may not be able to read Python's own files."""
    if "/" in name:
        return name
    for folder in search_path.split(os.pathsep):
        candidate = os.path.join(folder, name)
        if folder and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


class Supervised:
    def __init__(self, spec, control, status, owner):
        self.spec = spec
        self.control = control
        self.status = status
        self.owner = owner
        self.started = time.monotonic()
        self.main = 0
        self.main_status = None
        self.usage = None
        self.killed_by_us = set()
        self.foreign_kill = False
        self.recent = bytearray()
        self.streams = {}
        self.unkillable = 0
        self.tree_cpu = None  # seconds that the whole tree was seen to compute; looked at where that is limited
        self.seen_at = self.started  # when that was
        self.deadline = self.started + spec["timeout"] if spec["timeout"] else None
        self.tree_bytes = None  # the most that the whole tree was seen to hold; looked at where it is limited

    def start(self):
        """Fork and exec the tool; returns the errno of a failed exec, or None."""
        program = find_program(self.spec["argv"][0], self.spec["env"]["PATH"])
        if program is None:
            return errno.ENOENT
        pipes = [os.pipe(), os.pipe()]
        failure_read, failure_write = os.pipe()
        self.main = os.fork()
        if self.main == 0:
            self._become_tool(program, pipes, failure_write)
        os.close(failure_write)
        for (read, write), name in zip(pipes, ("stdout", "stderr"), strict=True):
            os.close(write)
            os.set_blocking(read, False)
            self.streams[read] = BoundedLog(self.spec[name], self.spec["log_limit"])
        code = os.read(failure_read, 16)
        os.close(failure_read)
        return int(code) if code else None

    def _become_tool(self, program, pipes, failure_write):
        try:
            os.setsid()
            # should this supervisor be killed itself, at least the tool's first process goes with it
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(pipes[0][1], 1)
            os.dup2(pipes[1][1], 2)
            os.chdir(self.spec["folder"])
            if self.spec["memory_limit"]:
                limit = self.spec["memory_limit"]
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            # not 0: with that a machine's crash handler would still be started, on a process of somebody's making
            core = 1 if resource.getrlimit(resource.RLIMIT_CORE)[1] else 0
            resource.setrlimit(resource.RLIMIT_CORE, (core, core))
            if self.spec["user"] is not None:
                os.setgroups([])
                os.setgid(self.spec["group"])
                os.setuid(self.spec["user"])
                LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user resets it
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execve(program, self.spec["argv"], self.spec["env"])
        except OSError as error:
            os.write(failure_write, b"%d" % (error.errno or errno.EIO))
        finally:
            os._exit(127)

    def watch(self):
        """Wait for the tool's end; returns why it ended: "exit", "timeout", "cpu", "memory" or "cancelled"."""
        next_look = self.started
        poll = select.poll()
        poll.register(self.control, select.POLLIN | select.POLLHUP)
        for watched in filter(None, (self.owner, pidfd(self.main))):
            poll.register(watched, select.POLLIN)
        for stream in self.streams:
            poll.register(stream, select.POLLIN | select.POLLHUP)
        while True:
            self.reap()
            if self.main_status is not None:
                return "exit"
            if time.monotonic() >= min(next_look, self.deadline or next_look):
                if self.spec["tree_memory_limit"] and self.look_at_memory(self.spec["tree_memory_limit"]):
                    return "memory"
                if self.spec["tree_cpu_limit"] and self.look_at_cpu(self.spec["tree_cpu_limit"]):
                    return "cpu"
                next_look = time.monotonic() + MEMORY_SECONDS
            if self.deadline and time.monotonic() >= self.deadline:
                return "timeout"
            for descriptor, _ in poll.poll(1000 * WATCH_SECONDS):
                if descriptor in self.streams:
                    if not self.drain(descriptor):
                        poll.unregister(descriptor)
                elif descriptor in (self.owner, self.control):  # nothing is ever sent after the specification
                    return "cancelled"

    def look_at_memory(self, limit):
        """Whether the tree holds more than it may."""
        held = resident_bytes(descendants(), limit)
        self.tree_bytes = max(held, self.tree_bytes or 0)
        return held > limit

    def look_at_cpu(self, limit):
        """Whether the tree has computed for longer than it may."""
        ticks, ready = cpu_ticks(descendants())
        spent, now = ticks / TICKS, time.monotonic()
        if ready and self.deadline:
            self.give_back(now - self.seen_at - (spent - (self.tree_cpu or 0.0)))
        self.tree_cpu, self.seen_at = spent, now
        return spent > limit

    def give_back(self, waited):
        """The time that the tree waited for a processor is the machine's and not its own: it would have computed, which
        has a limit too. One that is seen ready whenever it is looked at, and sleeps otherwise, ends all the same."""
        if self.deadline is not None:
            latest = self.started + MOST_TIMES * self.spec["timeout"]
            self.deadline = min(latest, self.deadline + max(0.0, waited))

    def drain(self, descriptor):
        """Move what the tool wrote into its log; False at the end of the stream."""
        for _ in range(64):
            try:
                data = os.read(descriptor, 65536)
            except BlockingIOError:
                return True
            if not data:
                return False
            if self.spec["plain_text"]:
                data = data.translate(PLAIN)
            self.streams[descriptor].write(data)
            self.recent += data
            del self.recent[: -self.spec["tail_limit"]]
        return True

    def reap(self):
        """Collect ended children, our own and adopted ones."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.main_status, self.usage = status, usage
            signalled = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            if signalled and pid not in self.killed_by_us:
                self.foreign_kill = True  # the kernel's out-of-memory killer, as a rule

    def kill_all(self, gently):
        """Until nothing is left: TERM and a grace period if asked for, then KILL. Returns how many."""
        pids = descendants()
        seen = set(pids)
        self.killed_by_us |= seen
        if gently and pids:
            send(pids, signal.SIGTERM)
            end = time.monotonic() + self.spec["grace"]
            while time.monotonic() < end:
                self.pump()
                if not descendants():
                    break
                time.sleep(POLL_SECONDS / 2)
        end = time.monotonic() + UNKILLABLE_SECONDS
        while (pids := descendants()) and time.monotonic() < end:
            seen |= set(pids)
            self.killed_by_us |= seen
            send(pids, signal.SIGSTOP)  # what cannot run cannot fork away
            send(pids, signal.SIGKILL)
            self.pump()
            time.sleep(0.005)
        self.pump()
        self.unkillable = len(pids)  # in an uninterruptible system call, or of another user
        return len(seen)

    def pump(self):
        self.reap()
        for stream in self.streams:
            self.drain(stream)

    def report(self, **facts):
        for log in self.streams.values():
            log.close()
        facts |= {
            "seconds": time.monotonic() - self.started,
            "wait_status": self.main_status,
            "foreign_kill": self.foreign_kill,
            "unkillable": self.unkillable,
            "log_errno": next((log.failure for log in self.streams.values() if log.failure), None),
            "tail": self.recent.decode("utf-8", "replace"),
            "peak_rss": self.usage.ru_maxrss * 1024 if self.usage else None,
            "tree_bytes": self.tree_bytes,
            "tree_cpu": self.tree_cpu,
            "tree_memory_limit": self.spec["tree_memory_limit"],
            "cpu_seconds": self.usage.ru_utime + self.usage.ru_stime if self.usage else None,
        }
        with contextlib.suppress(BrokenPipeError):  # the owner is gone; there is nobody to tell
            os.write(self.status, json.dumps(facts).encode() + b"\n")


def read_spec(control):
    """The first line on the control pipe."""
    data = bytearray()
    while not data.endswith(b"\n"):
        chunk = os.read(control, 65536)
        if not chunk:
            sys.exit(1)
        data += chunk
    return json.loads(data)


def remove_scratch(folder):
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def pidfd(pid):
    """What tells of a process's end; None behind a fence, where all end together and the pipes tell the rest."""
    try:
        return os.pidfd_open(pid)
    except PermissionError:
        return None


def main():
    control, status, owner_pid = (int(argument) for argument in sys.argv[1:4])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a Ctrl-C meant for the worker reaches us through the pipe
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    owner = pidfd(owner_pid)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != owner_pid:
        sys.exit(1)  # the owner was killed before we could watch it
    run = Supervised(read_spec(control), control, status, owner)
    ended = failure = None
    try:
        failure = run.start()
        ended = "exit" if failure is not None else run.watch()
    finally:
        # a tree that has eaten its memory would eat more in a grace period
        left = run.kill_all(gently=ended in ("timeout", "cancelled"))
        remove_scratch(run.spec["scratch"])
    run.report(ended=ended, exec_errno=failure, left_behind=left if ended == "exit" else 0, killed=left)


LIBC = ctypes.CDLL(None, use_errno=True)

if __name__ == "__main__":
    main()
