"""The whole way on a simulated board: runtime, bytes on a pseudo-terminal, bits on the pins, shell, core, and back."""

from __future__ import annotations

import os
import select
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.runtime import penstock_runtime as runtime
from penstock.compiler.runtime.penstock_runtime import protocol
from penstock.compiler.runtime.penstock_runtime.board import Serial
from penstock.compiler.runtime.penstock_runtime.link import BoardLink, Request
from penstock.compiler.runtime.penstock_runtime.serial_port import SerialPort
from penstock.compiler.runtime.penstock_runtime.simulation import Simulation
from tests.board.folder import weights, wrapped, write_package
from tests.board.hand_core import reference

WORDS = 600


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 words: more than one packet for each tensor, and buffers in block RAM."""
    return write_package(tmp_path_factory.mktemp("board") / "package", wrapped(WORDS), WORDS)


@pytest.fixture(scope="module")
def board(package: Path) -> Iterator[Simulation]:
    with runtime.load(package, backend="simulation") as accelerator:
        assert isinstance(accelerator.backend, Simulation)
        accelerator.backend.link.timeout = 3.0
        yield accelerator.backend


def frame(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, (WORDS, 2)).astype(np.int8)


def test_frames_come_back_as_the_reference_says_and_the_cycles_are_counted(board: Simulation) -> None:
    for seed in range(3):
        answer = board.call([frame(seed)])[0]
        assert np.array_equal(answer, reference(frame(seed), weights(WORDS)))
        assert board.cycles is not None
        assert 2 * WORDS <= board.cycles <= 2 * WORDS + 10
    status = board.link.status()
    assert (status.busy, status.cycles) == (False, board.cycles)
    assert board.link.repeated == 0


def test_a_board_says_what_it_is(board: Simulation) -> None:
    assert board.identity.digest == board.document["digest"] == wrapped(WORDS).digest
    assert (board.identity.clock_hz, board.identity.baud) == (50_000_000, 3_000_000)
    assert [(p.name, p.direction, p.word_bytes, p.words) for p in board.identity.ports] == [
        ("x", "write", 2, WORDS), ("w", "write", 2, WORDS), ("y", "read", 4, WORDS),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (Request(protocol.WRITE, 0, WORDS - 1, payload=bytes(4)), "outside the buffer"),
        (Request(protocol.WRITE, 0, 0, payload=bytes(3)), "outside the buffer"),
        (Request(protocol.READ, 2, 0, length=0), "outside the buffer"),
        (Request(protocol.WRITE, 2, 0, payload=bytes(4)), "does not have"),
        (Request(protocol.READ, 0, 0, length=2), "does not have"),
        (Request(protocol.READ, 77, 0, length=2), "does not have"),
        (Request(99), "does not know"),
    ],
)
def test_requests_that_make_no_sense_are_answered_and_change_nothing(
    board: Simulation, request_: Request, word: str
) -> None:
    with pytest.raises(runtime.PackageError, match=word):
        board.link.converse([request_])
    assert np.array_equal(board.call([frame(9)])[0], reference(frame(9), weights(WORDS)))


def test_garbage_and_half_packets_are_survived(board: Simulation) -> None:
    port = board._port
    whole = protocol.request(protocol.WRITE, 1, 0, 0, payload=bytes(range(200)))
    for garbage in (os.urandom(777), whole[:9], whole[:100], b"\xa5\x5a" * 40, b"\xa5"):
        port.write(garbage, time.monotonic() + 60)
        assert np.array_equal(board.call([frame(4)])[0], reference(frame(4), weights(WORDS)))


class Cable(threading.Thread):
    """A pseudo-terminal in front of a board's port, which damages or stops what passes."""

    def __init__(self, port: str) -> None:
        super().__init__(daemon=True)
        self.board = os.open(port, os.O_RDWR | os.O_NOCTTY)
        self.master, slave = os.openpty()
        tty.setraw(slave)
        self.name_of_port = os.ttyname(slave)
        self._slave = slave
        self.damage: dict[int, int] = {}
        """Bytes to the board, and with negative keys from it, that are flipped, by how many have passed."""
        self.unplug_after = 1 << 30
        self.passed = {self.master: 0, self.board: 0}
        self.stopping = False

    def run(self) -> None:
        while not self.stopping and self.passed[self.board] < self.unplug_after:
            ready, _, _ = select.select([self.master, self.board], [], [], 0.05)
            for source in ready:
                data = bytearray(os.read(source, 256))
                sign = 1 if source == self.master else -1
                for i in range(len(data)):
                    self.passed[source] += 1
                    data[i] ^= self.damage.get(sign * self.passed[source], 0)
                os.write(self.board if source == self.master else self.master, data)
        os.close(self.master)
        os.close(self._slave)
        os.close(self.board)

    def stop(self) -> None:
        self.stopping = True
        self.join(5)


