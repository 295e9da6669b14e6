"""How a design meets external memory: the width, bursts and bundle of every argument, from its nests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute, Operation, SSAValue

from penstock.compiler.analysis.banks import lanes_of
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.directives import BURST_BYTES, LONGEST_BURST, element_bits, word_of
from penstock.compiler.dialects.nest import MemoryOp
from penstock.compiler.dialects.types import memref_type, vector_type

_WIDEST = 512  # bits to which the tools widen a port of plain scalars by themselves
_MOST_OUTSTANDING = 32


@dataclass(frozen=True)
class AxiPort:
    """The port of one argument: `words` of the argument's own type, bursts counted in beats of `bits`."""

    bundle: int
    bits: int
    words: int
    burst: int
    outstanding: int


@dataclass(frozen=True)
class _Traffic:
    """What one argument asks of its port, and which kernels read and write it."""

    bits: int
    words: int
    run_bits: int
    moved_bits: int
    readers: frozenset[int]
    writers: frozenset[int]
    tasks: frozenset[str]
    """Those that read it."""

    @property
    def groups(self) -> frozenset[int]:
        return self.readers | self.writers

    def clashes(self, other: _Traffic) -> bool:
        """Whether HLS refuses one bundle for both: in a dataflow region one task reads a bundle and one writes it."""
        return bool(self.readers & other.readers or self.writers & other.writers)

    def shares(self, other: _Traffic) -> bool:
        """Whether one task reads both, one after the other, through one port."""
        return self.bits == other.bits and bool(self.tasks & other.tasks)


