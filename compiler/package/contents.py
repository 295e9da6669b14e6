"""What goes into a package: every file as bytes, and the manifest that vouches for them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.host_parts import HostParts
from penstock.compiler.layers import Layers
from penstock.compiler.lengths import SizesByLength, sizes_json
from penstock.compiler.package.render import render_bitstream_note, render_html, render_readme
from penstock.compiler.package.report import Report
from penstock.compiler.package.xrt import runs_on_xrt, xrt_files
from penstock.compiler.program import Port, Program
from penstock.compiler.runtime.penstock_runtime.layout import to_memory
from penstock.compiler.runtime.penstock_runtime.package import (
    CHARACTERS,
    MANIFEST,
    SCHEMA,
    TOKENIZER,
    manifest_digest,
)
from penstock.compiler.text import TextPart

RUNTIME = Path(__file__).parents[1] / "runtime"
# Only what the emitter wrote: a folder in which the C simulation was run holds its program and data too.
EMITTED = {
    "hls": (".cpp", ".h", ".tcl", ".cfg"),
    "csim": (".cpp", ".h"),
    "rtl": (".sv", ".hex"),
    "link": (".cfg", ".tcl"),
    "parameters": (".bin",),
    "ir": (".mlir",),
}


@dataclass(frozen=True)
class ProbeSet:
    """Inputs that show whether a weight is what it was, and the bits that they give: an array a port, a row a frame."""

    inputs: tuple[Array, ...]
    answers: tuple[Array, ...]
    gentle: int
    """The first so many may be asked of executors of another arithmetic too."""


@dataclass(frozen=True)
class Expected:
    """The interpreter's answers in the accelerator's own types: what every execution must give."""

    samples: tuple[Array, ...] = ()
    evaluation: Array | None = None
    probes: ProbeSet | None = None
    lengths: Sequence[Sequence[Array]] = ()
    """Of a model whose sizes each call says: at the lengths of its samples, one after the other."""


@dataclass(frozen=True)
class PackageContents:
    """A whole package in memory. `files` are in sorted order and include manifest.json."""

    name: str
    digest: str
    files: Mapping[str, bytes]

    @property
    def archive_name(self) -> str:
        return f"{self.name}-{self.digest[:12]}.penstock.zip"


def collect_package(
    program: Program,
    design: Design,
    emitted: Path,
    report: Report,
    expected: Expected,
    bitstream: Mapping[str, bytes] | None = None,
) -> PackageContents:
    """Put a package together from a compiled model.

    `program` is the one that was lowered: its signature says how the host quantises. `emitted` is the
    folder with the HLS sources, the csim program and interface.json. `bitstream` has that folder's files by their
    paths in the package.
    """
    files = {
        "design.json": (json.dumps(design.to_json(), indent=1, sort_keys=True) + "\n").encode(),
        "report.json": report.to_json().encode(),
        "report.html": render_html(report).encode(),
        "README.md": render_readme(report, program).encode(),
        "bitstream/README.md": render_bitstream_note(report).encode(),
        **_emitted_files(emitted),
        **_runtime_files(),
        **_model_files(program, expected),
        **_device_files(file_name(report.name), program, design, emitted),
        **(_host_files(program.host, program) if program.host else {}),
        **(_layer_files(program, program.layers, emitted) if program.layers else {}),
        **(_state_files(program) if program.states else {}),
        **(_text_files(program.text) if program.text else {}),
        **(bitstream or {}),
    }
    name = file_name(report.name)
    manifest = _manifest(name, report, program, design, files)
    files[MANIFEST] = (json.dumps(manifest, indent=1) + "\n").encode()
    return PackageContents(name, str(manifest["digest"]), dict(sorted(files.items())))


def file_name(name: str) -> str:
    """A model's name as a part of file names on any system."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name).strip("-")
    return kept[:60] or "model"


