"""What an xclbin container says of a kernel: its compute units and arguments, which pyxrt does not list."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from .errors import PackageError

MAGIC = b"xclbin2\0"
COUNT_AT, TABLE_AT = 448, 456  # XRT's xclbin.h: the number of sections, and the table of them
ENTRY = struct.Struct("<I20xQQ")
EMBEDDED_METADATA = 2


@dataclass(frozen=True)
class LinkedKernel:
    """A kernel as it was linked. `arguments` are in the order of their positions."""

    name: str
    units: tuple[str, ...]
    arguments: tuple[str, ...]


def read_kernels(path: Path) -> list[LinkedKernel]:
    """The kernels of a container, from its embedded metadata."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PackageError(
            f"{path} cannot be read ({error.strerror})", "link the design (link/connectivity.cfg) and put it there"
        ) from error
    try:
        root = ElementTree.fromstring(_section(data, EMBEDDED_METADATA).rstrip(b"\0"))
        return [_kernel(element) for element in root.iter("kernel")]
    except (struct.error, ValueError, LookupError, ElementTree.ParseError) as error:
        raise PackageError(f"{path} is no whole bitstream ({error})", "copy what v++ --package wrote again") from error


def _kernel(element: ElementTree.Element) -> LinkedKernel:
    return LinkedKernel(
        element.get("name", ""),
        tuple(unit.get("name", "") for unit in element.findall("instance")),
        tuple(a.get("name", "") for a in sorted(element.findall("arg"), key=lambda a: int(a.get("id", "0"), 0))),
    )


def _section(data: bytes, wanted: int) -> bytes:
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("it does not begin as one")
    (count,) = struct.unpack_from("<I", data, COUNT_AT)
    for index in range(count):
        kind, offset, size = ENTRY.unpack_from(data, TABLE_AT + index * ENTRY.size)
        if kind == wanted:
            if offset + size > len(data):
                raise ValueError("it is cut off")
            return data[offset : offset + size]
    raise ValueError("it names no kernels")
