"""The loops of a nest, whose trips may follow from lengths that a call says.

Vitis flattens a nest only where all trips but the outermost are constants, and without that the pipeline drains at the
end of each inner loop. So where an inner trip is not constant, one loop goes through all places and counts them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from penstock.compiler.backend.hls.lines import CppLines
from penstock.compiler.dialects.nest import Loop


def trips_of(loop: Loop, lengths: Mapping[str, str]) -> str:
    return loop.count.text(lengths) if loop.count else str(loop.trip)


def open_loops(
    out: CppLines,
    loops: Sequence[Loop],
    split: int,
    label: str,
    lengths: Mapping[str, str],
    locks: Callable[[], None],
    fresh: Callable[[str], str],
) -> Callable[[], None]:
    """Opens the loops; what it returns closes them, once the body is written."""
    for loop in loops[:split]:
        _nested(out, loop, "", lengths)
    locks()
    inner = loops[split:]
    if not any(loop.count for loop in inner[1:]):
        for position, loop in enumerate(inner):
            _nested(out, loop, f"{label}_{loop.name}: " if position == len(inner) - 1 else "", lengths)
        return lambda: _close(out, len(loops))
    slot, slots = fresh("slot"), fresh("slots")
    sizes = [f"({trips})" if " " in (trips := trips_of(loop, lengths)) else trips for loop in inner]
    out.add(f"const int {slots} = {' * '.join(sizes)};")
    out.add(f"int {', '.join(f'{loop.name} = 0' for loop in inner)};")
    out.add(f"{label}_{inner[-1].name}: for (int {slot} = 0; {slot} < {slots}; ++{slot}) {{")
    out.indent += 1
    out.add(f"#pragma HLS LOOP_TRIPCOUNT max={prod(loop.trip for loop in inner)}")

    def close() -> None:
        for position, loop in enumerate(reversed(inner)):
            if position == len(inner) - 1:
                out.add(f"++{loop.name};")
                break
            out.add(f"if (++{loop.name} == {trips_of(loop, lengths)}) {{")
            out.indent += 1
            out.add(f"{loop.name} = 0;")
        _close(out, len(inner) - 1)
        _close(out, 1 + split)

    return close


def _nested(out: CppLines, loop: Loop, label: str, lengths: Mapping[str, str]) -> None:
    out.add(f"{label}for (int {loop.name} = 0; {loop.name} < {trips_of(loop, lengths)}; ++{loop.name}) {{")
    out.indent += 1
    if loop.count:
        out.add(f"#pragma HLS LOOP_TRIPCOUNT max={loop.trip}")


def _close(out: CppLines, count: int) -> None:
    for _ in range(count):
        out.indent -= 1
        out.add("}")
