"""Writes the folder of a design: C++ for Vitis, its Tcl and config, and a C simulation that needs only a compiler."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from penstock.compiler.arrays import Array
from penstock.compiler.backend.hls.circles import circles_of
from penstock.compiler.backend.hls.link import LinkTarget, link_files
from penstock.compiler.backend.hls.notes import Notes
from penstock.compiler.backend.hls.ports import BorderShapes, TopPort, interface_of, moved_ports, ports_of
from penstock.compiler.backend.hls.top_cpp import top_cpp
from penstock.compiler.backend.hls.weights_cpp import weights_header
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.directives import verify_directives
from penstock.compiler.layout import pack
from penstock.compiler.scalars.operations import FUNCTIONS

CSIM_HEADERS = ("ap_int.h", "hls_stream.h", "hls_streamofblocks.h", "hls_vector.h")
_FUNCTIONS_HERE = "// the functions of compiler/scalars/operations.py"


def emit_hls(
    top: stream.TopOp,
    parameters: Mapping[str, Array] | None,
    folder: Path,
    *,
    title: str,
    part: str,
    clock_ns: float,
    clock_uncertainty: str = "27%",
    notes: Notes | None = None,
    link: LinkTarget | None = None,
    valid: BorderShapes | None = None,
) -> tuple[Path, ...]:
    """Write hls/, csim/, parameters/ and interface.json under `folder`, and link/ for a platform with a shell.

    Without parameters (a model whose weights were not loaded) no file holds numbers, and none may lie on the chip.
    `notes` are lines about each layer for the heads of its functions, `valid` the shapes that the model has where the
    accelerator's are padded. Returns the files.
    """
    verify_directives(top)
    hls, csim, packed = folder / "hls", folder / "csim", folder / "parameters"
    for path in (hls, csim / "include", packed):
        path.mkdir(parents=True, exist_ok=True)
    ports = ports_of(top)
    values = {
        "title": title, "top": top.sym_name.data, "ports": ports, "part": part, "clock_ns": clock_ns,
        "clock_uncertainty": clock_uncertainty,
        "arguments": [_handed(port, port.argument, _array(port, ports)) for port in ports],
        "bench_arguments": _bench_arguments(ports),
        "arrays": {port.argument: _array(port, ports) for port in ports}, "threads": bool(circles_of(top)),
        **_of_a_list(top, ports),
    }  # fmt: skip
    files: dict[Path, str] = {
        hls / "penstock_top.cpp": top_cpp(top, ports, title, notes or {}, link.dies if link else {}),
        hls / "weights.h": weights_header(top, parameters or {}),
        hls / "penstock_ops.h": operations_header(),
        csim / "penstock_csim.cpp": _render("penstock_csim.cpp.j2", values),
        csim / "words.h": _include("words.h"),
        csim / "csim_main.cpp": _render("csim_main.cpp.j2", values),
        hls / "penstock_top.h": _render("penstock_top.h.j2", values),
        hls / "run_hls.tcl": _render("run_hls.tcl.j2", values),
        hls / "hls_config.cfg": _render("hls_config.cfg.j2", values),
        folder / "interface.json": json.dumps(interface_of(top, ports, valid), indent=1) + "\n",
        **{csim / "include" / name: _include(name) for name in CSIM_HEADERS},
    }
    if values["threads"]:
        files[hls / "together.h"] = _include("together.h")
    files |= {folder / "link" / name: text for name, text in (link_files(top, ports, link) if link else {}).items()}
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for port in ports:
        if port.kind == "parameter" and parameters is not None:
            numbers = _one_call(port) if port.is_calls else parameters[port.tensor]
            data = np.ascontiguousarray(numbers.astype(port.dtype))
            data = pack(data, port.layout) if port.layout else data
            (packed / f"{port.argument}.bin").write_bytes(data.tobytes())
        elif port.is_lengths and top.lengths is not None:  # for who makes no others
            most = np.array([length.most for length in top.lengths.data], np.int32)
            (packed / f"{port.argument}.bin").write_bytes(most.tobytes())
    if not any(packed.iterdir()):
        shutil.rmtree(packed)
    return tuple(files)


def _of_a_list(top: stream.TopOp, ports: Sequence[TopPort]) -> dict[str, Any]:
    """What the C interface to a list of calls is made of: an output that feeds an input is one memory with it."""
    arrays = {port.argument: _array(port, ports) for port in ports}
    arrays |= {port.feeds: _array(port, ports) for port in ports if port.feeds is not None}
    names = [port.feeds or port.argument for port in ports]
    return {
        "calls": top.calls is not None,
        "places": {port.argument: place for place, port in enumerate(moved_ports(ports))},
        "sources": arrays,
        "shared_arguments": [_handed(port, name, arrays[name]) for port, name in zip(ports, names, strict=True)],
    }


def _one_call(port: TopPort) -> Array:
    """The list of one call, whose memories begin where the host says."""
    found = np.zeros(port.elements, port.dtype)
    found[0] = 1
    return found


def _handed(port: TopPort, name: str, array: str) -> str:
    """What the C interface hands to the top: the host's array where it is words already, else a copy of it."""
    if port.is_native and port.kind != "buffer":
        return f"static_cast<{port.pointer}>({array})"
    return f"{name}.data()" if port.pointer.endswith(" *") else f"reinterpret_cast<{port.pointer}>({name}.data())"


def _bench_arguments(ports: Sequence[TopPort]) -> str:
    """The test bench's files: inputs, outputs of the run, and the outputs that the C simulation left."""
    inputs = " ".join(f"csim/run/in{i}.bin" for i, _ in enumerate(p for p in ports if p.kind == "input"))
    numbers = range(sum(p.kind == "output" for p in ports))
    outputs, expected = (" ".join(f"csim/run/{name}{i}.bin" for i in numbers) for name in ("rtl", "out"))
    return f"{inputs} -- {outputs} -- {expected}"


def _array(port: TopPort, ports: Sequence[TopPort]) -> str:
    """The host's array of a port, by its place among those of its kind."""
    return f"{port.kind}s[{[p for p in ports if p.kind == port.kind].index(port)}]"


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("penstock.compiler.backend.hls"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip


def _render(template: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(**values)


def operations_header() -> str:
    """penstock_ops.h with the functions that the table of scalar operations defines for simulation."""
    rounded = "// Reference results are computed in double and rounded once; hardware uses the tool's own cores."
    defined: dict[bool, list[str]] = {False: [], True: [rounded]}
    for name, host in FUNCTIONS:
        defined["(double)" in host].append(f"PENSTOCK_FUNCTION({name}, hls::{name}(x), {host})")
    return _include("penstock_ops.h").replace(_FUNCTIONS_HERE, "\n".join([*defined[False], *defined[True]]))


def _include(name: str) -> str:
    return (Path(__file__).parent / "include" / name).read_text()
