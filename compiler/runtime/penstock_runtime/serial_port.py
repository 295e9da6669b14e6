"""A serial port in raw mode, with the standard library alone: open, read and write with a deadline, errors in words."""

from __future__ import annotations

import errno
import os
import select
import time
from typing import Any

from .errors import PackageError

HINT = "check the cable, the port's name and that the bitstream is loaded; LED 0 blinks when it is"


class SerialPort:
    """An open port. Everything that goes wrong is a PackageError; bytes that are not ours are left to the caller."""

    def __init__(self, name: str, baud: int) -> None:
        self.name = name
        self._file = _open(name)
        try:
            _configure(self._file, name, baud)
        except BaseException:
            os.close(self._file)
            raise

    def write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            if not self._wait(write=True, deadline=deadline):
                raise PackageError(f"{self.name} takes no more bytes", HINT)
            try:
                view = view[os.write(self._file, view) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error) from error

    def read(self, most: int, deadline: float) -> bytes:
        """What has come, at most so many bytes; empty only if nothing came before the deadline."""
        while self._wait(write=False, deadline=deadline):
            try:
                data = os.read(self._file, most)
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error) from error
            if not data:
                raise self._gone(None)
            return data
        return b""

    def drain(self, quiet_seconds: float) -> int:
        """Throw away what comes until the line is quiet for a moment; returns how many bytes that were."""
        dropped = 0
        last = time.monotonic() + 20 * quiet_seconds
        while time.monotonic() < last:
            data = self.read(4096, time.monotonic() + quiet_seconds)
            if not data:
                break
            dropped += len(data)
        return dropped

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _wait(self, *, write: bool, deadline: float) -> bool:
        left = max(0.0, deadline - time.monotonic())
        files = [self._file]
        readable, writable, _ = select.select([] if write else files, files if write else [], [], left)
        return bool(readable or writable)

    def _gone(self, error: OSError | None) -> PackageError:
        why = f" ({error.strerror})" if error else ""
        return PackageError(f"{self.name} is gone{why}", "the board was unplugged or reset; plug it in and run again")


def _open(name: str) -> int:
    try:
        return os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        hints = {
            errno.ENOENT: "plug the board in and look for its name in /dev (ttyUSB0, ttyACM0, cu.usbserial-...)",
            errno.EACCES: "you may not use it: join the group that owns it (often dialout) and log in again",
            errno.EBUSY: "another program holds it; close that one first",
        }
        hint = hints.get(error.errno or 0, "choose another port with --port")
        raise PackageError(f"{name} cannot be opened ({error.strerror})", hint) from error


def _configure(file: int, name: str, baud: int) -> None:
    """Raw bytes, 8 data bits, no parity, one stop bit, no flow control."""
    try:
        import termios
    except ImportError as error:
        raise PackageError("this system has no termios", "serial ports need Linux or macOS") from error
    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        raise PackageError(f"this system knows no {baud} baud", "build the bitstream for another rate, e.g. 921600")
    try:
        settings: list[Any] = termios.tcgetattr(file)
        settings[0] = settings[1] = settings[3] = 0
        settings[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
        settings[4] = settings[5] = speed
        settings[6][termios.VMIN], settings[6][termios.VTIME] = 0, 0
        termios.tcsetattr(file, termios.TCSANOW, settings)
        termios.tcflush(file, termios.TCIOFLUSH)
    except (termios.error, OSError) as error:
        raise PackageError(f"{name} is no serial port ({error})", "choose another one with --port") from error
