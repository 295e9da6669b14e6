"""Which port of external memory each load goes through, where loads share ports: one task a port, load after load.

A port of HLS belongs to one task of a dataflow. So what several tensors are to be loaded through is a task that loads
them one after the other, in the order in which they are wanted: while one layer computes, all ports bring its weights,
and then those of the next. A load that is held back holds back later ones on its port only, whose readers come later.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.compiler.design import Design
from penstock.compiler.names import Names
from penstock.compiler.plan.parts import Computing, Loading, Part, Storing, Stream
from penstock.compiler.platforms import Platform
from penstock.compiler.scalars.number_types import type_bits


def assign_ports(kernels: Sequence[Sequence[Part]], design: Design, platform: Platform) -> None:
    """Give every load that can share a port the names of its tasks, one for each bank that the tensor lies in.

    Loads take ports in turn, so that what is wanted together goes through different ones as far as there are some.
    """
    if design.stripes == 1 or platform.has_array_arguments:
        return
    memory = platform.fastest_memory
    count = design.stripes if memory is None else memory.ports
    names = Names(part.label for parts in kernels for part in parts)
    for parts in kernels:
        wanted = {part: number for number, part in enumerate(parts)}
        loads = [part for part in parts if _shares(part, design.port_bits)]
        labels: dict[int, str] = {}
        following = 0
        for part in sorted(loads, key=lambda part: first_use(part, wanted)):
            assert isinstance(part.does, Loading)
            layout = part.does.transfer.layout
            stripes = layout.layout.stripes if layout is not None else 1
            ports = [(following + i) % count for i in range(stripes)]
            following = (ports[-1] + 1) % count
            for port in ports:
                if port not in labels:
                    labels[port] = names.take(f"port{port}")
            part.ports = tuple([labels[port] for port in ports])


def first_use(part: Part, order: dict[Part, int]) -> int:
    """The place of the first part that computes with what a load brings, or stores it."""
    return min(_uses(part.outputs, order))


def _uses(streams: Sequence[Stream], order: dict[Part, int]) -> list[int]:
    found: list[int] = []
    for stream in streams:
        reader = stream.reader
        assert reader is not None
        found += [order[reader]] if isinstance(reader.does, Computing | Storing) else _uses(reader.outputs, order)
    return found


def _shares(part: Part, port_bits: int) -> bool:
    """Whether it loads whole words of a port straight into a stream."""
    if not isinstance(part.does, Loading) or (layout := part.does.transfer.layout) is None:
        return False
    plain = part.does.transfer.through is None or layout.layout.stripes > 1
    bits = layout.layout.lanes_of_stripe * type_bits(part.does.transfer.stream.kind.dtype)
    return plain and bits == 1 << (port_bits.bit_length() - 1)
