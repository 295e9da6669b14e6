"""What goes on while a tool runs: its log line by line, and its work folder kept under a quota."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import Cancellable
from penstock.profiling.work_folder import LEAST_FREE_BYTES

OnLine = Callable[[str], None]
MOST_LINES = 200_000  # handed on as they come, in all and of one look; the log has all of them
MOST_LINES_AT_ONCE = 200
MOST_AT_ONCE = 1 << 17
LONGEST_LINE = 2000
QUOTA_SECONDS = 1.0
QUOTA_SHARE = 20  # a look at a large folder may take this part of the time


class Watch:
    """Called a few times a second with the running process."""

    def __init__(self, log: Path, folder: Path, disk_limit: int, on_line: OnLine | None) -> None:
        self.log, self.folder, self.disk_limit, self.on_line = log, folder, disk_limit, on_line
        self.over_quota = ""
        self._offset = 0
        self._rest = b""
        self._lines = 0
        self._next_look = time.monotonic() + QUOTA_SECONDS

    def __call__(self, process: Cancellable) -> None:
        self.follow()
        if time.monotonic() < self._next_look or self.over_quota:
            return
        started = time.monotonic()
        used = folder_bytes(self.folder)
        free = shutil.disk_usage(self.folder).free
        took = time.monotonic() - started
        self._next_look = time.monotonic() + max(QUOTA_SECONDS, QUOTA_SHARE * took)
        if used > self.disk_limit:
            self.over_quota = (
                f"it wrote {used >> 20} MiB into its work folder; at most {self.disk_limit >> 20} are allowed"
            )
        elif free < LEAST_FREE_BYTES // 2:
            self.over_quota = f"only {free >> 20} MiB are free on the disk of the work folder"
        if self.over_quota:
            process.cancel()

    def follow(self, most: int = MOST_AT_ONCE) -> None:
        """Hand on the lines that have come; of too many the first and the last."""
        if self.on_line is None or self._lines > MOST_LINES:
            return
        try:
            with self.log.open("rb") as file:
                behind = os.fstat(file.fileno()).st_size - self._offset
                file.seek(self._offset)
                data = file.read(most)
                if behind > 2 * most:
                    skipped = behind - 2 * most
                    data += b"\n... %d bytes are in the log alone ...\n" % skipped
                    file.seek(skipped, os.SEEK_CUR)
                    data += file.read(most)
                self._offset = file.tell()
        except FileNotFoundError:
            return  # nothing has been said yet
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-LONGEST_LINE:]
        half = MOST_LINES_AT_ONCE // 2
        if len(lines) > MOST_LINES_AT_ONCE:
            lines[half:-half] = [b"... %d lines are in the log alone ..." % (len(lines) - 2 * half)]
        for line in lines:
            self._lines += 1
            self.on_line(printable(line[:LONGEST_LINE]))
        if self._lines > MOST_LINES:
            self.on_line("... further lines are in the log alone")


def printable(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip()
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def folder_bytes(folder: Path) -> int:
    """What a folder occupies; what vanishes meanwhile counts nothing."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


@contextmanager
def files_of(what: str) -> Iterator[None]:
    """Files that cannot be written or read are failures of the job with their kind."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
        raise ProfilingError(
            "disk-full" if full else "bad-request", what=f"files of the job: {error}", where=what,
            hint="free space in the work folder, or set it to another disk" if full else "emit the design again",
        ) from error  # fmt: skip
