"""Reads reports and logs within bounds: no size, no compression and no garbage can exhaust memory."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.profiling.protocol import ProfilingError

TEXT_LIMIT = 32 << 20
XML_LIMIT = 256 << 20
LOG_HEAD, LOG_TAIL = 256 << 10, 1 << 20
_CHUNK = 1 << 16


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def unreadable(path: Path | str, what: str, *, limit: str = "", hint: str = "") -> ProfilingError:
    return ProfilingError(
        "report-unreadable", what=what, where=_short(path), limit=limit,
        hint=hint or "look at the tool's log, and run the step again",
    )  # fmt: skip


def missing(path: Path | str, what: str = "the report is not there") -> ProfilingError:
    return ProfilingError(
        "report-missing", what=what, where=_short(path), hint="look at the tool's log: the step did not get that far"
    )


def _short(path: Path | str) -> str:
    return "/".join(Path(path).parts[-3:])


def chunks(path: Path, limit: int) -> Iterator[bytes]:
    """The file's bytes, unpacked if it is gzip, in pieces; more than `limit` of them is an error."""
    total = 0
    with opened(path) as stream:
        while piece := _read(stream, path):
            total += len(piece)
            if total > limit:
                raise unreadable(path, "the report is too large", limit=f"at most {limit >> 20} MiB are read")
            yield piece


def _read(stream: _Stream, path: Path) -> bytes:
    try:
        return stream.read(_CHUNK)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, f"reading failed: {error}") from error


@contextmanager
def opened(path: Path) -> Iterator[_Stream]:
    try:
        if not path.is_file():
            raise unreadable(path, "the report is not a plain file") if path.exists() else missing(path)
        raw = path.open("rb")
    except (OSError, ValueError) as error:
        raise unreadable(path, f"the report cannot be opened: {error}") from error
    with raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=raw) as stream:
                yield stream
        else:
            yield raw


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """A whole text report. Binary garbage is refused, an odd byte is not."""
    return as_text(b"".join(chunks(path, limit)), path)


def read_start(path: Path, limit: int) -> str:
    """The beginning of a text report of any size."""
    kept = bytearray()
    with opened(path) as stream:
        while len(kept) < limit and (piece := _read(stream, path)):
            kept += piece
    return as_text(bytes(kept[:limit]), path)


def as_text(data: bytes, path: Path | str) -> str:
    if not data.strip():
        raise unreadable(path, "the report is empty")
    sample = data[: 1 << 16]
    odd = sum(sample.count(byte) for byte in range(32) if byte not in (9, 10, 12, 13))
    if b"\x00" in sample or odd > len(sample) // 20:
        raise unreadable(path, "the report is not text")
    return data.decode("utf-8", errors="replace").replace("\r\n", "\n")


@dataclass(frozen=True)
class LogWindow:
    """The beginning and the end of a log; `skipped` bytes lie between them."""

    head: str
    tail: str
    skipped: int

    @property
    def text(self) -> str:
        return self.head + (f"\n... {self.skipped} bytes left out ...\n" if self.skipped else "") + self.tail

    def last_lines(self, count: int = 12) -> str:
        lines = (self.tail or self.head).rstrip().splitlines()[-count:]
        return "\n".join(line[:500] for line in lines)


def read_log(path: Path, head: int = LOG_HEAD, tail: int = LOG_TAIL) -> LogWindow:
    """A log of any size and content: its beginning and its end, with what is not text replaced."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            first = stream.read(min(size, head))
            start = max(len(first), size - tail)
            stream.seek(start)
            last = stream.read(tail)
    except FileNotFoundError as error:
        raise missing(path, "the log is not there") from error
    except (OSError, ValueError) as error:
        raise unreadable(path, f"the log cannot be read: {error}") from error
    return LogWindow(_printable(first), _printable(last), start - len(first))


def _printable(data: bytes) -> str:
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
