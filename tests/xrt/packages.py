"""Packages whose accelerator the host program can run: unpacked, with a bitstream of the test double or of real XRT."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.package.xrt import xrt_files
from penstock.compiler.pipeline import Lowered, emit, lower
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.runtime.penstock_runtime.build import build_library
from penstock.compiler.runtime.penstock_runtime.layout import memory_for
from penstock.compiler.runtime.penstock_runtime.package import MANIFEST, SCHEMA, manifest_digest, open_package
from penstock.profiling.csim import find_compiler
from tests.compiler.designs import Dense, build_network
from tests.xrt.container import Kernel, xclbin

DOUBLE = Path(__file__).parent / "double"
FLAGS = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread")
SIDES = {"inputs": "input", "parameters": "parameter", "outputs": "output", "buffers": "buffer"}


@dataclass(frozen=True)
class Host:
    """The host program of a package, built against the test double or against XRT, with what it is started in."""

    package: Path
    program: Path
    environment: Mapping[str, str]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), "--package", str(self.package), *words]
        return subprocess.run(command, capture_output=True, text=True, env=dict(self.environment), timeout=600)

    def answer(self, *words: str) -> dict[str, Any]:
        """The JSON of a run that must succeed."""
        done = self.run("--json", *words)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)


def bitstream_of(package: Path) -> Path:
    top = json.loads((package / "interface.json").read_text())["top"]
    return package / "bitstream" / f"{top}.xclbin"


def arguments_of(package: Path) -> list[dict[str, Any]]:
    """The kernel's arguments by position, each with its side and its place among those."""
    interface = json.loads((package / "interface.json").read_text())
    found = [
        {**entry, "side": side, "place": place}
        for key, side in SIDES.items()
        for place, entry in enumerate(interface.get(key, ()))
    ]
    return sorted(found, key=lambda entry: entry["position"])


def write_double(package: Path, units: int, milliseconds: int = 0, **changes: str) -> Path:
    """A bitstream for the double: a container with a text behind it, which `changes` add to."""
    arguments, path = arguments_of(package), write_container(package, units)
    with open_package(package) as opened:
        library = build_library(opened)
    interface = json.loads((package / "interface.json").read_text())
    top, feeds = interface["top"], interface.get("calls", {}).get("feeds", {})
    lines = ["xrt test double", f"kernel {top}", f"library {library.resolve()}", f"milliseconds {milliseconds}"]
    lines += [f"argument {a['argument']} {a['position']} {a['side']} {a['place']}" for a in arguments]
    if "calls" in interface:
        lines += [
            f"tensor {a['position']} {memory_for(a).nbytes}" for a in arguments if a["side"] in ("input", "output")
        ]
        lines += [f"list {a['position']}" for a in arguments if a["argument"] == interface["calls"]["argument"]]
    for unit in range(units):
        lines.append(f"unit {top}_{unit + 1}")
        banks = {a["argument"]: unit * len(arguments) + a["position"] for a in arguments}
        banks |= {made: banks[given] for made, given in feeds.items()}
        lines += [f"bank {top}_{unit + 1} {a['position']} {banks[a['argument']]}" for a in arguments]
    lines += [f"{key} {value}" for key, value in changes.items()]
    path.write_bytes(path.read_bytes() + "\n".join(["", *lines, ""]).encode())
    return path


def write_container(package: Path, units: int) -> Path:
    """A bitstream that XRT reads, without bits; every unit has banks of its own."""
    arguments, path = arguments_of(package), bitstream_of(package)
    top, count = json.loads((package / "interface.json").read_text())["top"], len(arguments)
    banks = {f"{top}_{unit + 1}": tuple(range(unit * count, (unit + 1) * count)) for unit in range(units)}
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(xclbin(Kernel(top, tuple(a["argument"] for a in arguments), banks)))
    return path


def build_host(package: Path, include: Path, libraries: Sequence[str], program: Path) -> Path:
    """The package's host program by one call of the compiler, as strict as its CMakeLists.txt."""
    sources = package / "host" / "xrt"
    files = [str(sources / "main.cpp"), "-o", str(program)]
    command = [find_compiler(), *FLAGS, "-isystem", str(include), *files, *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return program


def write_package(lowered: Lowered, folder: Path, frames: int = 3) -> Path:
    """What of a design's package its hosts read; samples are random, several frames in one file."""
    emit(lowered, folder, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    program, interface = lowered.program, json.loads((folder / "interface.json").read_text())
    inputs = make_inputs(lowered, random_sets=frames)
    outputs = [lowered.run_itensor(one) for one in inputs]
    samples = folder / "model" / "samples"
    samples.mkdir(parents=True)
    for kind, arrays in (("input", inputs), ("expected", outputs)):
        for index in range(len(arrays[0])):
            np.save(samples / f"{kind}_{index}.npy", np.stack([one[index] for one in arrays]))
    ports = {
        "inputs": [{"name": p.name, "shape": list(p.shape), "dtype": p.dtype} for p in program.signature.inputs],
        "outputs": [{"name": p.name, "shape": list(p.shape), "dtype": p.dtype} for p in program.signature.outputs],
    }
    (folder / "model" / "signature.json").write_text(json.dumps(ports))
    for path, data in xrt_files("drawn", program, interface).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    listed = [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if p.is_file()]
    manifest = {"schema": SCHEMA, "name": "drawn", "files": [{"path": path} for path in listed]}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "digest": manifest_digest(manifest)}))
    return folder


def two_kernels(kind: str) -> Lowered:
    """Two layers in two kernels that hand a tensor over in external memory.

    Weights are streamed, an input is unread, and tiles of 3 rows make 6 of the model's 4.
    """
    program = build_network(kind, 4, 8, (Dense(6, False, False), Dense(4, False, False)), seed=3)
    design = default_design(read_graph(program.module), "u55c", 300.0)
    kernels = {
        name: replace(one, tile=(3, *one.tile[1:]), unroll=(1, *one.unroll[1:]), weights="stream")
        for name, one in design.kernels.items()
    }
    return lower(program, replace(design, kernels=kernels, groups={name: int("1" in name) for name in kernels}))
