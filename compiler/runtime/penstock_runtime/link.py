"""Conversations with a board over a serial port: several requests under way, every reply checked, damage repeated."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from . import protocol
from .errors import PackageError
from .protocol import Identity, Reply, ReplyReader
from .serial_port import HINT, SerialPort

ATTEMPTS = 4
QUIET_SECONDS = 0.05


@dataclass(frozen=True)
class Request:
    """What is asked of the board; the tag is given when it is sent."""

    command: int
    port: int = 0
    offset: int = 0
    length: int = 0
    payload: bytes = b""

    def encode(self, tag: int) -> bytes:
        return protocol.request(self.command, tag, self.port, self.offset, self.length, self.payload)


@dataclass(frozen=True)
class Status:
    """What the board says of its core: the cycles are those of the last frame."""

    busy: bool
    frames: int
    cycles: int


class BoardLink:
    """`timeout` is how long the board may be silent before a conversation is tried again.

    The board answers the start of a long frame before the frame's end; `frame_timeout` is for the whole of it.
    """

    def __init__(self, port: SerialPort, timeout: float = 2.0, frame_timeout: float = 60.0) -> None:
        self._port = port
        self.timeout = timeout
        self.frame_timeout = frame_timeout
        self._reader = ReplyReader()
        self._tag = 0
        self.repeated = 0
        """Conversations that were damaged and repeated."""

    def identify(self) -> Identity:
        """Who is there. The first thing to ask: it also finds the beginning of a packet on a line in any state."""
        self._resynchronise()
        reply = self.converse([Request(protocol.IDENTIFY)])[0]
        return protocol.parse_identity(reply.payload)

    def reset(self) -> None:
        self.converse([Request(protocol.RESET)])

    def status(self) -> Status:
        return _status(self.converse([Request(protocol.STATUS)])[0])

    def converse(self, requests: Sequence[Request]) -> list[Reply]:
        """All replies, in order. If anything is damaged or missing, it is sent again: every request may be."""
        replies: dict[int, Reply] = {}
        todo = list(range(len(requests)))
        problem = PackageError("the board was not asked")
        for attempt in range(ATTEMPTS):
            if attempt:
                self.repeated += 1
                self._resynchronise()
            try:
                found = self._attempt([requests[index] for index in todo])
            except _Silence as silence:
                problem = silence.error
                continue
            damaged = [reply for reply in found if reply.status in protocol.RETRY]
            if not damaged:
                replies.update(zip(todo, found))
                todo = [index for index in todo if replies[index].status == protocol.BUSY]
                self._wait_where_needed(replies)
                if not todo:
                    return [self._checked(replies[index]) for index in range(len(requests))]
                continue
            problem = PackageError(
                f"{self._port.name} carries damaged bytes: the board reports {protocol.WORDS[damaged[0].status]}",
                "use a shorter cable or another port, or build the bitstream for a lower baud rate",
            )
        raise problem

    def _wait_where_needed(self, replies: dict[int, Reply]) -> None:
        """A frame that is long is waited for here; the answer to its start is then a status."""
        slow = [index for index, reply in replies.items() if reply.status in (protocol.LATE, protocol.BUSY)]
        if slow:
            self._wait_for_the_core()
            answer = self.converse([Request(protocol.STATUS)])[0]
            replies.update({index: answer for index in slow if replies[index].status == protocol.LATE})

    def _attempt(self, requests: Sequence[Request]) -> list[Reply]:
        """Send as much as the board's queue holds, read replies as they come."""
        waiting: dict[int, int] = {}
        replies: dict[int, Reply] = {}
        todo = list(requests)
        under_way = 0
        while len(replies) < len(requests):
            while todo:
                tag = self._next_tag()
                data = todo[0].encode(tag)
                if under_way and under_way + len(data) > protocol.QUEUE_BYTES - 64:
                    break
                self._port.write(data, time.monotonic() + self.timeout)
                waiting[tag] = len(data)
                under_way += len(data)
                todo.pop(0)
            reply = self._receive(waiting)
            under_way -= waiting.pop(reply.tag)
            replies[len(replies)] = reply
        return list(replies.values())

    def _receive(self, waiting: dict[int, int]) -> Reply:
        """The next reply to one of the tags that wait; late replies to older ones are passed over."""
        before, deadline = self._reader.skipped, time.monotonic() + self.timeout
        while True:
            reply = self._reader.next()
            if reply is not None:
                if reply.tag in waiting:
                    return reply
                if reply.status in protocol.RETRY:
                    raise _Silence(PackageError(f"{self._port.name} carries damaged bytes", HINT))
                continue
            data = self._port.read(4096, deadline)
            if not data:
                garbage = self._reader.skipped - before
                raise _Silence(self._silence(garbage))
            self._reader.feed(data)

    def _silence(self, garbage: int) -> PackageError:
        if garbage:
            return PackageError(
                f"{self._port.name} answers with {garbage} bytes that are no reply",
                "another program or device is on this port, or its baud rate differs; " + HINT,
            )
        return PackageError(f"{self._port.name} does not answer within {self.timeout:g} s", HINT)

    def _resynchronise(self) -> None:
        """Zeros end whatever packet the board is in the middle of; what it answers to them is thrown away."""
        zeros = bytes(protocol.LONGEST_PAYLOAD + 16)
        self._port.write(zeros, time.monotonic() + self.timeout)
        self._port.drain(QUIET_SECONDS)
        self._reader = ReplyReader()

    def _checked(self, reply: Reply) -> Reply:
        if reply.status == protocol.OK:
            return reply
        word = protocol.WORDS.get(reply.status, f"status {reply.status}")
        raise PackageError(f"the board refuses {word}", "load this package's bitstream and press the board's reset")

    def _wait_for_the_core(self) -> None:
        deadline = time.monotonic() + self.frame_timeout
        while self.status().busy:
            if time.monotonic() > deadline:
                self.reset()
                raise PackageError(
                    f"the accelerator has not finished within {self.frame_timeout:g} s",
                    "it was reset; if it happens again, the bitstream does not fit this package",
                )
            time.sleep(0.05)

    def _next_tag(self) -> int:
        self._tag = (self._tag + 1) % 256
        return self._tag


class _Silence(Exception):
    """A conversation that has to be tried again; the error is for when no attempt is left."""

    def __init__(self, error: PackageError) -> None:
        self.error = error
        super().__init__(str(error))


def _status(reply: Reply) -> Status:
    flags, frames, cycles = struct.unpack("<B3xII", reply.payload)
    return Status(bool(flags & 1), frames, cycles)


def frame_cycles(reply: Reply) -> int:
    """The cycle counter in the answer to a start."""
    return _status(reply).cycles
