"""Which port of external memory each load goes through, where loads share ports: one task a port, load after load.

A port of HLS belongs to one task of a dataflow. So what several tensors are to be loaded through is a task that loads
them one after the other, in the order in which they are wanted: while one layer computes, all ports bring its weights,
and then those of the next. What has most still to come behind it is wanted first: of two branches the longer one's. A
load that is held back holds back later ones on its port only, and nothing that its reader waits for is among them.

What is small enough to be fetched whole, ahead of its reader, passes before the large tensor that is wanted before it:
else a layer's scales would come only when all weights of the product that they scale have passed. Before the weights of
that product it passes in any case, whatever else is wanted in between: its results would wait for their scales.

A tensor that is loaded more than once (`reload`) comes through the same port each time, whether that has others or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from xdsl.ir import SSAValue

from penstock.compiler.design import PREFETCH_BITS, Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.names import Names
from penstock.compiler.plan.parts import Computing, Loading, Part, Storing, Stream, Transfer
from penstock.compiler.platforms import Platform
from penstock.compiler.scalars.number_types import type_bits

_LITTLE = 16
"""A tensor that takes a port so many times less time than another holds it up little."""


def assign_ports(kernels: Sequence[Sequence[Part]], design: Design, platform: Platform) -> None:
    """Give every load that can share a port the names of its tasks, one for each bank that the tensor lies in.

    A load takes the ports that are done soonest with what is wanted before it, so that what is wanted together goes
    through different ones as far as there are some, and no tensor waits for the one bank that it shares with another.
    It begins at a multiple of how many it takes, so that two of a size share all their ports or none: on a chip of
    several dies ports stand beside what they serve, and those that serve all of it have wires everywhere.
    Where no tensor is striped and there are more of them than ports, only the smallest share some and are held whole:
    a port goes on when a tensor has passed, and one that no FIFO holds has when its reader has taken nearly all of it.
    Of inputs that follow each other, two such on one port take twice the time of one.
    """
    if platform.has_array_arguments:
        return
    memory = platform.fastest_memory
    count = design.stripes if memory is None else memory.ports
    names = Names(part.label for parts in kernels for part in parts)
    room = None if memory is None else memory.gigabytes * 1e9 / memory.ports
    for parts in kernels:
        wanted = _behind(parts)
        loads = [part for part in parts if design.stripes > 1 and _shares(part, design.port_bits)]
        labels: dict[int, str] = {}
        following, filled = 0, [0.0] * count  # bits that each port brings so far
        striped = any(_stripes(part) > 1 for part in loads)
        together, shared = (set[Part](), 0) if striped else _together(loads, count)
        for turn, part in enumerate(_in_turn(parts, loads, wanted, design.prefetch_bits, striped=striped)):
            assert isinstance(part.does, Loading)
            part.turn, stripes = turn, _stripes(part)
            if before := next((one for one in loads if one.ports and one.tensors == part.tensors), None):
                part.ports = before.ports
                continue
            if part in together:
                ports = [min(range(shared), key=filled.__getitem__)]
            elif together:
                ports = [shared + following]
                following += 1
            else:
                sides = _sides(count, stripes, following)
                ports = min(sides, key=lambda side: max([filled[port] for port in side]))
                following = (ports[-1] + 1) % count
            for port in ports if striped or together else ():
                filled[port] += _bits(part) / stripes
            held = prod(part.does.transfer.stream.kind.data_shape()) * type_bits(part.does.transfer.stream.kind.dtype)
            if room is not None and held / 8 / stripes > room:
                raise _too_small(part, held / 8, stripes, room)
            for port in ports:
                if port not in labels:
                    labels[port] = names.take(f"port{port}")
            part.ports = tuple([labels[port] for port in ports])
        _bring_again([part for part in parts if part not in loads], wanted, names)


def _sides(count: int, stripes: int, following: int) -> list[list[int]]:
    """The ports that a tensor over so many banks may take, the ones that follow first."""
    firsts = range(0, count - stripes + 1, stripes)
    in_turn = sorted(firsts, key=lambda first: (first - following) % count)
    return [list(range(first, first + stripes)) for first in in_turn]


def _bring_again(loads: Sequence[Part], wanted: dict[Part, int], names: Names) -> None:
    """A port task of its own for a tensor that is loaded more than once, and shares no port with others."""
    loading: dict[SSAValue, list[Part]] = {}
    for part in loads:
        if isinstance(part.does, Loading) and loads_straight(part.does.transfer):
            loading.setdefault(part.tensors[0], []).append(part)
    for several in (parts for parts in loading.values() if len(parts) > 1):
        port = names.take(f"{several[0].label}_again")
        for turn, part in enumerate(sorted(several, key=lambda part: -_most_behind(part, wanted))):
            part.ports, part.turn = (port,), turn


def loads_straight(transfer: Transfer) -> bool:
    """Whether a load is a process a bank that sends words on as they come, through no block before they leave it."""
    return transfer.through is None or len(transfer.stripes) > 1


def _together(loads: Sequence[Part], ports: int) -> tuple[set[Part], int]:
    """Of more loads than ports: the smallest ones, and how many ports these share. All others have one each.

    As few share as can: so that their ports are done no later than that of the largest tensor.
    """
    by_size = sorted(loads, key=_bits)
    excess = len(loads) - ports
    if excess <= 0:
        return set(), 0
    shared = 1
    while shared < ports and sum(map(_bits, by_size[: excess + shared])) > shared * _bits(by_size[-1]):
        shared += 1
    return set(by_size[: excess + shared]), shared


def _bits(part: Part) -> int:
    """All that a load brings."""
    assert isinstance(part.does, Loading)
    words = part.does.transfer.words
    return words.bits * words.kind.token_count


def _too_small(part: Part, tensor: float, stripes: int, room: float) -> PenstockError:
    """Of a tensor whose share is larger than a bank."""
    return PenstockError(
        code="bank-too-small", what=f"a bank's share of {tensor / stripes / 1e6:,.1f} MB", where=part.name,
        limit=f"a bank holds {room / 1e6:,.1f} MB", hint=f"stripe it over at least {ceil(tensor / room)} banks",
    )  # fmt: skip


def _in_turn(
    parts: Sequence[Part], loads: Sequence[Part], wanted: dict[Part, int], prefetch_bits: int, *, striped: bool
) -> list[Part]:
    """As they are wanted, but what is held whole goes before the last tensor that is not, and before what its reader
    scales.

    A reader that waits for another one has less behind it, so that its loads are later than those of the other.
    """
    found: list[Part] = []
    whole, last = whole_bits(prefetch_bits, striped=striped), 0  # the place of the last one that is not held whole
    large = {part for part in loads if _bits(part) > whole}
    behind = _followed_from(parts, large)
    for part in sorted(loads, key=lambda part: -_most_behind(part, wanted)):
        place, usual = _before_what_it_scales(part, behind, found), last if part not in large else len(found)
        if part in large and not (_bits(part) <= prefetch_bits and all(_little(part, one) for one in found[place:])):
            place = usual
        place = min(place, usual)
        last = len(found) if part in large and place == len(found) else last + 1
        found.insert(place, part)
    return found


def _little(part: Part, other: Part) -> bool:
    """Whether it takes little time on a port beside another."""
    return _LITTLE * _bits(part) * _stripes(other) <= _bits(other) * _stripes(part)


def _before_what_it_scales(part: Part, behind: dict[Part, set[Part]], found: Sequence[Part]) -> int:
    """The place of the last large tensor of which what its reader computes with follows; the end where there is none.

    A reader of several products begins when the last of them does.
    """
    places = {one: place for place, one in enumerate(found)}
    readers = [reader for reader in _readers(part.outputs) if isinstance(reader.does, Computing)]
    lasts = [[places.get(one, len(found)) for one in behind[reader]] for reader in readers]
    return min((max(several) for several in lasts if several), default=len(found))


def _followed_from(parts: Sequence[Part], large: set[Part]) -> dict[Part, set[Part]]:
    """The large tensors with which what comes to each part was computed: for each way there, the last ones."""
    own, behind = dict[Part, set[Part]](), dict[Part, set[Part]]()
    for part in parts:  # writers come first
        makers = [stream.maker for stream in part.inputs]
        own[part] = {part} if part in large else set()
        behind[part] = set()
        for maker in makers:
            if isinstance(maker.does, Computing):
                behind[part] |= own[maker] or behind[maker]
            else:
                own[part] |= own[maker]
                behind[part] |= behind[maker]
    return behind


def _stripes(part: Part) -> int:
    assert isinstance(part.does, Loading)
    layout = part.does.transfer.layout
    return layout.layout.stripes if layout is not None else 1


def whole_bits(prefetch_bits: int, *, striped: bool) -> int:
    """Up to what size a tensor is held whole, so that its port can go on.

    Where none is striped only the smallest share ports. Whatever the design says, they are held: their readers may
    want several at once, and a port that waits with the first would never bring the second.
    """
    return min(prefetch_bits, PREFETCH_BITS) if striped else PREFETCH_BITS


def _behind(parts: Sequence[Part]) -> dict[Part, int]:
    """How many parts there are on the longest way from each to the end, itself among them. Writers come first."""
    found: dict[Part, int] = {}
    for part in reversed(parts):
        readers = [stream.reader for stream in part.outputs]
        found[part] = 1 + max((found[reader] for reader in readers if reader is not None), default=0)
    return found


def _most_behind(part: Part, behind: dict[Part, int]) -> int:
    """What is behind the parts that compute with what a load brings, or store it."""
    return max(behind[reader] for reader in _readers(part.outputs))


def _readers(streams: Sequence[Stream]) -> list[Part]:
    """The parts that compute with streams, or store them."""
    found: list[Part] = []
    for stream in streams:
        reader = stream.reader
        assert reader is not None
        found += [reader] if isinstance(reader.does, Computing | Storing) else _readers(reader.outputs)
    return found


def _shares(part: Part, port_bits: int) -> bool:
    """Whether it loads whole words of a port straight into a stream."""
    if not isinstance(part.does, Loading) or (layout := part.does.transfer.layout) is None:
        return False
    bits = layout.layout.lanes_of_stripe * type_bits(part.does.transfer.stream.kind.dtype)
    return loads_straight(part.does.transfer) and bits == 1 << (port_bits.bit_length() - 1)
