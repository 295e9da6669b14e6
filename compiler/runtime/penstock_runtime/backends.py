"""What can execute the accelerator. Emulation compiles the package's HLS C++ for this machine's processor; the others
are a board, real or simulated."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .board import Serial
from .build import build_library
from .calls import CallList, CallLists
from .errors import PackageError
from .layout import memory_for, to_memory
from .package import Package
from .ports import Array
from .simulation import Netlist, Simulation
from .state import NONE, result_of
from .xrt import Xrt, is_usable


class Backend(Protocol):
    """Calls the accelerator: arrays in its own types, in the order of the signature; several calls may overlap.

    An input may be `Packed`; results in `stays` are given as their memories have them.
    """

    name: str
    evidence: str
    description: str
    float_tolerance: float
    """What floats may differ from the interpreter's, of the largest value; 0 where every bit is promised."""
    most_probes: int | None
    """Probes that a self-test runs at most; None for all. A simulated board is slow."""
    call_list: CallList | None
    """Runs calls by one start, each with what the one before it left; None where each call is a start of its own."""

    def call(self, inputs: Sequence[Any], stays: frozenset[int] = NONE) -> list[Array]: ...

    def call_all(self, frames: Sequence[Sequence[Any]]) -> list[list[Array]]: ...

    def close(self) -> None: ...


class Emulation:
    """The emitted HLS C++ as a shared library, called through ctypes: the same bits, not the same speed."""

    name = "emulation"
    evidence = "simulated"
    description = "the accelerator's C++ on this processor: the same bits, not the same speed"
    float_tolerance = 0.0
    most_probes: int | None = None

    def __init__(self, package: Package, port: str | None = None) -> None:
        if port is not None:
            raise PackageError("emulation has no port", "leave --port away, or pass --backend serial")
        interface = package.json("interface.json")
        self._inputs: list[Mapping[str, Any]] = interface["inputs"]
        self._outputs: list[Mapping[str, Any]] = interface["outputs"]
        self._parameters = [(p["argument"], _read_parameter(package.root, p)) for p in interface["parameters"]]
        library = build_library(package)
        try:
            self._function = ctypes.CDLL(str(library)).penstock_csim
        except (OSError, AttributeError) as error:
            raise PackageError(f"{library} cannot be loaded ({error})", "delete it and run again") from error
        self._function.argtypes = [ctypes.POINTER(ctypes.c_void_p)] * 3
        self._function.restype = ctypes.c_int
        self._lists = CallLists(interface) if "calls" in interface else None
        self.call_list: CallList | None = None
        if self._lists is not None:
            self.call_list = self._call_list
            self._run_list = ctypes.CDLL(str(library)).penstock_calls
            self._run_list.argtypes = [ctypes.POINTER(ctypes.c_void_p)] * 3 + [ctypes.c_void_p]
            self._run_list.restype = ctypes.c_int
        self._lock = threading.Lock()  # the C++ keeps its memories in static storage

    def call(self, inputs: Sequence[Any], stays: frozenset[int] = NONE) -> list[Array]:
        arrays = [to_memory(inputs[int(entry["index"])], entry) for entry in self._inputs]
        outputs = [memory_for(entry) for entry in self._outputs]
        with self._lock:
            parameters = [memory for _, memory in self._parameters]
            status = self._function(_pointers(arrays), _pointers(parameters), _pointers(outputs))
        _refuse_status(status)
        return [result_of(memory, entry, stays) for memory, entry in zip(outputs, self._outputs)]

    def call_all(self, frames: Sequence[Sequence[Any]]) -> list[list[Array]]:
        return [self.call(frame) for frame in frames]

    def _call_list(self, frames: Sequence[Sequence[Any]], stays: frozenset[int]) -> list[list[Array]]:
        assert self._lists is not None
        laid = self._lists.lay_out(frames)
        inputs = [laid.inputs[entry["argument"]] for entry in self._inputs]
        outputs = [laid.outputs[entry["argument"]] for entry in self._outputs]
        parameters = [laid.calls if name == self._lists.argument else memory for name, memory in self._parameters]
        slots = self._lists.slots(laid)
        with self._lock:
            status = self._run_list(_pointers(inputs), _pointers(parameters), _pointers(outputs), slots.ctypes.data)
        _refuse_status(status)
        return laid.results(stays)

    def close(self) -> None:
        """Nothing to release: a loaded library stays until the process ends."""


class Opener(Protocol):
    """Makes a backend for a package; `port` is a board's serial port, or the number of an AMD device."""

    def __call__(self, package: Package, port: str | None = None) -> Backend: ...


BACKENDS: dict[str, Opener] = {
    "emulation": Emulation,
    "netlist": Netlist,
    "serial": Serial,
    "simulation": Simulation,
    "xrt": Xrt,
}


def default_backend(package: Package) -> str:
    """The AMD device where the package has its bitstream and this machine XRT, else emulation."""
    return Xrt.name if is_usable(package) else Emulation.name


def open_backend(name: str | None, package: Package, port: str | None = None) -> Backend:
    """The backend of that name, or the package's default."""
    name = default_backend(package) if name is None else name
    if name not in BACKENDS:
        known = ", ".join(sorted(BACKENDS))
        raise PackageError(f"there is no backend {name!r} in this package", f"choose one of: {known}")
    return BACKENDS[name](package, port)


def _refuse_status(status: int) -> None:
    if status != 0:
        raise PackageError(f"the emulated accelerator stopped with status {status}", "run --self-test")


def _pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])


def _read_parameter(root: Path, entry: Mapping[str, Any]) -> Array:
    values = np.fromfile(root / entry["file"], entry["dtype"])
    if values.size != memory_for(entry).size:
        raise PackageError(f"{entry['file']} holds {values.size} values, not {entry['shape']}", "run --self-test")
    return values