def _emitted_files(folder: Path) -> dict[str, bytes]:
    if not (folder / "interface.json").is_file():
        raise PenstockError(
            code="no-interface", what="the folder of the emitted design holds no interface.json",
            where=str(folder), hint="emit the design before packaging it",
        )  # fmt: skip
    files = {"interface.json": (folder / "interface.json").read_bytes()}
    for part, suffixes in EMITTED.items():
        for path in sorted((folder / part).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def _runtime_files() -> dict[str, bytes]:
    """The host runtime, copied as it is; `__main__.py` makes `python <archive>` work without unpacking."""
    run = (RUNTIME / "run.py").read_bytes()
    library = {f"penstock_runtime/{p.name}": p.read_bytes() for p in RUNTIME.glob("penstock_runtime/*.py")}
    return {"run.py": run, "__main__.py": run, **library}


def _model_files(program: Program, expected: Expected) -> dict[str, bytes]:
    known = program.lengths
    sizes = (known.inputs, known.outputs) if known else ([None] * len(side) for side in _sides(program))
    signature = {
        name: [_port(port, one) for port, one in zip(side, own, strict=True)]
        for name, side, own in zip(("inputs", "outputs"), _sides(program), sizes, strict=True)
    }
    files = {"model/signature.json": (json.dumps(signature, indent=1) + "\n").encode()}
    passed = [i for i, port in enumerate(program.signature.inputs) if port.name not in program.held_inputs(0)]
    if program.samples:
        files |= _arrays("model/samples/input_", [program.samples.inputs[i] for i in passed])
        files |= _arrays("model/samples/output_", program.samples.outputs)
        files |= _arrays("model/samples/expected_", expected.samples)
    for number, (sample, answers) in enumerate(zip(known.samples if known else (), expected.lengths, strict=True)):
        files |= _arrays(f"model/lengths/{number}/input_", [sample.inputs[i] for i in passed])
        files |= _arrays(f"model/lengths/{number}/output_", sample.outputs)
        files |= _arrays(f"model/lengths/{number}/expected_", answers)
    if expected.probes is not None:
        files["model/probes/probes.json"] = (json.dumps({"gentle": expected.probes.gentle}) + "\n").encode()
        files |= _arrays("model/probes/input_", [expected.probes.inputs[i] for i in passed])
        files |= _arrays("model/probes/expected_", expected.probes.answers)
    if program.evaluation:
        held_out = program.evaluation
        parts = {"inputs": held_out.inputs, "labels": held_out.labels, "outputs": held_out.outputs}
        if expected.evaluation is not None:
            parts["expected"] = expected.evaluation
        files |= {f"model/evaluation/{part}.npy": _npy(values) for part, values in parts.items()}
        files["model/evaluation/evaluation.json"] = (json.dumps({"name": held_out.name}) + "\n").encode()
    return files


def _device_files(name: str, program: Program, design: Design, emitted: Path) -> dict[str, bytes]:
    """The native host program, for platforms that XRT serves."""
    if not runs_on_xrt(design.platform):
        return {}
    return xrt_files(name, program, json.loads((emitted / "interface.json").read_text()))


def _host_files(parts: HostParts, program: Program) -> dict[str, bytes]:
    """What runs on the host, with its tensors, and samples of the whole model, as a first call."""
    entering = {state.input for state in program.states}
    paths = {name: f"host/values/{index}.npy" for index, name in enumerate(parts.values)}
    graph = {**parts.graph, "values": paths}
    return {
        "host/graph.json": (json.dumps(graph, indent=1) + "\n").encode(),
        **{paths[name]: _npy(values) for name, values in parts.values.items()},
        **_arrays("host/samples/input_", [x for i, x in enumerate(parts.inputs) if i not in entering]),
        **_arrays("host/samples/output_", program.without_states(parts.outputs)),
    }


def _layer_files(program: Program, layers: Layers, emitted: Path) -> dict[str, bytes]:
    """The model around the layers, and each layer's weights as they lie in the accelerator's memories."""
    interface = json.loads((emitted / "interface.json").read_text())
    ports = [port.name for port in program.signature.inputs]
    files: dict[str, bytes] = {}
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(layers.names):
        held, weights = program.held_inputs(number), dict[str, str]()
        for entry in interface["inputs"]:
            port = next(iter(ports[int(entry["index"]) :]), "")  # behind them all the lengths of a call
            if port in held:
                path = weights[entry["argument"]] = f"layers/weights/{number}/{entry['argument']}.bin"
                files[path] = to_memory(held[port], entry).tobytes()
        rows.append({"name": name, "weights": weights})
    paths = {name: f"layers/values/{index}.npy" for index, name in enumerate(layers.values)}
    graph = {**layers.graph, "values": paths, "layers": rows, "held": sorted(program.held_inputs(0))}
    return {
        **files,
        "layers/graph.json": (json.dumps(graph, indent=1) + "\n").encode(),
        **{paths[name]: _npy(values) for name, values in layers.values.items()},
        **_arrays("host/samples/input_", layers.inputs),
        **_arrays("host/samples/output_", layers.outputs),
    }


def _state_files(program: Program) -> dict[str, bytes]:
    """What the model keeps between calls, and what that is before the first one, layer by layer."""
    places = {port.name: index for index, port in enumerate(program.signature.inputs)}
    rows = program.layers.initial if program.layers else (program.initial,)
    document: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    for number, state in enumerate(program.states):
        paths = [f"states/{layer}/{number}.npy" for layer in range(len(rows))]
        files |= {path: _npy(row[state.name]) for path, row in zip(paths, rows, strict=True)}
        document.append({**asdict(state), "port": places.get(state.port or ""), "initial": paths})
    return {**files, "states/states.json": (json.dumps(document, indent=1) + "\n").encode()}


def _text_files(text: TextPart) -> dict[str, bytes]:
    if text.characters is not None:
        return {CHARACTERS: _npy(text.characters)}
    assert text.tokenizer is not None
    return {TOKENIZER: text.tokenizer}


def _manifest(
    name: str, report: Report, program: Program, design: Design, files: Mapping[str, bytes]
) -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "product": report.product.model_dump(),
        "name": name,
        "model": {"name": report.model.name, "digest": report.model.digest},
        "design": {"digest": design.digest(), "platform": design.platform},
        "evidence": report.evidence(),
        "tools": dict(sorted(report.tools.items())),
        "weights": {name: _digest_of(values) for name, values in sorted(_weights(program).items())},
        "files": [
            {"path": path, "sha256": hashlib.sha256(files[path]).hexdigest(), "size": len(files[path])}
            for path in sorted(files)
        ],
    }
    return {**manifest, "digest": manifest_digest(manifest)}


