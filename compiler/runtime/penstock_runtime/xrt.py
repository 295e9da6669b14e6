"""The `xrt` backend: the accelerator on an AMD device, through XRT's Python module pyxrt.

As the native program in host/xrt does it: every compute unit of the bitstream has sets of buffers of its own, and
while a unit computes with one set another is filled.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .calls import CallList
from .errors import PackageError
from .layout import memory_for, to_memory
from .package import Package
from .ports import Array
from .state import NONE, result_of
from .xclbin import read_kernels

MODULE = "pyxrt"
SETS = 2
TIMEOUT_MS = 60_000
_OF_A_SET = ("inputs", "outputs", "buffers")  # parameters are a unit's
EVIDENCE = {"": "board", "hw_emu": "cosim"}  # by XCL_EMULATION_MODE; any other mode runs no hardware at all
RESET = "reset the device with `xbutil reset`, and see `xbutil examine`"


def bitstream_path(package: Package) -> Path:
    """Where the package's xclbin lies, or would lie: it may be put there after linking."""
    return package.root / "bitstream" / f"{package.json('interface.json')['top']}.xclbin"


def is_usable(package: Package) -> bool:
    """Whether there is a bitstream for XRT, and XRT."""
    return bitstream_path(package).is_file() and importlib.util.find_spec(MODULE) is not None


@dataclass(frozen=True)
class _Slot:
    """A set of buffers of one compute unit, and the run that uses them."""

    unit: str
    run: Any
    inputs: Sequence[Any]
    outputs: Sequence[Any]


