"""The memories of an accelerator as C++ arguments and as what a host reads in interface.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from compiler.backend.hls.scalar_cpp import cpp_type
from compiler.dialects import stream
from compiler.dialects.types import memref_type
from compiler.interpreter.scalar import numpy_dtype
from compiler.transforms.names import c_name


@dataclass(frozen=True)
class Port:
    """One memory of the top, as the C++ and interface.json name it.

    `kind` is input, parameter or output for the host's, buffer for a tensor that passes between two kernels.
    """

    value: SSAValue
    name: str
    kind: str
    scalar: str
    shape: tuple[int, ...]
    dtype: str
    argument: str

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def qualifier(self) -> str:
        return "" if self.kind in ("output", "buffer") else "const "


def ports_of(top: stream.TopOp) -> tuple[Port, ...]:
    """The memories of the top in the order of its arguments: the host's, and tensors between kernels."""
    ports: list[Port] = []
    # An argument may bear a layer's name, as "fc3.bias" does, but in C++ it would hide the layer's function.
    inside = (op for op in top.body.block.ops if isinstance(op, stream.TaskOp | stream.StreamOp | stream.BlocksOp))
    taken = {c_name(op.sym_name.data): 1 for op in inside}
    for value, name, kind in zip(top.body.block.args, top.argument_names, top.argument_kinds, strict=True):
        memory = memref_type(value)
        safe = c_name(name.data)
        taken[safe] = taken.get(safe, 0) + 1
        unique = safe if taken[safe] == 1 else f"{safe}_{taken[safe]}"
        dtype = np.dtype(numpy_dtype(memory.element_type)).name
        scalar = cpp_type(memory.element_type)
        ports.append(Port(value, name.data, kind.data, scalar, tuple(memory.get_shape()), dtype, unique))
    return tuple(ports)


def interface_of(top: stream.TopOp, ports: Sequence[Port]) -> dict[str, Any]:
    """What a host needs to call the top: order, shapes and dtypes of its memories."""

    def describe(port: Port) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": port.name, "shape": list(port.shape), "dtype": port.dtype}
        return {**entry, "file": f"parameters/{port.argument}.bin"} if port.kind == "parameter" else entry

    sides = {"inputs": "input", "parameters": "parameter", "outputs": "output"}
    sorted_ports = {side: [describe(p) for p in ports if p.kind == kind] for side, kind in sides.items()}
    buffers = [describe(p) for p in ports if p.kind == "buffer"]
    return {"top": top.sym_name.data, **sorted_ports, **({"buffers": buffers} if buffers else {})}
