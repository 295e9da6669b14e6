"""What a board and its host must agree on: the table of buffers, the protocol's version, the design's digest."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from penstock.compiler.errors import PenstockError

MAGIC = b"PSTK"
PROTOCOL = 1
LONGEST_PAYLOAD = 1024


@dataclass(frozen=True)
class HostPort:
    """One frame buffer as the host sees it. Words go over the link in whole bytes, lane 0 first."""

    index: int
    argument: str
    direction: Literal["write", "read"]
    word_bits: int
    words: int
    element: str

    @property
    def word_bytes(self) -> int:
        return (self.word_bits + 7) // 8


def identity_block(ports: Sequence[HostPort], digest: bytes, clock_hz: int, baud: int) -> bytes:
    """magic, protocol, number of ports, clock, baud, digest; then by port direction, name, bytes a word, words."""
    head = MAGIC + struct.pack("<BBII", PROTOCOL, len(ports), clock_hz, baud) + digest
    entries = [_entry(port) for port in ports]
    block = head + b"".join(entries)
    if len(block) > LONGEST_PAYLOAD or len(ports) > 200:
        raise PenstockError(
            code="too-many-ports", what=f"the design has {len(ports)} memories for the host to reach",
            limit=f"their table takes {len(block)} bytes, the link carries {LONGEST_PAYLOAD}",
            hint="keep more weights on chip, so that fewer parameters are external",
        )  # fmt: skip
    return block


def _entry(port: HostPort) -> bytes:
    name = port.argument.encode()[:31]
    return struct.pack("<BHI", port.direction == "read", port.word_bytes, port.words) + bytes([len(name)]) + name


def digest_of(sources: Mapping[str, str], data: Mapping[str, str], ports: Sequence[HostPort], settings: str) -> bytes:
    """The identity of what is on the board: every source, every memory's contents, the host's table, the settings."""
    document = [list(sources.items()), sorted(data.items()), [asdict(port) for port in ports], settings]
    return hashlib.sha256(json.dumps(document).encode()).digest()
