"""LUTs and flip-flops of what is no operator: counters, registers, multiplexers, FIFOs, as csynth's tables count them.

An adder or a comparison of b bits is b + 7 LUTs, a choice between two values a LUT a bit, a multiplexer of n values
about 5.75 n - 3 LUTs whatever their width. A value that is used in a later cycle is a register; one more where that is
the next turn of the pipeline's states, and a shift register of 64 flip-flops and 32 LUTs, whatever its width, where it
is later still. All are read off the tables of Expression, Multiplexer, Register and FIFO in csynth's reports (2023.2).
"""

from __future__ import annotations

from collections import Counter as Count
from math import gcd, prod

from penstock.compiler.hls_in.banks import bank_of
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.records import Pipeline, Straight
from penstock.compiler.hls_in.schedule import ScheduledPipeline
from penstock.compiler.hls_in.storage import KernelArray

LutsAndFlipFlops = tuple[int, int]
_SHIFT = 32, 64
_SUM = 7
"""LUTs of an adder or a comparison beyond its bits."""
_MULTIPLIERS = {4: 12, 5: 17, 6: 23, 7: 33, 8: 40, 9: 49, 10: 62}
"""LUTs of a multiplier without DSPs by the bits of its wider operand."""


_BANK = 5.3
"""LUTs a bank of 32 bits that a load chooses from."""


def multiplexer(inputs: int) -> int:
    return round(5.75 * inputs - 2.75) if inputs > 1 else 0


def fifo_area(depth: int, bits: int) -> LutsAndFlipFlops:
    address = max(1, (depth - 1).bit_length())
    if depth <= 2:
        return 12 + round(1.3 * bits), 2 * bits + 4
    if depth <= 32:
        return 9 + round(1.3 * bits), address + 3
    if depth <= 128:
        return 6 + 8 * address + round((3.7 if depth > 64 else 1.5) * bits), 3 * bits + 4 + 3 * address
    address = min(9, address)
    return 6 + 8 * address, 2 * bits + 4 + 3 * address


def fabric_of(item: Pipeline | Straight, found: ScheduledPipeline, delays: Delays) -> LutsAndFlipFlops:
    parts = [_kept(item, found), _shared(found, delays), _computed(found)]
    if isinstance(item, Pipeline):
        parts.append(_control(item, found))
    return sum(lut for lut, _ in parts), sum(ff for _, ff in parts)


