"""A test double of the part of XRT's Python module that the `xrt` backend uses. Never installed, never in a package.

As its C++ sibling it reads the text behind a bitstream's container, lets the C simulation compute, keeps host and
device memory apart and refuses buffers on other banks than the unit's. A run computes when it is waited for.
"""

from __future__ import annotations

import ctypes
import enum
import os
from pathlib import Path
from typing import Any

import numpy as np

MARK = b"\nxrt test double\n"
LOG: list[str] = []


class xclBOSyncDirection(enum.Enum):
    XCL_BO_SYNC_BO_TO_DEVICE = 0
    XCL_BO_SYNC_BO_FROM_DEVICE = 1


class ert_cmd_state(enum.Enum):
    ERT_CMD_STATE_COMPLETED = 4
    ERT_CMD_STATE_ERROR = 5


class xclbin:
    def __init__(self, path: str) -> None:
        _, mark, text = Path(path).read_bytes().partition(MARK)
        if not mark:
            raise RuntimeError("Invalid xclbin")
        lines = [line.split() for line in text.decode().splitlines()]
        self.values = {line[0]: line[1] for line in lines if len(line) == 2}
        self.arguments = {int(line[2]): (line[3], int(line[4])) for line in lines if line[0] == "argument"}
        self.tensors = {int(line[1]): int(line[2]) for line in lines if line[0] == "tensor"}
        self.banks = {(line[1], int(line[2])): int(line[3]) for line in lines if line[0] == "bank"}


class device:
    def __init__(self, index: int) -> None:
        if index > 0:
            raise RuntimeError(f"Could not open device with index '{index}'")
        self.loaded: xclbin | None = None

    def load_xclbin(self, found: xclbin) -> str:
        self.loaded = found
        return "loaded"


class kernel:
    shared = "shared"

    def __init__(self, board: device, uuid: str, name: str, mode: str) -> None:
        assert (uuid, mode, board.loaded is not None) == ("loaded", self.shared, True)
        self.xclbin: Any = board.loaded
        top, _, unit = name.partition(":")
        self.unit = unit.strip("{}")
        if top != self.xclbin.values["kernel"] or (self.unit, 0) not in self.xclbin.banks:
            raise RuntimeError(f"No compute unit {name}")

    def group_id(self, argument: int) -> int:
        return self.xclbin.banks[self.unit, argument]


class bo:
    normal = "normal"

    def __init__(self, board: device, size: int, flags: str, bank: int) -> None:
        assert (board.loaded is not None, flags) == (True, self.normal)
        self.host, self.device, self.bank = bytearray(b"\x55" * size), bytearray(b"\xaa" * size), bank

    def write(self, data: Any, seek: int) -> None:
        raw = bytes(memoryview(data))
        self.host[seek : seek + len(raw)] = raw

    def read(self, size: int, skip: int) -> Any:
        return np.frombuffer(bytes(self.host[skip : skip + size]), np.int8)

    def sync(self, direction: xclBOSyncDirection, size: int, offset: int) -> None:
        sends = direction is xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE
        source, target = (self.host, self.device) if sends else (self.device, self.host)
        target[offset : offset + size] = source[offset : offset + size]
        LOG.append(f"{'send' if sends else 'fetch'} {self.bank}")


class run:
    def __init__(self, of: kernel) -> None:
        self.kernel = of
        self.buffers: dict[int, bo] = {}
        self.started = False

    def set_arg(self, index: int, buffer: bo) -> None:
        if buffer.bank != self.kernel.group_id(index):
            raise RuntimeError("the buffer is on another bank than the argument")
        self.buffers[index] = buffer

    def start(self) -> None:
        if set(self.buffers) != set(self.kernel.xclbin.arguments) or self.started:
            raise RuntimeError("the run cannot be started")
        self.started = True
        LOG.append(f"start {self.kernel.unit}")

    def wait(self, timeout_ms: int) -> ert_cmd_state:
        assert self.started
        assert timeout_ms > 0
        self.started = False
        if os.environ.get("PENSTOCK_XRT_DOUBLE_FAILS"):
            return ert_cmd_state.ERT_CMD_STATE_ERROR
        sides: dict[str, dict[int, Any]] = {"input": {}, "parameter": {}, "output": {}, "buffer": {}}
        for index, (side, place) in self.kernel.xclbin.arguments.items():
            data = self.buffers[index].device
            sides[side][place] = (ctypes.c_char * len(data)).from_buffer(data)
        pointers = [
            (ctypes.c_void_p * len(found))(*[ctypes.addressof(found[place]) for place in range(len(found))])
            for found in (sides["input"], sides["parameter"], sides["output"])
        ]
        library = ctypes.CDLL(self.kernel.xclbin.values["library"])
        place = int(self.kernel.xclbin.values.get("list", -1))
        if place >= 0 and int.from_bytes(self.buffers[place].device[:4], "little") > 1:
            tensors = sorted(self.kernel.xclbin.tensors.items())  # inputs stand before outputs, as in a list
            slots = (ctypes.c_int * len(tensors))(*[len(self.buffers[at].device) // size for at, size in tensors])
            assert library.penstock_calls(*pointers, slots) == 0
        else:
            assert library.penstock_csim(*pointers) == 0
        LOG.append(f"done {self.kernel.unit}")
        return ert_cmd_state.ERT_CMD_STATE_COMPLETED
