"""The `serial` backend: the accelerator on a real board, reached over its serial port."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from . import protocol
from .calls import CallList
from .errors import PackageError
from .layout import to_memory
from .link import BoardLink, Request, frame_cycles
from .package import Package
from .ports import Array
from .protocol import LONGEST_PAYLOAD, Identity
from .serial_port import SerialPort
from .state import NONE, result_of
from .words import from_words, to_words

BOARD = "bitstream/board.json"
SILENCE_SECONDS, FRAME_SECONDS = 2.0, 60.0


class Serial:
    """A board that carries this package's bitstream. Weights that are not in the bitstream are sent once."""

    name = "serial"
    evidence = "board"
    description = "the accelerator on the board at the serial port"
    float_tolerance = 0.0
    most_probes: int | None = 64
    call_list: CallList | None = None

    def __init__(self, package: Package, port: str | None = None) -> None:
        self.document = read_board(package)
        if port is None:
            raise PackageError("the board's serial port is not known", "pass it: --port /dev/ttyUSB0")
        self._open(package, SerialPort(port, self.document["baud"]), SILENCE_SECONDS, FRAME_SECONDS)

    def _open(self, package: Package, port: SerialPort, timeout: float, frame_timeout: float) -> None:
        interface = package.json("interface.json")
        self._inputs: list[Mapping[str, Any]] = interface["inputs"]
        self._outputs: list[Mapping[str, Any]] = interface["outputs"]
        self._lock = threading.Lock()
        self._port = port
        self.link = BoardLink(port, timeout, frame_timeout)
        self.cycles: int | None = None
        """How many cycles the last frame took, as the board counted them."""
        try:
            self.identity = self.link.identify()
            check_identity(self.identity, self.document)
            self.link.reset()
            for entry in interface["parameters"]:
                with open(package.root / entry["file"], "rb") as file:
                    self.link.converse(self._writes(self._buffer(entry["name"], "write"), file.read()))
        except BaseException:
            self.close()
            raise

    def call(self, inputs: Sequence[Any], stays: frozenset[int] = NONE) -> list[Array]:
        requests: list[Request] = []
        for entry in self._inputs:
            buffer = self._buffer(entry["name"], "write")
            data = to_words(to_memory(inputs[int(entry["index"])], entry), buffer["element"], buffer["word_bits"])
            requests += self._writes(buffer, data)
        start = len(requests)
        requests.append(Request(protocol.START))
        reads = [self._reads(self._buffer(entry["name"], "read")) for entry in self._outputs]
        with self._lock:
            replies = self.link.converse([*requests, *(request for part in reads for request in part)])
            self.cycles = frame_cycles(replies[start])
        answers = iter(replies[start + 1 :])
        outputs: list[Array] = []
        for entry, part in zip(self._outputs, reads):
            buffer = self._buffer(entry["name"], "read")
            data = b"".join(next(answers).payload for _ in part)
            memory = from_words(data, buffer["element"], buffer["word_bits"], entry["dtype"])
            outputs.append(result_of(memory, entry, stays))
        return outputs

    def call_all(self, frames: Sequence[Sequence[Any]]) -> list[list[Array]]:
        return [self.call(frame) for frame in frames]

    def close(self) -> None:
        self._port.close()

    def _buffer(self, argument: str, direction: str) -> Mapping[str, Any]:
        for port in self.document["ports"]:
            if port["argument"] == argument and port["direction"] == direction:
                return port
        raise PackageError(f"the board has no buffer for {argument!r}", "fetch the package again")

    def _writes(self, buffer: Mapping[str, Any], data: bytes) -> list[Request]:
        if len(data) != buffer["words"] * buffer["word_bytes"]:
            raise PackageError(f"{len(data)} bytes do not fill the board's {buffer['argument']!r}", "fetch it again")
        words = LONGEST_PAYLOAD // buffer["word_bytes"]
        size = words * buffer["word_bytes"]
        return [
            Request(protocol.WRITE, buffer["index"], start // buffer["word_bytes"], payload=data[start : start + size])
            for start in range(0, len(data), size)
        ]

    def _reads(self, buffer: Mapping[str, Any]) -> list[Request]:
        step = LONGEST_PAYLOAD // buffer["word_bytes"]
        counts = [(first, min(step, buffer["words"] - first)) for first in range(0, buffer["words"], step)]
        return [
            Request(protocol.READ, buffer["index"], first, length=count * buffer["word_bytes"])
            for first, count in counts
        ]


def read_board(package: Package) -> Mapping[str, Any]:
    """What the package says of its board."""
    if BOARD not in package.paths():
        raise PackageError(
            "this package was not built for a board", "compile it for one, for instance with --platform ulx3s-85f"
        )
    return package.json(BOARD)


def check_identity(identity: Identity, document: Mapping[str, Any]) -> None:
    """The board must speak this protocol and carry this very design."""
    if identity.version != protocol.VERSION:
        raise PackageError(
            f"the board speaks protocol {identity.version}, this runtime {protocol.VERSION}",
            "load this package's bitstream",
        )
    if identity.digest != document["digest"]:
        raise PackageError(
            f"the board carries another design ({identity.digest[:12]}, this package has {document['digest'][:12]})",
            f"load this package's bitstream/{document.get('bitstream') or '*.bit'} onto the board",
        )
    expected = [(p["direction"], p["word_bytes"], p["words"]) for p in document["ports"]]
    if [(p.direction, p.word_bytes, p.words) for p in identity.ports] != expected:
        raise PackageError("the board's buffers are not those of this package", "load this package's bitstream")
