"""Readers of event streams, on plain sockets: a thousand of them must cost the service more than this process."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit


@dataclass
class EventReader:
    """Follows one run: how late each event came, and whether the stream came to its proper end."""

    url: str
    token: str
    run_id: str
    late_ms: list[float] = field(default_factory=list[float])
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
        try:
            while line := await reader.readline():
                if line.startswith(b"retry:"):
                    self.opened.set()
                elif line.startswith(b"event: end"):
                    self.ended = True
                    return
                elif line.startswith(b"data:"):
                    self.events += 1
                    if timed:
                        at = datetime.fromisoformat(json.loads(line[5:])["at"]).timestamp()
                        self.late_ms.append((time.time() - at) * 1000)
        except ConnectionError:
            pass  # which `ended` tells
        finally:
            self.opened.set()
            writer.close()
