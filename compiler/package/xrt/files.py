"""The folder `host/xrt/` of a package: the C++ program as it is, and the design's memories as its header design.h."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Port, Program

FOLDER = "host/xrt"
_HERE = Path(__file__).parent
_NATIVE = _HERE / "native"
_SIDES = ("inputs", "parameters", "outputs", "buffers")


def runs_on_xrt(platform: str) -> bool:
    """Whether a platform of that name is an AMD device whose memories a host fills."""
    found = load_platform(platform)
    return found.family.has_xrt and not found.has_array_arguments


def xrt_files(name: str, program: Program, interface: Mapping[str, Any]) -> dict[str, bytes]:
    """Every file by its path in the package. `interface` is the design's interface.json."""
    signature = {"inputs": program.signature.inputs, "outputs": program.signature.outputs}
    memories: list[dict[str, Any]] = []
    lengths = interface.get("lengths", {}).get("argument")
    for side in _SIDES:
        entries: Sequence[Mapping[str, Any]] = interface.get(side, ())
        ports = signature.get(side)
        own = [entry for entry in entries if entry["argument"] != lengths]
        memories += [_memory(side, entry, ports[int(entry["index"])] if ports else None) for entry in own]
        # what a call says is the same in each here: the largest lengths
        said = [{**entry, "file": f"parameters/{lengths}.bin"} for entry in entries if entry["argument"] == lengths]
        memories += [_memory("parameters", entry, None) for entry in said]
    has_host = program.host is not None or program.layers is not None
    values = {
        "name": name, "top": interface["top"], "memories": memories, "has_host_parts": has_host,
        "lengths": [f"{one['name']} = {one['high']}" for one in interface.get("lengths", {}).get("of", ())],
    }  # fmt: skip
    environment = _environment()
    generated = {
        path: environment.get_template(f"{path}.j2").render(values).encode() for path in ("design.h", "README.md")
    }
    native = {path.name: path.read_bytes() for path in _NATIVE.iterdir() if path.is_file()}
    return {f"{FOLDER}/{path}": data for path, data in sorted({**native, **generated}.items())}


def _memory(side: str, entry: Mapping[str, Any], port: Port | None) -> dict[str, Any]:
    """A memory's fields as C++ literals. `port` is the model's view of an input or output."""
    layout: Mapping[str, Any] = entry.get("layout") or {"tile": (), "word": ()}
    return {
        "side": side,
        "name": json.dumps(entry["name"], ensure_ascii=False),
        "argument": json.dumps(entry["argument"]),
        "position": entry["position"],
        "index": entry["index"],
        "element": entry["dtype"].upper(),
        "shape": _braces(entry["shape"]),
        "valid": _braces(entry.get("valid", entry["shape"])),
        "tile": _braces(layout["tile"]),
        "word": _braces(layout["word"]),
        "model": _braces(port.shape if port else entry["shape"]),
        "scale": _braces(_scales(port)),
        "file": json.dumps(entry.get("file", "")),
        "stripes": layout.get("stripes", 1),
        "stripe": layout.get("stripe", 0),
        "room": layout.get("room", 0),
    }


def _scales(port: Port | None) -> list[str]:
    """As float literals that read back exactly, which is how the host computes with them."""
    if port is None or port.quant is None:
        return []
    scale = port.quant.scale
    return [f"{np.float32(s):.9e}f" for s in (scale if isinstance(scale, tuple) else (scale,))]


def _braces(values: Sequence[Any]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
