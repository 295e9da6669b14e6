"""Builds and runs the C simulation of an emitted design, as a tool: in processes of its own, bounded and killable.

A crash of generated code is then a typed failure of the verification, never the end of the worker.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.layout import Layout, crop, pack, pad, unpack
from penstock.profiling.tool_runner import ToolCommand, ToolOutcome, ToolRunner

COMPILERS = ("g++", "c++", "clang++")
# No fused multiply-add: it rounds once where the interpreter and the hardware round twice.
FLAGS = ("-std=c++14", "-O1", "-ffp-contract=off", "-pthread", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Csim:
    """The compiled simulation of one folder. Calling it runs frames, each a list of input arrays."""

    folder: Path
    program: Path
    tools: ToolRunner
    interface: dict[str, Any]
    timeout: float = 600.0

    def run_frames(self, frames: Sequence[Sequence[Array] | Mapping[int, Array]]) -> list[list[Array]]:
        """The outputs of every frame, at the dtypes and shapes of interface.json.

        A frame is the model's inputs; those that the design does not read may be missing from a mapping. Where each
        call says its lengths, these are the last input, in steps; without them they are the largest.
        """
        said = self.interface.get("lengths")
        if said is not None:
            most = np.array([one["high"] // one["step"] for one in said["of"]], np.int32)
            place = next(e["index"] for e in self.interface["inputs"] if e["argument"] == said["argument"])
            given = [frame if isinstance(frame, Mapping) else dict(enumerate(frame)) for frame in frames]
            frames = [{place: most, **frame} for frame in given]
        work = self.folder / "csim" / "run"
        work.mkdir(exist_ok=True)
        names: list[str] = []
        for index, entry in enumerate(self.interface["inputs"]):
            path = work / f"in{index}.bin"
            path.write_bytes(b"".join(_to_memory(frame[entry["index"]], entry).tobytes() for frame in frames))
            names.append(str(path.relative_to(self.folder)))
        outputs = [f"csim/run/out{i}.bin" for i in range(len(self.interface["outputs"]))]
        argv = (str(self.program), *names, "--", *outputs)
        result = self.tools.run(ToolCommand(argv, self.folder, work, timeout=self.timeout))
        if not result.ok:
            raise result.error("csim", "the generated C++ failed at run time; its log is csim/run/stderr.log")
        entries = zip(outputs, self.interface["outputs"], strict=True)
        arrays = [self._read(name, entry, len(frames)) for name, entry in entries]
        return [[array[i] for array in arrays] for i in range(len(frames))]

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        return self.run_frames([inputs])[0]

    def _read(self, name: str, entry: dict[str, Any], frames: int) -> Array:
        shape, layout = (frames, *entry["shape"]), _layout(entry)
        data = np.fromfile(self.folder / name, entry["dtype"])
        if data.size != int(np.prod((frames, *entry["packed_shape"]), dtype=np.int64)):
            raise PenstockError(
                code="csim-output", what=f"the simulation wrote {data.size} values", where=name,
                limit=f"{frames} frames of {tuple(entry['packed_shape'])}",
            )  # fmt: skip
        found = (
            data.reshape(shape)
            if layout is None
            else np.stack([unpack(frame, layout, shape[1:]) for frame in data.reshape(frames, -1)])
        )
        return crop(found, (frames, *entry.get("valid", entry["shape"])))


def _to_memory(values: Array, entry: dict[str, Any]) -> Array:
    """An input as it lies in external memory."""
    own = np.asarray(values).astype(entry["dtype"]).reshape(entry.get("valid", entry["shape"]))
    array, layout = pad(own, tuple(entry["shape"])), _layout(entry)
    return pack(array, layout) if layout else array


def _layout(entry: dict[str, Any]) -> Layout | None:
    found = entry["layout"]
    if not found:
        return None
    shares = found.get("stripes", 1), found.get("stripe")
    return Layout(tuple(found["tile"]), tuple(found["word"]), *shares, found.get("room", 0))


def find_compiler() -> str:
    """The C++ compiler on PATH."""
    for name in COMPILERS:
        if found := shutil.which(name):
            return found
    raise PenstockError(
        code="compiler-missing", what="no C++ compiler on PATH", limit="looked for " + ", ".join(COMPILERS),
        hint="install g++ (for instance: apt-get install g++) and try again",
    )  # fmt: skip


def build_csim(
    folder: Path, tools: ToolRunner, *, sanitize: bool = False, headers: Path | None = None, timeout: float = 600.0
) -> Csim:
    """Compile the C simulation of a folder that `penstock.compiler.pipeline.emit` wrote.

    `headers` is a folder with a vendor's ap_int.h and hls_stream.h, which then take the place of ours.
    """
    folder = folder.resolve()
    program = folder / "csim" / ("csim_sanitized" if sanitize else "csim")
    build, harness, top = folder / "csim" / "build", folder / "csim" / "build" / "harness", "csim/build/penstock_top.o"
    harness.mkdir(parents=True, exist_ok=True)
    vendors = ("-isystem", str(headers.resolve())) if headers else ()
    include = (*vendors, "-isystem" if headers else "-I", str(folder / "csim" / "include"), "-I", str(folder / "hls"))
    compiler = (find_compiler(), *FLAGS, *(SANITIZERS if sanitize else ()), *include)

    def run(arguments: Sequence[str], where: Path, logs: Path) -> None:
        result = tools.run(ToolCommand((*compiler, *arguments), where, logs, timeout=timeout))
        if result.outcome is ToolOutcome.EXIT:
            raise result.error("C++ compiler", "the generated C++ does not compile; please report it with the log")
        if not result.ok:
            raise result.error("C++ compiler")

    around = [str(folder / "csim" / name) for name in ("penstock_csim.cpp", "csim_main.cpp")]
    with ThreadPoolExecutor(1) as beside:  # what calls the design takes as long as a small design
        called = beside.submit(run, ("-c", *around), harness, harness)
        run(("-c", "hls/penstock_top.cpp", "-o", top), folder, build)
        called.result()
    objects = [str(harness / name) for name in ("penstock_csim.o", "csim_main.o")]
    run((top, *objects, "-o", str(program)), folder, build)
    interface = json.loads((folder / "interface.json").read_text())
    return Csim(folder, program, tools, interface, timeout)