def _control(item: Pipeline, found: ScheduledPipeline) -> LutsAndFlipFlops:
    """Counters of a flattened nest, one more for each loop but the innermost that counts all inside it, and states."""
    bits = [max(1, c.trip.bit_length()) for c in item.counters]
    wholes = [prod(c.trip for c in item.counters[i:]).bit_length() for i in range(len(bits) - 1)]
    counting = [*bits, *wholes]
    lut = sum(b + _SUM + 2 * multiplexer(2) for b in counting)
    lut += sum(b + _SUM for b in [*wholes, *bits[-1:]])  # whether they have come to their end
    lut += 2 * sum(bits[1:]) + sum(bits[:-1]) if len(bits) > 1 else 0  # what begins anew, and what goes on
    stages = -(-found.depth // found.ii)
    lut += multiplexer(2) * 2 + 12 + (multiplexer(found.ii + 1) if found.ii > 1 else 0)
    kept = sum(bits) if len(bits) > 1 else 0
    return lut, sum(counting) + kept + found.ii + stages + 2


def _kept(item: Pipeline | Straight, found: ScheduledPipeline) -> LutsAndFlipFlops:
    """Values that are used in a later cycle than the one in which they are there."""
    last: dict[KernelValue, int] = {}
    for node, start in found.starts.items():
        for other in (*node.args, *([node.guard] if node.guard is not None else [])):
            last[other] = max(last.get(other, 0), start)
    turn = found.ii if isinstance(item, Pipeline) else found.depth
    waits = [
        (node.bits, 1 if _comes_back(node) else last[node] - found.there.get(node, 0))
        for node in last
        if not node.constant and node.linear is None and node.op not in ("counter", "phi")
    ]
    lut = ff = 0
    for bits, wait in (*waits, *_addresses(found)):
        if wait > 0:
            again = (wait - 1) // max(1, turn)
            ff += bits + (bits if again == 1 else _SHIFT[1] if again > 1 else 0)
            lut += _SHIFT[0] if again > 1 else 0
    for node in found.starts:
        if node.op == "phi" and node.follow is not None:
            lut, ff = lut + 2 * multiplexer(2), ff + node.bits
    return lut, ff


def _comes_back(node: KernelValue) -> bool:
    """A choice of what the iteration before left: it is made when that is used."""
    return node.op == "select" and any(arg.op == "phi" for arg in node.args[1:])


def _addresses(found: ScheduledPipeline) -> list[tuple[int, int]]:
    """Bits of addresses, and how long they wait for their store: one for each word that was loaded as well, and one
    for all others with the same index."""
    loaded = {(n.array, *(a.linear for a in n.args)) for n in found.starts if n.op == "load"}
    kept: dict[object, tuple[int, int]] = {}
    for node, start in found.starts.items():
        if node.op == "store" and node.array is not None and not node.array.registers:
            word = (node.array, *(a.linear for a in node.args[1:]))
            inner = tuple(a.linear.terms if a.linear is not None else a for a in node.args[1:])
            known = found.addresses.ready.get(node, (0, 0.0))[0]
            words = -(-node.array.words // node.array.banks)
            kept[word if word in loaded else inner] = max(1, (words - 1).bit_length()), start - known
    return list(kept.values())


def _shared(found: ScheduledPipeline, delays: Delays) -> LutsAndFlipFlops:
    """Multiplexers in front of operators that several operations share, and of a bank's ports."""
    lut = 0
    if found.ii > 1:
        for name, uses in Count(name for n in found.starts if (name := delays.unit(n, False)) is not None).items():
            units = max(
                1, sum(c for unit, c in found.units.items() if unit.rpartition(":")[0] == name.rpartition(":")[0])
            )
            lut += 2 * units * multiplexer(-(-uses // units))
    banks: Count[tuple[KernelArray, object]] = Count()
    for node in found.starts:
        if node.op in ("load", "store") and node.array is not None and not node.array.registers:
            banks[node.array, bank_of(node)] += 1
    if found.ii > 1:
        lut += sum(2 * multiplexer(count) for count in banks.values())
    return lut, 0


def _computed(found: ScheduledPipeline) -> LutsAndFlipFlops:
    """Choices, sums, comparisons and logic; a number of banks that a counter chooses from."""
    lut = 0
    for node in found.starts:
        if node.op == "select":
            lut += node.bits
        elif node.op in ("logic", "not"):
            lut += 2
        elif node.op == "compare":
            lut += max(arg.bits for arg in node.args) + _SUM if node.kind != "float" else 0
        elif node.op in ("add", "sub") and node.kind == "int" and node.linear is None:
            lut += node.bits + _SUM
        elif node.op == "load" and node.array is not None and (banks := _banks(node)) > 1:
            lut += round(_BANK * banks)
    remainders = found.addresses.remainders
    lut += sum(max(0, 19 * bits - 46) for bits in remainders.values())
    return lut, sum(max(0, 30 * bits - 52) for bits in remainders.values())


def _banks(load: KernelValue) -> int:
    """How many banks a load may meet."""
    assert load.array is not None
    banks = 1
    for d, node in enumerate(load.args):
        way, factor = load.array.cut(d)
        if factor > 1 and node.linear is None:
            banks *= factor
        elif factor > 1 and node.linear is not None and way == "cyclic":
            banks *= factor // gcd(factor, *(f for _, f in node.linear.terms))
    return banks
