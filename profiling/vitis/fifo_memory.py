"""Block RAMs of FIFOs, computed: csynth counts one for any FIFO in block RAM, however deep it is.

In 28,000 memories of public reports the count of buffers follows from their words and bits; that of FIFOs does not.
The same geometry is applied to FIFOs here, and the difference is added to what the report says is used.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.schedule import bram18_count
from penstock.profiling.vitis.records import ReportedFifo, SynthesisReport

_IN_LOGIC = frozenset({"srl", "lutram", "uram"})


def fifo_bram18(fifo: ReportedFifo) -> int | None:
    """What a FIFO takes: the report's count or, if that is too low for its depth and width, the computed one."""
    reported = fifo.used.bram18
    if not reported or fifo.depth is None or fifo.bits is None or (fifo.implementation or "").lower() in _IN_LOGIC:
        return reported
    return max(reported, bram18_count(fifo.depth, fifo.bits))


def with_fifo_memory(report: SynthesisReport) -> SynthesisReport:
    """The report with the memory that its FIFOs will take; a note says how much was added."""
    fifos = tuple(replace(fifo, used=replace(fifo.used, bram18=fifo_bram18(fifo))) for fifo in report.fifos)
    reported, computed = _blocks(report.fifos), _blocks(fifos)
    if computed == reported or report.used.bram18 is None:
        return report
    note = f"block RAMs of FIFOs: {computed}, computed from depth and width, for the report's {reported}"
    used = replace(report.used, bram18=report.used.bram18 + computed - reported)
    return replace(report, fifos=fifos, used=used, notes=(*report.notes, note))


def _blocks(fifos: tuple[ReportedFifo, ...]) -> int:
    return sum(fifo.used.bram18 or 0 for fifo in fifos)
