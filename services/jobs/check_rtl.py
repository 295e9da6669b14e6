"""The design's SystemVerilog beside the interpreter and the compiled C++, and the times it takes: `open-rtl`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.compiler.arrays import Array
from penstock.compiler.evidence import Evidence
from penstock.compiler.package.report import RtlCheck, TimeFigures
from penstock.compiler.pipeline.verify import Comparison, compare, verify_rtl
from penstock.dse.rungs import FRAMES, usable
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.services.jobs.scheduled import Scheduled

MOST_CYCLES = 3_000_000
"""Of simulated clock for the held-out set: seconds for a small core, a minute or two for a large one."""


def core_of_design(scheduled: Scheduled, evidence: Evidence, emitted: Path) -> WholeCore | None:
    """The core, written beside the C++, where open-rtl figures are wanted and can be had."""
    rung, _ = usable(evidence, scheduled.platform, scheduled.lowered.design.clock_mhz)
    if rung != "open-rtl":
        return None
    scheduled.core.design.write(emitted / "rtl")
    return scheduled.core


def check_rtl(
    core: WholeCore,
    inputs: Sequence[Sequence[Array]],
    held_out: Sequence[Sequence[Array]],
    csim: Sequence[Sequence[Array]],
) -> RtlCheck:
    """Run `inputs`, and as much of the held-out set as time allows, whose answers are `csim`'s."""
    run = core.run(inputs[0], frames=FRAMES)
    core.check(run)
    assert run.latency is not None
    frames = held_out[: MOST_CYCLES // max(1, run.latency)]
    answers = core.answers([*inputs, *frames])
    found = [verify_rtl(core.lowered, answers[: len(inputs)], inputs)]
    if frames:
        got, wanted = answers[len(inputs) :], csim[: len(frames)]
        found.append(compare("open-rtl", "csim", _flat(got), _flat(wanted), found[0].tolerance))
    return _section(found, len(answers), run.latency, run.initial_delay, run.interval)


def _section(
    found: Sequence[Comparison], samples: int, latency: int, delay: int | None, interval: int | None
) -> RtlCheck:
    tolerance = found[0].tolerance
    return RtlCheck(
        ok=all(c.equal for c in found),
        values=sum(c.values for c in found),
        bits_equal=sum(c.bits_equal for c in found),
        within_tolerance=sum(c.within_tolerance for c in found),
        samples=samples,
        max_abs_error=max(c.max_difference for c in found),
        tolerance=tolerance,
        evidence="open-rtl",
        times=TimeFigures(
            evidence="open-rtl", latency_cycles=latency, initial_delay_cycles=delay, interval_cycles=interval
        ),
        note="bit for bit" if tolerance == 0 else f"within {tolerance:g} of the largest output",
    )


def _flat(sets: Sequence[Sequence[Any]]) -> list[Any]:
    return [array for one in sets for array in one]