def _weights(program: Program) -> dict[str, Array]:
    """All of them by name; those of layers that share the accelerator with the layer's name in front."""
    layers = program.layers
    rows = zip(layers.names, layers.weights, strict=True) if layers else ()
    return {**program.params, **{f"{name}: {key}": values for name, row in rows for key, values in row.items()}}


def _digest_of(values: Array) -> str:
    """Of a weight's numbers, as they were compiled: its type, its shape, its bytes in C order."""
    head = f"{values.dtype.name} {list(values.shape)} ".encode()
    return hashlib.sha256(head + np.ascontiguousarray(values).tobytes()).hexdigest()


def _sides(program: Program) -> tuple[Sequence[Port], Sequence[Port]]:
    return program.signature.inputs, program.signature.outputs


def _port(port: Port, sizes: SizesByLength | None) -> dict[str, Any]:
    """With which of its dims follow from lengths, where each call says some."""
    scale = port.quant.scale if port.quant else None
    return {
        "name": port.name,
        "shape": list(port.shape),
        "dtype": port.dtype,
        "scale": list(scale) if isinstance(scale, tuple) else scale,
        **({"sizes": sizes_json(sizes)} if sizes is not None else {}),
    }


def _arrays(prefix: str, arrays: Sequence[Array]) -> dict[str, bytes]:
    return {f"{prefix}{index}.npy": _npy(values) for index, values in enumerate(arrays)}


def _npy(values: Array) -> bytes:
    """One array as a .npy file: unlike .npz it carries no time stamps."""
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(values), allow_pickle=False)
    return stream.getvalue()
