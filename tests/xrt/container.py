"""Writes xclbin containers that XRT itself reads: kernels, compute units, banks and no bitstream.

The layout is that of XRT's public header xclbin.h; `xclbinutil` could write them too, but Debian's lacks its program.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

EMBEDDED_METADATA, MEM_TOPOLOGY, CONNECTIVITY, IP_LAYOUT = 2, 6, 7, 8
GROUP_TOPOLOGY, GROUP_CONNECTIVITY = 26, 27
HBM, KERNEL, CHAINED = 7, 1, 1 << 8
BANK_KILOBYTES = 256 << 10


@dataclass(frozen=True)
class Kernel:
    """A kernel as it was linked: its arguments by name, and for each of its units the bank of every argument."""

    name: str
    arguments: tuple[str, ...]
    banks: Mapping[str, tuple[int, ...]]


def xclbin(kernel: Kernel) -> bytes:
    """The container of one kernel with all its units."""
    banks = sorted({bank for of_unit in kernel.banks.values() for bank in of_unit})
    topology = _counted(
        struct.pack("<BB6xQQ16s", HBM, 1, BANK_KILOBYTES, bank * (BANK_KILOBYTES << 10), f"HBM[{bank}]".encode())
        for bank in banks
    )
    layout = _counted(
        struct.pack("<IIQ64s", KERNEL, CHAINED, 0x800000 + (number << 16), f"{kernel.name}:{unit}".encode())
        for number, unit in enumerate(kernel.banks)
    )
    connections = _counted(
        (
            struct.pack("<iii", argument, number, banks.index(bank))
            for number, of_unit in enumerate(kernel.banks.values())
            for argument, bank in enumerate(of_unit)
        ),
        pad=0,
    )
    return _axlf({
        EMBEDDED_METADATA: _metadata(kernel).encode(),
        MEM_TOPOLOGY: topology,
        CONNECTIVITY: connections,
        IP_LAYOUT: layout,
        GROUP_TOPOLOGY: topology,
        GROUP_CONNECTIVITY: connections,
    })  # fmt: skip


def _counted(records: Iterable[bytes], pad: int = 4) -> bytes:
    found = list(records)
    return struct.pack("<i", len(found)) + bytes(pad) + b"".join(found)


def _metadata(kernel: Kernel) -> str:
    arguments = "".join(
        f'<arg name="{name}" addressQualifier="1" id="{number}" port="M_AXI_GMEM{number}" size="0x8" '
        f'offset="{0x10 + 12 * number:#x}" hostOffset="0x0" hostSize="0x8" type="void*"/>'
        for number, name in enumerate(kernel.arguments)
    )
    units = "".join(
        f'<instance name="{unit}"><addrRemap base="{0x800000 + (number << 16):#x}" port="S_AXI_CONTROL"/></instance>'
        for number, unit in enumerate(kernel.banks)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><project name="test"><platform vendor="xilinx" boardid="u55c" '
        'name="test" featureRomTime="0"><device name="fpga0" fpgaDevice="virtexuplus"><core name="OCL_REGION_0" '
        f'target="hw" type="clc_region"><kernel name="{kernel.name}" language="c" hwControlProtocol='
        f'"ap_ctrl_chain">{arguments}{units}</kernel></core></device></platform></project>'
    )


def _axlf(sections: Mapping[int, bytes]) -> bytes:
    header_bytes = 8 + 4 + 28 + 256 + 8 + 152 + 40 * len(sections)
    table, body = b"", b""
    for kind, data in sections.items():
        body += bytes(-(header_bytes + len(body)) % 8)
        table += struct.pack("<I16s4xQQ", kind, b"", header_bytes + len(body), len(data))
        body += data
    uuid = hashlib.sha256(body).digest()[:16]
    length = header_bytes + len(body)
    header = struct.pack(
        "<QQQHBBHH16s64s16s16sI4x", length, 0, 0, 0, 2, 13, 0, 0, bytes(16), b"test", uuid, b"", len(sections)
    )
    return b"xclbin2\0" + struct.pack("<i28s256sQ", -1, b"\xff" * 28, bytes(256), 0) + header + table + body