class Xrt:
    """A device that carries this package's bitstream. Weights that are not in the bitstream are sent once."""

    name = "xrt"
    description = "the accelerator on the AMD device, through XRT"
    float_tolerance = 1e-4
    most_probes: int | None = None
    call_list: CallList | None = None
    """Of the largest value: hardware may round an exponential otherwise than the interpreter does."""

    def __init__(self, package: Package, port: str | None = None) -> None:
        if port is not None and not port.isdigit():
            raise PackageError(f"there is no device {port!r}", "pass a number: --port 0")
        self.evidence = EVIDENCE.get(os.environ.get("XCL_EMULATION_MODE", ""), "simulated")
        path, self._interface = bitstream_path(package), package.json("interface.json")
        units = _units(path, self._interface)
        self._xrt = _import_pyxrt()
        self._device, kernels = self._load(path, int(port or 0), units)
        self._lock = threading.Lock()
        constants = [_Constant(package.root, entry) for entry in self._interface["parameters"]]
        self._kept: list[Any] = []
        by_unit = [self._sets(unit, kernel, constants) for unit, kernel in zip(units, kernels)]
        self._slots = [slot for sets in zip(*by_unit) for slot in sets]

    def call(self, inputs: Sequence[Any], stays: frozenset[int] = NONE) -> list[Array]:
        return self._run_all([inputs], stays)[0]

    def call_all(self, frames: Sequence[Sequence[Any]]) -> list[list[Array]]:
        return self._run_all(frames, NONE)

    def _run_all(self, frames: Sequence[Sequence[Any]], stays: frozenset[int]) -> list[list[Array]]:
        """Units in turn, and on each its sets in turn; answers are fetched in order."""
        answers: list[list[Array]] = []
        with self._lock:
            for number, inputs in enumerate(frames):
                if number >= len(self._slots):
                    answers.append(self._end(self._slots[len(answers) % len(self._slots)], stays))
                self._begin(self._slots[number % len(self._slots)], inputs)
            while len(answers) < len(frames):
                answers.append(self._end(self._slots[len(answers) % len(self._slots)], stays))
        return answers

    def close(self) -> None:
        """XRT frees buffers, kernels and the device when nobody refers to them."""
        self._slots = []
        self._kept = []
        self._device = None

    def _load(self, path: Path, number: int, units: Sequence[str]) -> tuple[Any, list[Any]]:
        top = self._interface["top"]
        try:
            device = self._xrt.device(number)
        except RuntimeError as error:
            raise PackageError(
                f"device {number} cannot be opened ({error})",
                "see `xbutil examine`; without one use --backend emulation",
            ) from error
        try:
            uuid = device.load_xclbin(self._xrt.xclbin(str(path)))
            shared = self._xrt.kernel.shared
            return device, [self._xrt.kernel(device, uuid, f"{top}:{{{unit}}}", shared) for unit in units]
        except RuntimeError as error:
            raise PackageError(
                f"{path} cannot be loaded onto device {number} ({error})",
                "it must be linked for this device's platform",
            ) from error

    def _sets(self, unit: str, kernel: Any, constants: Sequence[_Constant]) -> list[_Slot]:
        try:
            parameters = [self._allocate(kernel, constant.entry) for constant in constants]
            for buffer, constant in zip(parameters, constants):
                self._send(buffer, constant.data)
            self._kept += parameters
            return [self._set(unit, kernel, parameters) for _ in range(SETS)]
        except RuntimeError as error:
            raise PackageError(f"compute unit {unit} cannot be used ({error})", RESET) from error

    def _set(self, unit: str, kernel: Any, parameters: Sequence[Any]) -> _Slot:
        run = self._xrt.run(kernel)
        own = {side: [self._allocate(kernel, e) for e in self._interface.get(side, ())] for side in _OF_A_SET}
        for side, buffers in {**own, "parameters": parameters}.items():
            for entry, buffer in zip(self._interface.get(side, ()), buffers):
                run.set_arg(entry["position"], buffer)
        self._kept += own["buffers"]  # the run has their addresses, and nobody else refers to them
        return _Slot(unit, run, own["inputs"], own["outputs"])

    def _allocate(self, kernel: Any, entry: Mapping[str, Any]) -> Any:
        bank = kernel.group_id(entry["position"])
        return self._xrt.bo(self._device, memory_for(entry).nbytes, self._xrt.bo.normal, bank)

    def _send(self, buffer: Any, memory: Array) -> None:
        data = np.ascontiguousarray(memory).reshape(-1).view(np.uint8)
        buffer.write(data, 0)
        buffer.sync(self._xrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE, data.size, 0)

    def _begin(self, slot: _Slot, inputs: Sequence[Any]) -> None:
        try:
            for entry, buffer in zip(self._interface["inputs"], slot.inputs):
                self._send(buffer, to_memory(inputs[int(entry["index"])], entry))
            slot.run.start()
        except RuntimeError as error:
            raise PackageError(f"compute unit {slot.unit} cannot be started ({error})", RESET) from error

    def _end(self, slot: _Slot, stays: frozenset[int]) -> list[Array]:
        try:
            state = slot.run.wait(TIMEOUT_MS)
            if state != self._xrt.ert_cmd_state.ERT_CMD_STATE_COMPLETED:
                raise PackageError(f"compute unit {slot.unit} did not end well (XRT's state {state})", RESET)
            return [self._fetch(e, buffer, stays) for e, buffer in zip(self._interface["outputs"], slot.outputs)]
        except RuntimeError as error:
            raise PackageError(f"compute unit {slot.unit} stopped ({error})", RESET) from error

    def _fetch(self, entry: Mapping[str, Any], buffer: Any, stays: frozenset[int]) -> Array:
        size = memory_for(entry).nbytes
        buffer.sync(self._xrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE, size, 0)
        data = np.asarray(buffer.read(size, 0)).tobytes()
        return result_of(np.frombuffer(data, entry["dtype"]), entry, stays)


class _Constant:
    """A parameter as its file has it: packed already."""

    def __init__(self, root: Path, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.data = np.fromfile(root / entry["file"], entry["dtype"])
        if self.data.nbytes != memory_for(entry).nbytes:
            raise PackageError(f"{entry['file']} holds {self.data.size} values, not {entry['shape']}", "fetch it again")


def _units(path: Path, interface: Mapping[str, Any]) -> tuple[str, ...]:
    """The compute units of our kernel, whose arguments must be those of this package."""
    top, hint = interface["top"], "load the bitstream that was linked from this package"
    kernels = read_kernels(path)
    ours = next((kernel for kernel in kernels if kernel.name == top), None)
    if ours is None or not ours.units:
        found = ", ".join(kernel.name for kernel in kernels) or "none"
        raise PackageError(f"{path} holds no kernel {top} (it holds: {found})", hint)
    entries = [entry for side in ("inputs", "parameters", "outputs", "buffers") for entry in interface.get(side, ())]
    if ours.arguments != tuple(e["argument"] for e in sorted(entries, key=lambda e: e["position"])):
        raise PackageError(f"{path}: the arguments of {top} are not those of this package", hint)
    return ours.units


def _import_pyxrt() -> Any:
    try:
        return importlib.import_module(MODULE)
    except ImportError as error:
        raise PackageError(
            f"XRT's Python module pyxrt cannot be imported ({error})",
            "install XRT and `source /opt/xilinx/xrt/setup.sh`; without a device use --backend emulation",
        ) from error
