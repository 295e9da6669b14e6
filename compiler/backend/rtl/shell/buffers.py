"""Which frame buffers a core needs, and which of them the host reaches."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.backend.rtl.shell.identity import HostPort
from penstock.compiler.errors import PenstockError


@dataclass(frozen=True)
class BufferedArgument:
    """One memory argument of the core. Every reader has a copy of its own, and all are written alike."""

    name: str
    writer: RtlPort | None
    readers: tuple[RtlPort, ...]
    host: HostPort | None

    @property
    def port(self) -> RtlPort:
        """Any of its ports: they agree in width and words."""
        return self.writer or self.readers[0]


def find_arguments(design: RtlDesign) -> tuple[BufferedArgument, ...]:
    """The arguments in the order of their first port.

    What the core only reads the host writes, what it only writes the host reads; what it writes and reads lies
    between two groups of kernels, and is nobody else's.
    """
    names: list[str] = []
    for port in design.ports:
        if not port.is_memory or port.argument is None:
            raise PenstockError(
                code="no-board-for-streams", what=f"port {port.name!r} is a stream", where=design.top,
                limit="the shell of a board has memories for arguments, and nothing at the ends of streams",
                hint="wrap the whole design instead of some of its tasks",
            )  # fmt: skip
        if port.argument not in names:
            names.append(port.argument)
    arguments: list[BufferedArgument] = []
    for name in names:
        arguments.append(_argument(design, name, sum(a.host is not None for a in arguments)))
    if not any(a.host is not None and a.host.direction == "read" for a in arguments):
        raise PenstockError(
            code="no-result", what="the core writes nothing that a host could read", where=design.top,
            hint="wrap a design with at least one output",
        )  # fmt: skip
    return tuple(arguments)


def _argument(design: RtlDesign, name: str, index: int) -> BufferedArgument:
    ports = [port for port in design.ports if port.argument == name]
    writers = [port for port in ports if port.kind == "memory_write"]
    readers = tuple(port for port in ports if port.kind == "memory_read")
    shapes = {(port.width, port.words) for port in ports}
    if len(writers) > 1 or len(shapes) > 1:
        raise PenstockError(
            code="argument-ports-differ", what=f"argument {name!r} has ports that do not share one memory",
            where=design.top, limit=", ".join(f"{p.name}: {p.words} words of {p.width} bits" for p in ports),
            hint="one port writes it, and all of its ports have the same words",
        )  # fmt: skip
    writer = writers[0] if writers else None
    first = ports[0]
    if writer is not None and readers:
        return BufferedArgument(name, writer, readers, None)
    direction = "read" if writer else "write"
    return BufferedArgument(
        name, writer, readers, HostPort(index, name, direction, first.width, first.words, first.element)
    )
