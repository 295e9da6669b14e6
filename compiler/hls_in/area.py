"""What a kernel takes: operators as the tool shares them, address arithmetic, registers and control.

Regions that run one after the other share floating-point operators; tasks and regions at the same time have their own.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from penstock.compiler.hls_in.channel_ends import arrays_of
from penstock.compiler.hls_in.delays import Delays, factor_bits, is_product
from penstock.compiler.hls_in.fabric import LutsAndFlipFlops, fabric_of, fifo_area, multiplexer
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.records import Again, Called, DataflowRegion, Pipeline, Region, Straight
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.hls_in.timed import Timed, merged, touched
from penstock.compiler.schedule.library import Operator

_PORTS_OF_A_COPY = 2
"""Of a ROM in block RAM, which is there as often as its reads in a cycle ask for."""
_LUT_WORDS = 64
"""Words that a LUT holds a bit of."""


@dataclass(frozen=True)
class Area:
    dsp: int
    lut: int
    ff: int
    bram18: int


def area_of(timed: Timed, delays: Delays) -> Area:
    units = _units(timed.kernel.body, timed)
    dsp = lut = ff = 0
    rows = {f"{r.ops[0]}:{r.bits}:{r.binding}": r for r in delays.library.operators}
    for name, count in units.items():
        row = rows[name]
        dsp += count * row.dsp
        lut += count * row.lut
        ff += count * row.ff
    for streams in timed.kernel.streams:
        if not streams.argument:
            more = fifo_area(streams.depth, streams.bits)
            lut += prod(streams.dims) * more[0]
            ff += prod(streams.dims) * more[1]
    more = _between(timed.kernel.body, timed)
    lut += more[0]
    ff += more[1]
    for item in timed.schedules:
        dsp += timed.schedules[item].addresses.dsp
        more = fabric_of(item, timed.schedules[item], delays)
        lut += more[0]
        ff += more[1]
        for row, count in _integer_products(item, timed, delays):
            dsp += count * row.dsp
            lut += count * row.lut
            ff += count * row.ff
    bram = 0
    for array in timed.kernel.arrays:
        if array.argument or array.registers:
            continue
        if array.built_of == "lutram":
            lut += _in_luts(array, timed)
            continue
        words = -(-array.words // max(1, array.banks))
        if words > 64:
            rounded = 1 << (words - 1).bit_length() if words <= 8192 else words
            copies = 2 if array.channel and not array.blocks else 1
            if array.read_by_all:
                copies *= -(-_reads_at_once(array, timed) // (_PORTS_OF_A_COPY * array.banks))
            bram += array.banks * max(1, round(rounded * -(-array.bits // 18) / 1024)) * copies
    return Area(dsp, lut, ff, bram)


def _in_luts(array: KernelArray, timed: Timed) -> int:
    """A memory that a pragma puts into LUTs; a ROM that all may read is there once for each word of an iteration."""
    copies = _reads_at_once(array, timed) if array.read_by_all else array.banks
    words = array.words if array.read_by_all else -(-array.words // array.banks)
    return copies * array.bits * -(-words // _LUT_WORDS)


def _reads_at_once(array: KernelArray, timed: Timed) -> int:
    """Words of a ROM that are read in a cycle: by every loop, since each has its own."""
    reads = [
        -(-sum(n.op == "load" and n.array is array for n in found.starts) // max(1, found.ii))
        for found in timed.schedules.values()
    ]
    return max(1, sum(reads))


def _units(items: list[Region], timed: Timed) -> Count[str]:
    """Operators of regions one after the other: the most of each kind that any step needs."""
    total: Count[str] = Count()
    step: Count[str] = Count()
    used: set[object] = set()
    for item in _flat(items):
        own = touched(item)
        if own & used:
            total |= step
            step, used = Count(), set()
        step += _of(item, timed)
        used |= own
    return total | step


def _flat(items: list[Region]) -> list[Region]:
    found: list[Region] = []
    for item in items:
        found += _flat(item.body) if isinstance(item, Called) else [item]
    return found


def _of(item: Region, timed: Timed) -> Count[str]:
    if isinstance(item, (Pipeline, Straight)):
        found = timed.schedules.get(item)
        return Count(found.units) if found is not None else Count()
    if isinstance(item, DataflowRegion):
        total: Count[str] = Count()
        for task in merged(item.tasks):
            total += _units(task.body, timed)
        return total
    return _units(item.body, timed)


def _between(items: list[Region], timed: Timed) -> LutsAndFlipFlops:
    """Multiplexers of operators and memories that regions one after the other share, and FIFOs of single words that
    go from task to task."""
    regions = _flat(items)
    lut = ff = 0
    built = [_of(item, timed) for item in regions]
    for name in {name for units in built for name in units}:
        most = max(units[name] for units in built)
        sharing = (sum(units[name] > number for units in built) for number in range(most))
        lut += sum(3 * multiplexer(count + 1) for count in sharing if count > 1)
    met = Count(thing for item in regions for thing in touched(item))
    for array, count in met.items():
        if isinstance(array, KernelArray) and not array.registers and count > 1:
            lut += array.banks * 3 * multiplexer(count + 1)
    for item in regions:
        bodies = _tasks(item)
        if isinstance(item, DataflowRegion):
            more = starting(bodies)
            lut, ff = lut + more[0], ff + more[1]
        sent = Count(thing for body in bodies for thing in {one for part in body for one in touched(part)})
        for array, tasks in sent.items():
            if isinstance(array, KernelArray) and array.registers and not array.argument:
                one = fifo_area(2, array.bits)
                lut += one[0] * array.words * (tasks - 1)
                ff += one[1] * array.words * (tasks - 1)
        for body in bodies:
            more = _between(body, timed)
            lut, ff = lut + more[0], ff + more[1]
    return lut, ff


def starting(tasks: list[list[Region]]) -> LutsAndFlipFlops:
    """What starts tasks that read arguments together, and waits for those that write them: for each of the former two
    gates, and a register behind a multiplexer that says whether it has taken its start; csynth's tables of a dataflow
    top list these alone."""
    reading, writing = (
        sum(any(array.argument for array in arrays_of(task, op)) for task in tasks) for op in ("load", "store")
    )
    if reading < 2:
        return 0, 0
    return reading * (4 + multiplexer(2)) + 4 + 2 * (writing > 1), reading


def _tasks(item: Region) -> list[list[Region]]:
    """What runs one after the other in a region, for each of its tasks."""
    if isinstance(item, DataflowRegion):
        return [task.body for task in merged(item.tasks)]
    return [item.body] if isinstance(item, Again) else []


def _integer_products(item: Pipeline | Straight, timed: Timed, delays: Delays) -> Iterator[tuple[Operator, int]]:
    """Multipliers of integers, as many as start in one cycle; by a constant of few digits there is none.

    Of four slices that a product of 32 bits by 32 takes, the one of both upper halves is left out where nobody asks
    for them (3 DSPs, 165 flip-flops and 50 LUTs are what the tool says of mul_32s_32s_32_2_1).
    """
    found = timed.schedules[item]
    rows = Count(_lower_half(_multiplier(node, delays), node.bits) for node in found.starts if is_product(node))
    for row, uses in rows.items():
        yield row, -(-uses // max(1, found.ii))


def _multiplier(node: KernelValue, delays: Delays) -> Operator:
    wide = min(64, max(arg.bits for arg in node.args))
    if not any(arg.constant for arg in node.args):
        return delays.library.find("arith.muli", wide)
    narrow, wide = sorted(min(64, factor_bits(arg)) for arg in node.args)
    return delays.library.find("arith.muli", wide, narrower=narrow)


def _lower_half(row: Operator, bits: int) -> Operator:
    return replace(row, dsp=3) if row.dsp == 4 and bits <= row.bits else row
