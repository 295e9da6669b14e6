"""What a kernel takes: operators as the tool shares them, address arithmetic, registers and control.

Regions that run one after the other share floating-point operators; tasks and regions at the same time have their own.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.records import Called, DataflowRegion, Pipeline, Region, Straight
from penstock.compiler.hls_in.timed import Timed, merged, touched
from penstock.compiler.schedule.library import Operator

_ROW = 9
"""LUTs of a multiplexer for 32 bits, for each operation that shares an operator beyond the first: two operands."""


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
    control = delays.library.control
    for item in timed.schedules:
        dsp += timed.schedules[item].addresses.dsp
        more = _fabric(item, timed, delays)
        lut += more[0]
        ff += more[1]
        for row, count in _integer_products(item, timed, delays):
            dsp += count * row.dsp
            lut += count * row.lut
            ff += count * row.ff
        if isinstance(item, Pipeline):
            bits = sum(max(1, c.trip.bit_length()) for c in item.counters)
            lut += control.lut + control.lut_per_counter_bit * bits
            ff += control.ff + control.ff_per_counter_bit * bits
    bram = 0
    for array in timed.kernel.arrays:
        if array.argument or array.registers:
            continue
        words = -(-array.words // max(1, array.banks))
        if words > 64:
            rounded = 1 << (words - 1).bit_length() if words <= 8192 else words
            double = 2 if array.name in timed.channels else 1
            bram += array.banks * max(1, round(rounded * -(-array.bits // 18) / 1024)) * double
    return Area(dsp, lut, ff, bram)


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


def _integer_products(item: Pipeline | Straight, timed: Timed, delays: Delays) -> Iterator[tuple[Operator, int]]:
    """Multipliers of integers, as many as start in one cycle; those by a constant are additions of shifted values."""
    found = timed.schedules[item]
    rows = Count(
        delays.library.find("arith.muli", min(64, max(arg.bits for arg in node.args)))
        for node in found.starts
        if node.op == "mul"
        and node.kind in ("int", "fixed")
        and node.linear is None
        and not any(a.constant for a in node.args)
    )
    for row, uses in rows.items():
        yield row, -(-uses // max(1, found.ii))


def _fabric(item: Pipeline | Straight, timed: Timed, delays: Delays) -> tuple[int, int]:
    """LUTs and flip-flops of what is no operator of its own: multiplexers of shared operators, values that wait."""
    found = timed.schedules[item]
    lut = ff = 0
    uses = Count(name for node in found.starts if (name := delays.unit(node, False)) is not None)
    if found.ii > 1:
        for name, count in uses.items():
            units = found.units.get(name, 0)
            lut += 2 * _ROW * max(0, count - units)
    last: dict[object, int] = {}
    for node, start in found.starts.items():
        for arg in node.args:
            if arg in found.starts and not arg.constant:
                last[arg] = max(last.get(arg, 0), start)
    for node in found.starts:
        if node in last and node.op not in ("counter", "const") and node.linear is None:
            waits = last[node] - found.starts[node] - delays.stages(node)
            ff += node.bits * min(max(0, waits), 2)
            lut += node.bits if waits > 3 else 0
        if node.op == "select":
            lut += node.bits
    return lut, ff
