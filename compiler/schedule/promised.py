"""The schedule of a task whose body was written by hand: what its contract says, at the rounds of the task's loops."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.dialects.injected import IN_WORDS, Injected
from penstock.compiler.platforms import Resources
from penstock.compiler.schedule.library import OperatorLibrary
from penstock.compiler.schedule.records import Bound, NestSchedule


def as_promised(schedule: NestSchedule, body: Injected, library: OperatorLibrary) -> NestSchedule:
    """A round enters every II cycles, takes its tokens together when it enters, and gives them in its last stage."""
    last, first = body.depth - 1, min(library.read_stage, body.depth - 1)
    ports = tuple(replace(port, stage=last if port.direction == "write" else first) for port in schedule.ports)
    reason = f"II = {body.ii}: the contract of {body.name}, written in {IN_WORDS[body.language]}"
    return replace(
        schedule, ii=body.ii, bounds=(Bound("pipeline", body.ii, reason),), depth=body.depth, stages=(), ports=ports,
        memories=(), logic=Resources(body.lut, body.ff, body.dsp, body.bram18), flushes=library.flushing,
    )  # fmt: skip
