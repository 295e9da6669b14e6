"""What the RTL backend hands on: SystemVerilog by file name, memory contents, and the ports of the core.

It is all that simulation, synthesis and a board's shell need to know of a design.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.compiler.backend.rtl.lines import clog2

RtlPortKind = Literal["stream_in", "stream_out", "memory_read", "memory_write"]


@dataclass(frozen=True)
class RtlPort:
    """One group of signals of the core.

    A stream has `N_tdata`, `N_tvalid`, `N_tready`; a memory that is read `N_re`, `N_addr`, `N_rdata`; one that is
    written `N_we`, `N_addr`, `N_wdata`.
    """

    name: str
    kind: RtlPortKind
    width: int
    """Bits of a token or word; lane 0 lies lowest."""
    words: int
    """Words of the memory, or tokens a frame."""
    element: str
    """The element's type as the IR prints it: i8, f32."""
    argument: str | None
    """The top's argument behind a memory port; None for a stream."""
    channel: str | None = None
    """The channel's name in the IR behind a stream; None for a memory."""

    @property
    def is_memory(self) -> bool:
        return self.kind in ("memory_read", "memory_write")

    @property
    def signals(self) -> tuple[str, str, str]:
        """What its signals' names end in."""
        if not self.is_memory:
            return "tdata", "tvalid", "tready"
        return ("re", "addr", "rdata") if self.kind == "memory_read" else ("we", "addr", "wdata")

    @property
    def address_bits(self) -> int:
        return clog2(self.words)


@dataclass(frozen=True)
class RtlDesign:
    """A core: synchronous to `clk`, reset by `rst` (synchronous, active high), begun by `start`, reporting `done`."""

    top: str
    files: Mapping[str, str]
    """SystemVerilog by file name, in the order of compilation, primitives included."""
    data: Mapping[str, str]
    """What `$readmemh` reads, by file name relative to the working directory."""
    ports: tuple[RtlPort, ...]

    def port(self, name: str) -> RtlPort:
        return next(port for port in self.ports if port.name == name)

    def write(self, folder: Path) -> list[Path]:
        """All files under `folder`; returns the SystemVerilog in the order of compilation."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {**self.files, **self.data}.items():
            (folder / name).write_text(text)
        return [folder / name for name in self.files]
