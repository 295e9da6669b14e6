"""Readers of event streams, on plain sockets: a thousand of them must cost the service more than this process."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

_WRITTEN = re.compile(rb'"kind":"([^"]+)","at":"([^"]+)"')
"""What happened, and when it was written; what it tells has blanks behind its colons."""


@dataclass
class EventReader:
    """Follows one run: how late each event came, and whether the stream came to its proper end."""

    url: str
    token: str
    run_id: str
    late_ms: dict[bytes, list[float]] = field(default_factory=lambda: defaultdict[bytes, list[float]](list))
    """By kind of event."""
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False
    events: int = 0

    async def follow(self, *, timed: bool = True) -> None:
        address = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 20)
        writer.write(
            f"GET /v1/runs/{self.run_id}/events HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Authorization: Bearer {self.token}\r\n\r\n".encode()
        )
        rest = b""
        try:
            while chunk := await reader.read(1 << 18):
                whole, end, rest = (rest + chunk).rpartition(b"\n\n")
                if b"retry:" in whole:
                    self.opened.set()
                self._count(whole + end, timed)
                if b"event: end" in whole:
                    self.ended = True
                    return
        except ConnectionError:
            pass  # which `ended` tells
        finally:
            self.opened.set()
            writer.close()

    def _count(self, messages: bytes, timed: bool) -> None:
        """Looked through as a whole: taking each event apart would cost more than sending it did."""
        written = _WRITTEN.findall(messages)
        self.events += len(written)
        if timed:
            now = time.time()
            for kind, at in written:
                self.late_ms[kind].append((now - datetime.fromisoformat(at.decode()).timestamp()) * 1000)