def plan_ports(top: stream.TopOp, limit: int, latency: int) -> tuple[AxiPort, ...]:
    """One port an argument; `limit` bundles if HLS takes so few. Bursts under way cover `latency` cycles of reading."""
    traffic = [_traffic(argument) for argument in top.body.block.args]
    bundles = _assign_bundles(traffic, max(1, limit))
    ports: list[AxiPort] = []
    for one, bundle in zip(traffic, bundles, strict=True):
        most = min(LONGEST_BURST, BURST_BYTES * 8 // one.bits)
        burst = max(2, min(most, _power_of_two_below(one.run_bits // one.bits)))
        outstanding = max(2, min(_MOST_OUTSTANDING, _power_of_two_above(-(-2 * latency // burst))))
        ports.append(AxiPort(bundle, one.bits, one.words, burst, outstanding))
    return tuple(ports)


def _assign_bundles(traffic: list[_Traffic], limit: int) -> list[int]:
    """Arguments of one kernel get bundles of their own, but for those that one task reads one after the other; those of
    different kernels, at different times, share.

    Only ports of one width share. Where the platform has too few ports, one that is only read and one that is only
    written at the same time share, the least loaded one first: the argument that moves most chooses first. Where that
    is not enough there are more bundles than ports, and the linker has several share one. Bundles are numbered in the
    order of the arguments.
    """
    members: list[list[_Traffic]] = []
    chosen: dict[int, int] = {}
    for index in sorted(range(len(traffic)), key=lambda i: -traffic[i].moved_bits):
        one = traffic[index]
        same = [i for i, others in enumerate(members) if any(o.shares(one) for o in others)]
        free = [
            i for i, others in enumerate(members)
            if all(o.bits == one.bits and not o.groups & one.groups for o in others)
        ]  # fmt: skip
        if same:
            bundle = same[0]
        elif free:
            bundle = free[0]
        else:
            allowed = [i for i, others in enumerate(members) if not any(one.clashes(o) for o in others)]
            if len(members) < limit or not allowed:
                bundle = len(members)
                members.append([])
            else:
                bundle = min(allowed, key=lambda i: sum(o.moved_bits for o in members[i] if o.groups & one.groups))
        members[bundle].append(one)
        chosen[index] = bundle
    numbers = list(dict.fromkeys(chosen[index] for index in range(len(traffic))))
    return [numbers.index(chosen[index]) for index in range(len(traffic))]


def _traffic(argument: SSAValue) -> _Traffic:
    memory = memref_type(argument)
    words, word = prod(memory.get_shape()), word_of(memory)
    accesses: list[MemoryOp] = []
    for use in argument.uses:
        operation: Operation = use.operation
        if isinstance(operation, nest.LoadOp | nest.StoreOp):
            accesses.append(operation)
    readers = frozenset(_group(access) for access in accesses if isinstance(access, nest.LoadOp))
    writers = frozenset(_group(access) for access in accesses if isinstance(access, nest.StoreOp))
    tasks = frozenset(_task(access).sym_name.data for access in accesses if isinstance(access, nest.LoadOp))
    moved = sum(_parent(a).iterations * _bits(a) for a in accesses)
    runs = [_run(a, wide=word is not None) for a in accesses]
    if word is not None:
        bits = prod(word.get_shape()) * stored_bits(word.element_type)
        run = min((in_a_row * bits for _, in_a_row in runs), default=bits)
        return _Traffic(bits, words, run, moved, readers, writers, tasks)
    scalar = stored_bits(memory.element_type)
    bits = scalar * min((_widened(side_by_side, scalar) for side_by_side, _ in runs), default=1)
    run = min((elements * scalar for _, elements in runs), default=bits)
    return _Traffic(bits, words, max(run, bits), moved, readers, writers, tasks)


def beats_of(lanes: Sequence[int], shape: Sequence[int], scalar: int) -> int:
    """How many beats an access to plain scalars of so many bits takes, `lanes` of a memory of this shape at once."""
    return prod(lanes) // _widened(_contiguous(lanes, shape), scalar)


def _widened(side_by_side: int, scalar: int) -> int:
    """The elements of one beat: the tools widen a port to what divides all that lies side by side, a power of two."""
    return min(side_by_side & -side_by_side, _WIDEST // scalar)


def _run(access: MemoryOp, *, wide: bool) -> tuple[int, int]:
    """Elements (or whole words) that lie side by side in one access, and in accesses that follow each other."""
    shape = nest.memory_shape(access.memory)
    strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    side_by_side = 1 if wide else _contiguous(lanes_of(access), shape)
    address, parent = access.address.data, _parent(access)
    pinned = {term.loop for term in access.when.terms if term.comparison == "eq"}
    moves = [0] * len(parent.trips)
    for expression, stride in zip(address.results, strides, strict=True):
        for loop, factor in enumerate(coefficients(expression, address.num_dims)):
            moves[loop] += factor * stride
    run = side_by_side
    for loop in range(len(parent.trips) - 1, -1, -1):
        if parent.trips[loop] == 1 or loop in pinned:
            continue
        if moves[loop] != run:
            break
        run *= parent.trips[loop]
    return side_by_side, run


def _contiguous(lanes: Sequence[int], shape: Sequence[int]) -> int:
    """How many of the lanes lie side by side in memory."""
    run = 1
    for extent, size in zip(reversed(lanes), reversed(shape), strict=True):
        run *= extent
        if extent != size:
            break
    return run


def _bits(access: MemoryOp) -> int:
    kind = vector_type(access.result if isinstance(access, nest.LoadOp) else access.value)
    return prod(kind.get_shape()) * stored_bits(kind.element_type)


def _parent(access: MemoryOp) -> nest.NestOp:
    parent = access.parent_op()
    assert isinstance(parent, nest.NestOp)
    return parent


def _group(access: MemoryOp) -> int:
    return _task(access).group.data


def _task(access: MemoryOp) -> stream.TaskOp:
    task = _parent(access).parent_op()
    assert isinstance(task, stream.TaskOp)
    return task


def stored_bits(kind: Attribute) -> int:
    """What a scalar takes in external memory: whole bytes, a power of two of them."""
    return max(8, _power_of_two_above(element_bits(kind)))


def _power_of_two_below(number: int) -> int:
    return 1 << max(0, number.bit_length() - 1)


def _power_of_two_above(number: int) -> int:
    return 1 << (number - 1).bit_length()
