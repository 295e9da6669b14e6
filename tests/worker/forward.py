"""Another host's way to servers that listen on unix sockets: `forward.py ADDRESS PORT=SOCKET|HOST:PORT…`."""

from __future__ import annotations

import asyncio
import contextlib
import sys


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(address: str, port: int, target: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, number = target.rpartition(":")
        try:
            if target.startswith("/"):
                there = await asyncio.open_unix_connection(target)
            else:
                there = await asyncio.open_connection(host, int(number))
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    await (await asyncio.start_server(handle, address, port)).serve_forever()


async def main() -> None:
    address, *ways = sys.argv[1:]
    await asyncio.gather(*(serve(address, int(port), target) for port, target in (way.split("=", 1) for way in ways)))


if __name__ == "__main__":
    asyncio.run(main())