@pytest.fixture
def cable(board: Simulation) -> Iterator[Cable]:
    cable = Cable(board._port.name)
    cable.start()
    yield cable
    cable.stop()


def test_damaged_bytes_are_found_and_sent_again(package: Path, board: Simulation, cable: Cable) -> None:
    with runtime.open_package(package) as opened:
        serial = Serial(opened, cable.name_of_port)
        for offset, sign in ((3, 1), (14, 1), (500, 1), (1100, 1), (5, -1), (30, -1), (900, -1)):
            source = cable.master if sign > 0 else cable.board
            cable.damage = {sign * (cable.passed[source] + offset): 0x10}
            repeated = serial.link.repeated
            answer = serial.call([frame(offset)])[0]
            assert np.array_equal(answer, reference(frame(offset), weights(WORDS)))
            assert serial.link.repeated == repeated + 1
        serial.close()


def test_a_board_unplugged_in_the_middle_is_an_error_that_says_so(
    package: Path, board: Simulation, cable: Cable
) -> None:
    with runtime.open_package(package) as opened:
        serial = Serial(opened, cable.name_of_port)
        cable.unplug_after = cable.passed[cable.board] + 40
        with pytest.raises(runtime.PackageError, match=r"is gone.*plug it in"):
            serial.call([frame(1)])
        serial.close()


def test_a_line_that_always_damages_is_given_up(package: Path, board: Simulation, cable: Cable) -> None:
    port = SerialPort(cable.name_of_port, 3_000_000)
    link = BoardLink(port, timeout=0.5)
    link.identify()
    cable.damage = dict.fromkeys(range(cable.passed[cable.master] + 5, 1 << 16, 7), 0x80)
    with pytest.raises(runtime.PackageError, match=r"damaged|no reply|does not answer"):
        link.converse([Request(protocol.WRITE, 0, 0, payload=bytes(400))])
    port.close()


def test_another_design_on_the_board_is_refused(package: Path, board: Simulation, tmp_path: Path) -> None:
    other = write_package(tmp_path / "other", wrapped(9), 9)
    with runtime.open_package(other) as opened:
        with pytest.raises(runtime.PackageError, match=r"carries another design.*load this package's bitstream"):
            Serial(opened, board._port.name)
        with pytest.raises(runtime.PackageError, match="serial port is not known"):
            Serial(opened)


def test_a_simulated_board_ends_with_its_user(package: Path) -> None:
    with runtime.load(package, backend="simulation") as accelerator:
        assert isinstance(accelerator.backend, Simulation)
        child = accelerator.backend._child
        assert child.poll() is None
    assert child.poll() == 0


@pytest.mark.slow
def test_a_core_that_never_ends_is_reset_and_reported(tmp_path: Path) -> None:
    package = write_package(tmp_path / "stuck", wrapped(8, stuck=True), 8)
    with runtime.load(package, backend="simulation") as accelerator:
        backend = accelerator.backend
        assert isinstance(backend, Simulation)
        backend.link.frame_timeout = 0.5
        with pytest.raises(runtime.PackageError, match=r"has not finished within 0.5 s"):
            backend.call([frame(0)[:8]])
