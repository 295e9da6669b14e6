"""The host's side without a board: checksums, replies in noise, ports that are none, words of odd widths."""

from __future__ import annotations

import os
import re
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.compiler.backend.rtl.shell import identity
from penstock.compiler.runtime.penstock_runtime import PackageError, open_package, protocol
from penstock.compiler.runtime.penstock_runtime.board import Serial
from penstock.compiler.runtime.penstock_runtime.link import BoardLink
from penstock.compiler.runtime.penstock_runtime.serial_port import SerialPort
from penstock.compiler.runtime.penstock_runtime.words import from_words, to_words
from tests.board.folder import wrapped, write_package


def test_the_checksum_is_the_published_one() -> None:
    assert protocol.crc16(b"123456789") == 0x29B1  # CRC-16/IBM-3740, the catalogue's check value
    assert protocol.crc16(protocol.checked(b"anything")) == 0


def test_shell_and_runtime_agree_on_the_protocol() -> None:
    assert (protocol.MAGIC, protocol.VERSION) == (identity.MAGIC, identity.PROTOCOL)
    assert protocol.LONGEST_PAYLOAD == identity.LONGEST_PAYLOAD
    fifo = files("penstock.compiler.backend.rtl.shell").joinpath("sv", "byte_fifo.sv").read_text()
    address_bits = re.search(r"ADDRESS_BITS = (\d+)", fifo)
    assert address_bits is not None
    assert 2 ** int(address_bits[1]) == protocol.QUEUE_BYTES
    design = wrapped(600)
    block = bytes(int(line, 16) for line in design.rtl.data["penstock_identity.hex"].split())
    parsed = protocol.parse_identity(block)
    assert parsed.digest == design.digest
    assert [(p.name, p.words) for p in parsed.ports] == [("x", 600), ("w", 600), ("y", 600)]


def reply(status: int, tag: int, payload: bytes) -> bytes:
    header = protocol.checked(bytes([status, tag]) + len(payload).to_bytes(2, "little"))
    return protocol.REPLY_SYNC + header + (protocol.checked(payload) if payload else b"")


@given(st.lists(st.tuples(st.binary(max_size=30), st.integers(0, 255), st.binary(max_size=40))), st.integers(1, 50))
def test_replies_are_found_between_noise_however_the_bytes_arrive(
    parts: list[tuple[bytes, int, bytes]], chunk: int
) -> None:
    clean = [(noise.replace(b"\x5a", b"\x00"), tag, payload) for noise, tag, payload in parts]
    line = b"".join(noise + reply(0, tag, payload) for noise, tag, payload in clean)
    reader = protocol.ReplyReader()
    found: list[tuple[int, bytes]] = []
    for start in range(0, len(line), chunk):
        reader.feed(line[start : start + chunk])
        while (one := reader.next()) is not None:
            found.append((one.tag, one.payload))
    assert found == [(tag, payload) for _, tag, payload in clean]


def test_a_damaged_reply_is_skipped_and_the_next_one_found() -> None:
    damaged = bytearray(reply(0, 1, b"abcdef"))
    damaged[10] ^= 1
    reader = protocol.ReplyReader()
    reader.feed(bytes(damaged) + reply(0, 2, b"xy"))
    found = reader.next()
    assert found is not None
    assert (found.tag, found.payload) == (2, b"xy")


@pytest.mark.parametrize(
    ("element", "word_bits", "dtype", "low", "high"),
    [
        ("i8", 32, "int8", -128, 128),
        ("i4", 12, "int8", -8, 8),
        ("i1", 3, "bool", 0, 2),
        ("i20", 40, "int32", -(2**19), 2**19),
        ("i32", 64, "int32", -(2**31), 2**31),
    ],
)
def test_words_carry_elements_of_any_width(element: str, word_bits: int, dtype: str, low: int, high: int) -> None:
    lanes = word_bits // int(element[1:])
    values = np.random.default_rng(1).integers(low, high, 16 * lanes).astype(dtype)
    data = to_words(values, element, word_bits)
    assert len(data) == 16 * ((word_bits + 7) // 8)
    assert np.array_equal(from_words(data, element, word_bits, dtype), values)


def test_floats_cross_the_link_bit_for_bit() -> None:
    values = np.array([1.5, -0.0, np.inf, np.nan], np.float32)
    assert from_words(to_words(values, "f32", 64), "f32", 64, "float32").tobytes() == values.tobytes()


def test_ports_that_are_none_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"cannot be opened.*plug the board in"):
        SerialPort("/dev/penstock-no-such-port", 3_000_000)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PackageError, match="is no serial port"):
        SerialPort(str(tmp_path / "file"), 3_000_000)
    with terminal(lambda data: b"") as name, pytest.raises(PackageError, match="knows no 3141592 baud"):
        SerialPort(name, 3_141_592)


@contextmanager
def terminal(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """A port at whose other end a function answers."""
    master, slave = os.openpty()
    tty.setraw(slave)

    def serve() -> None:
        while True:
            try:
                data = os.read(master, 4096)
            except OSError:
                return
            if data == b"end":
                return
            if out := answer(data):
                os.write(master, out)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield os.ttyname(slave)
    finally:
        os.write(slave, b"end")
        thread.join(5)
        os.close(master)
        os.close(slave)


def test_a_port_that_is_silent_or_talks_garbage_is_reported() -> None:
    with terminal(lambda data: b"") as name:
        port = SerialPort(name, 3_000_000)
        with pytest.raises(PackageError, match=r"does not answer within 0.1 s.*check the cable"):
            BoardLink(port, timeout=0.1).identify()
        port.close()
    with terminal(lambda data: b"login: " * 3) as name:
        port = SerialPort(name, 3_000_000)
        with pytest.raises(PackageError, match=r"bytes that are no reply.*another program"):
            BoardLink(port, timeout=0.2).identify()
        port.close()


def test_a_board_with_something_else_on_it_is_refused(tmp_path: Path) -> None:
    package = write_package(tmp_path / "package", wrapped(), 8)

    def answer(data: bytes) -> bytes:
        start = data.find(protocol.REQUEST_SYNC)
        return reply(0, data[start + 3], b"PSTK\x09" + bytes(60)) if start >= 0 else b""

    with (
        terminal(answer) as name,
        open_package(package) as opened,
        pytest.raises(PackageError, match="speaks protocol 9"),
    ):
        Serial(opened, name)
    with open_package(package) as opened, pytest.raises(PackageError, match=r"port is not known.*--port"):
        Serial(opened)
