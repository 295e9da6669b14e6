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

from .calls import CallList, CallLists, LaidOut
from .errors import PackageError
from .host import WHOLE
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
        self.call_list: CallList | None = None
        if "calls" in self._interface:
            self._lists = CallLists(self._interface)
            self._first = units[0], kernels[0], constants
            self._weights = _weights_of(package)
            self._list_slot: _ListSlot | None = None
            self.call_list = self._call_list

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

    def _call_list(self, frames: Sequence[Sequence[Any]], stays: frozenset[int]) -> list[list[Array]]:
        """All calls by one start of the first unit. Weights stay on the device; all else is sent with each list."""
        laid = self._lists.lay_out(frames)
        inputs, outputs = self._interface["inputs"], self._interface["outputs"]
        with self._lock:
            unit = self._first[0]
            try:
                if self._list_slot is None:
                    self._list_slot = self._allocate_list(laid)
                slot = self._list_slot
                for entry in inputs:
                    name = entry["argument"]
                    if name not in self._weights or not slot.has_weights:
                        self._send(slot.buffers[name], laid.inputs[name])
                self._send(slot.buffers[self._lists.argument], laid.calls)
                slot.has_weights = True
                slot.run.start()
                self._wait(slot.run, unit)
                for entry in outputs:
                    name = entry["argument"]
                    laid.outputs[name][:] = self._read(slot.buffers[name], laid.outputs[name].nbytes, entry["dtype"])
            except RuntimeError as error:
                raise PackageError(f"compute unit {unit} cannot run a list of calls ({error})", RESET) from error
        return laid.results(stays)

    def _allocate_list(self, laid: LaidOut) -> _ListSlot:
        """Buffers that hold the tensors of all calls; an output that feeds an input has the input's."""
        _, kernel, constants = self._first
        found = _ListSlot(self._xrt.run(kernel), {})
        sizes = {**{n: m.nbytes for n, m in {**laid.inputs, **laid.outputs}.items()},
                 self._lists.argument: laid.calls.nbytes}  # fmt: skip
        data = {constant.entry["argument"]: constant.data for constant in constants}
        for side in (*_OF_A_SET, "parameters"):
            for entry in self._interface.get(side, ()):
                name = str(entry["argument"])
                owner = self._lists.feeds.get(name, name)
                if owner not in found.buffers:
                    size, bank = sizes.get(owner, memory_for(entry).nbytes), kernel.group_id(entry["position"])
                    found.buffers[owner] = self._xrt.bo(self._device, size, self._xrt.bo.normal, bank)
                found.buffers[name] = found.buffers[owner]
                found.run.set_arg(entry["position"], found.buffers[name])
                if name in data and name != self._lists.argument:
                    self._send(found.buffers[name], data[name])
        return found

    def close(self) -> None:
        """XRT frees buffers, kernels and the device when nobody refers to them."""
        self._slots = []
        self._list_slot = None
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
            self._wait(slot.run, slot.unit)
            return [self._fetch(e, buffer, stays) for e, buffer in zip(self._interface["outputs"], slot.outputs)]
        except RuntimeError as error:
            raise PackageError(f"compute unit {slot.unit} stopped ({error})", RESET) from error

    def _wait(self, run: Any, unit: str) -> None:
        state = run.wait(TIMEOUT_MS)
        if state != self._xrt.ert_cmd_state.ERT_CMD_STATE_COMPLETED:
            raise PackageError(f"compute unit {unit} did not end well (XRT's state {state})", RESET)

    def _fetch(self, entry: Mapping[str, Any], buffer: Any, stays: frozenset[int]) -> Array:
        return result_of(self._read(buffer, memory_for(entry).nbytes, entry["dtype"]), entry, stays)

    def _read(self, buffer: Any, size: int, dtype: str) -> Array:
        buffer.sync(self._xrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE, size, 0)
        return np.frombuffer(np.asarray(buffer.read(size, 0)).tobytes(), dtype)


@dataclass
class _ListSlot:
    """The buffers of lists of calls by their arguments, and the run that uses them."""

    run: Any
    buffers: dict[str, Any]
    has_weights: bool = False


class _Constant:
    """A parameter as its file has it: packed already."""

    def __init__(self, root: Path, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.data = np.fromfile(root / entry["file"], entry["dtype"])
        if self.data.nbytes != memory_for(entry).nbytes:
            raise PackageError(f"{entry['file']} holds {self.data.size} values, not {entry['shape']}", "fetch it again")


def _weights_of(package: Package) -> frozenset[str]:
    """The arguments that hold weights of layers, which no call changes."""
    held = set(package.json(WHOLE)["held"]) if WHOLE in package.paths() else set[str]()
    return frozenset(e["argument"] for e in package.json("interface.json")["inputs"] if e["name"] in held)


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
