"""HLS pragmas from the directives in the IR, and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from penstock.compiler.backend.hls.arrays_cpp import ArrayLayout, argument_cuts
from penstock.compiler.backend.hls.ports import TopPort
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.directives import carried_of, fifo_of, pipeline_of, storage_of
from penstock.compiler.dialects.nest import NestOp
from penstock.compiler.dialects.types import memref_type

UNROLL = "#pragma HLS UNROLL"
DATAFLOW = "#pragma HLS DATAFLOW"


def lanes_in_parallel(name: str) -> str:
    """Lanes of a value are registers of their own."""
    return f"#pragma HLS ARRAY_PARTITION variable={name} complete dim=0"


def pipeline(op: NestOp) -> str:
    """A pipeline that flushes does so as `flp` does it: without, the tool stops all of it while input is late."""
    found = pipeline_of(op)
    return f"#pragma HLS PIPELINE II={found.ii.data}" + (" style=flp" if found.flushes.data else "")


def memory(op: stream.BufferOp | stream.RomOp | stream.BlocksOp, name: str) -> list[str]:
    """How a memory is cut, and what it is built of."""
    storage = storage_of(op)
    lines = ArrayLayout.of(op).pragmas(name)
    if storage.kind.data != "registers":
        lines.append(f"#pragma HLS BIND_STORAGE variable={name} type={storage.ports.data} impl={storage.kind.data}")
    return lines


def carried(memories: Sequence[tuple[Operation, str]]) -> list[str]:
    """What the tool cannot see through flattened loops: how long a stored word is left alone."""
    lines: list[str] = []
    for op, name in memories:
        found = carried_of(op)
        if found is not None:
            distance = found.distance.data
            how = f"direction=RAW distance={distance} true" if distance else "false"
            lines.append(f"#pragma HLS DEPENDENCE variable={name} type=inter {how}")
    return lines


def fifo(op: stream.StreamOp, name: str) -> list[str]:
    """Depth, and what the FIFO is built of; the tool builds short ones of registers by itself."""
    lines = [f"#pragma HLS STREAM variable={name} depth={op.result.type.depth.data} type=fifo"]
    kind = fifo_of(op).kind.data
    if kind != "registers":
        lines.append(f"#pragma HLS BIND_STORAGE variable={name} type=fifo impl={kind}")
    return lines


def interface(ports: Sequence[TopPort]) -> list[str]:
    """m_axi for the data, s_axilite for the addresses and the start; arrays on the chip are memories' own ports."""
    if any(port.banks is not None for port in ports):
        arrays = [
            line
            for port in ports
            if port.banks is not None
            for line in (
                f"#pragma HLS INTERFACE ap_memory port={port.argument}",
                *argument_cuts(port.banks, port.argument),
            )
        ]
        return [*arrays, "#pragma HLS INTERFACE ap_ctrl_hs port=return"]
    lines: list[str] = []
    for port in ports:
        axi, name = port.axi, port.argument
        link = f"port={name} bundle=gmem{axi.bundle.data} offset=slave depth={axi.depth.data}"
        if not isinstance(memref_type(port.value).element_type, VectorType):
            link += f" max_widen_bitwidth={max(axi.bits.data, port.scalar_bits)}"
        for way, goes in (("read", port.reads), ("write", port.writes)):
            if goes:
                link += f" num_{way}_outstanding={axi.outstanding.data} max_{way}_burst_length={axi.burst.data}"
        lines.append(f"#pragma HLS INTERFACE m_axi {link}")
        lines.append(f"#pragma HLS INTERFACE s_axilite port={name} bundle=control")
    return [*lines, "#pragma HLS INTERFACE s_axilite port=return bundle=control"]
