"""How tools go wrong from outside: they hang with children that trap TERM, eat memory and disk, are killed, babble."""

from __future__ import annotations

import os
import signal
import sys
import time

MEGABYTE = 1 << 20
MOST_MEMORY = 1 << 32  # should no limit stop it


def hang() -> None:
    """Fork children into sessions of their own, all of which trap TERM, and never end."""
    for own_session in (True, False):
        if os.fork() == 0:
            if own_session:
                os.setsid()
            break
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def exhaust_memory(message: str) -> None:
    """Allocate until there is no more; say so as the tools do and end as they do."""
    held: list[bytearray] = []
    try:
        for _ in range(MOST_MEMORY // (64 * MEGABYTE)):
            held.append(bytearray(64 * MEGABYTE))
    except MemoryError:
        held.clear()
        print(message, flush=True)
        sys.exit(1)
    sys.exit("the stand-in found no memory limit")


def spread(megabytes: int) -> None:
    """Children that hold memory together, none of them much, and stay."""
    for _ in range(4):
        if os.fork() == 0:
            held = bytearray(os.urandom(1)) * (megabytes * MEGABYTE // 4)
            time.sleep(60)
            sys.exit(len(held))
    while True:
        time.sleep(3600)


def be_killed() -> None:
    """As by the kernel when memory runs out: nothing is said."""
    os.kill(os.getpid(), signal.SIGKILL)


def fill_disk(folder: str, megabytes: int) -> None:
    """Write a file that grows until someone stops it."""
    with open(os.path.join(folder, "dump.wdb"), "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(64) * (MEGABYTE // 64))
            file.flush()
            time.sleep(0.01)


def babble(megabytes: float) -> None:
    """Binary garbage, with lines that are none."""
    block = bytes(range(256)) * 4096
    for _ in range(max(1, int(megabytes))):
        os.write(1, block)
    os.write(1, b"\xff\xfe\x00\x00ERR\x00OR: \x1b[31m" + b"\xc3\x28" * 1000 + b"\n")


def flood(megabytes: int) -> None:
    """A log of many equal lines."""
    line = b"WARNING: [HLS 200-885] The II Violation in module 'dot' (loop 'k'): Unable to schedule 'load' operation.\n"
    block = line * (MEGABYTE // len(line))
    for _ in range(megabytes):
        os.write(1, block)
