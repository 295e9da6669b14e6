"""Writes the folder of a design: C++ for Vitis, its Tcl and config, and a C simulation that needs only a compiler."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from compiler.backend.hls.ports import Port, interface_of, ports_of
from compiler.backend.hls.top_cpp import top_cpp
from compiler.backend.hls.weights_cpp import weights_header
from compiler.dialects import stream

Array = NDArray[Any]
CSIM_HEADERS = ("ap_int.h", "hls_stream.h", "hls_streamofblocks.h", "hls_vector.h")


def emit_hls(
    top: stream.TopOp,
    parameters: Mapping[str, Array] | None,
    folder: Path,
    *,
    title: str,
    part: str,
    clock_ns: float,
    clock_uncertainty: str = "27%",
) -> tuple[Path, ...]:
    """Write hls/, csim/, parameters/ and interface.json under `folder`; returns the files.

    Without parameters (a model whose weights were not loaded) no file holds numbers, and none may lie on the chip.
    """
    hls, csim, packed = folder / "hls", folder / "csim", folder / "parameters"
    for path in (hls, csim / "include", packed):
        path.mkdir(parents=True, exist_ok=True)
    ports = ports_of(top)
    values = {
        "title": title, "top": top.sym_name.data, "ports": ports, "part": part, "clock_ns": clock_ns,
        "clock_uncertainty": clock_uncertainty, "arguments": _call_arguments(ports),
    }  # fmt: skip
    files: dict[Path, str] = {
        hls / "penstock_top.cpp": top_cpp(top, ports, title),
        hls / "weights.h": weights_header(top, parameters or {}),
        hls / "penstock_ops.h": _include("penstock_ops.h"),
        csim / "penstock_csim.cpp": _render("penstock_csim.cpp.j2", values),
        csim / "csim_main.cpp": _render("csim_main.cpp.j2", values),
        hls / "penstock_top.h": _render("penstock_top.h.j2", values),
        hls / "run_hls.tcl": _render("run_hls.tcl.j2", values),
        hls / "hls_config.cfg": _render("hls_config.cfg.j2", values),
        folder / "interface.json": json.dumps(interface_of(top, ports), indent=1) + "\n",
        **{csim / "include" / name: _include(name) for name in CSIM_HEADERS},
    }
    for path, text in files.items():
        path.write_text(text)
    for port in ports:
        if port.kind == "parameter" and parameters is not None:
            data = np.ascontiguousarray(parameters[port.name].astype(port.dtype))
            (packed / f"{port.argument}.bin").write_bytes(data.tobytes())
    if not any(packed.iterdir()):
        shutil.rmtree(packed)
    return tuple(files)


def _call_arguments(ports: Sequence[Port]) -> list[str]:
    """What the C interface hands to the top: the host's arrays by position, buffers of its own."""
    position: dict[str, int] = {"input": 0, "parameter": 0, "output": 0}
    arguments: list[str] = []
    for port in ports:
        if port.kind == "buffer":
            arguments.append(f"{port.argument}.data()")
            continue
        arguments.append(f"static_cast<{port.qualifier}{port.scalar} *>({port.kind}s[{position[port.kind]}])")
        position[port.kind] += 1
    return arguments


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("compiler.backend.hls"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip


def _render(template: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(**values)


def _include(name: str) -> str:
    return (Path(__file__).parent / "include" / name).read_text()
