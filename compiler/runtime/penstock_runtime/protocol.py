"""The bytes between host and board: requests, replies, checksums, the identity block. No port is opened here.

A request is `A5 5A command tag port offset(3) length(2) crc(2)` and, where it writes, a payload with a `crc(2)`.
A reply is `5A A5 status tag length(2) crc(2)` and, where there is one, a payload with a `crc(2)`. Numbers are little
endian, checksums big endian. A tag ties a reply to its request.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .errors import PackageError

VERSION = 1
MAGIC = b"PSTK"
REQUEST_SYNC, REPLY_SYNC = b"\xa5\x5a", b"\x5a\xa5"
PING, IDENTIFY, WRITE, READ, START, STATUS, RESET = range(1, 8)
LONGEST_PAYLOAD = 1024
QUEUE_BYTES = 2048
REPLY_HEADER_BYTES = 8

OK, BUSY, LATE = 0, 6, 7
RETRY = (1, 2)
WORDS = {
    1: "a damaged request",
    2: "a damaged payload",
    3: "a command that it does not know",
    4: "a buffer that it does not have",
    5: "an address outside the buffer",
    6: "a request while the accelerator is running",
}


@dataclass(frozen=True)
class Reply:
    status: int
    tag: int
    payload: bytes


@dataclass(frozen=True)
class BoardPort:
    """One buffer as the board describes it."""

    name: str
    direction: str
    word_bytes: int
    words: int


@dataclass(frozen=True)
class Identity:
    version: int
    clock_hz: int
    baud: int
    digest: str
    ports: tuple[BoardPort, ...]


def crc16(data: bytes) -> int:
    crc = 0xFFFF
    for byte in data:
        crc = ((crc << 8) & 0xFFFF) ^ _TABLE[(crc >> 8) ^ byte]
    return crc


def _table_entry(byte: int) -> int:
    crc = byte << 8
    for _ in range(8):
        crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
    return crc & 0xFFFF


_TABLE = [_table_entry(byte) for byte in range(256)]


def request(command: int, tag: int, port: int = 0, offset: int = 0, length: int = 0, payload: bytes = b"") -> bytes:
    """The bytes of one request. `length` is what a read wants; a write's is its payload's."""
    size = len(payload) or length
    header = struct.pack("<BBB", command, tag, port) + offset.to_bytes(3, "little") + struct.pack("<H", size)
    text = REQUEST_SYNC + checked(header)
    return text + checked(payload) if payload else text


def checked(data: bytes) -> bytes:
    """Data with its checksum behind it; the checksum of the whole is then 0."""
    return data + crc16(data).to_bytes(2, "big")


class ReplyReader:
    """Finds replies in what the port delivers. Bytes outside of a valid reply are counted and skipped."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.skipped = 0

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> Reply | None:
        """The next whole and valid reply, or None while there is none."""
        while True:
            start = self._data.find(REPLY_SYNC)
            if start < 0:
                keep = 1 if self._data.endswith(REPLY_SYNC[:1]) else 0
                self._skip(len(self._data) - keep)
                return None
            self._skip(start)
            if len(self._data) < REPLY_HEADER_BYTES:
                return None
            status, tag, length = struct.unpack_from("<BBH", self._data, 2)
            if crc16(bytes(self._data[2:REPLY_HEADER_BYTES])) != 0 or length > LONGEST_PAYLOAD:
                self._skip(2)
                continue
            end = REPLY_HEADER_BYTES + (length + 2 if length else 0)
            if len(self._data) < end:
                return None
            payload = bytes(self._data[REPLY_HEADER_BYTES:end])
            if payload and crc16(payload) != 0:
                self._skip(2)
                continue
            del self._data[:end]
            return Reply(status, tag, payload[:-2])

    def _skip(self, count: int) -> None:
        self.skipped += count
        del self._data[:count]


def parse_identity(block: bytes) -> Identity:
    """The identity block, or an error if it is not one of ours."""
    try:
        if block[:4] != MAGIC:
            raise ValueError("it does not begin as one")
        version, count, clock_hz, baud = struct.unpack_from("<BBII", block, 4)
        digest, position = block[14:46], 46
        ports: list[BoardPort] = []
        for _ in range(count):
            reads, word_bytes, words, length = struct.unpack_from("<BHIB", block, position)
            name = block[position + 8 : position + 8 + length].decode()
            position += 8 + length
            ports.append(BoardPort(name, "read" if reads else "write", word_bytes, words))
    except (ValueError, struct.error) as error:
        raise PackageError(f"the board's identity cannot be read ({error})", "load this package's bitstream") from error
    return Identity(version, clock_hz, baud, digest.hex(), tuple(ports))
