"""The steps of a run: import, explore (which fans out into trials), select, verify, package.

Where tools that take long measure the best designs, `shortlist` stands before `select` and fans out into a step for
each; where a platform with a shell gets a bitstream by v++, `link` stands before `package`.

Light to import, since the API makes the graph: bodies, compiler and tools live elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.compiler.platforms import load_platform
from penstock.db.schema.records import Model, NewStep

IMPORT, EXPLORE, TRIAL, SELECT, VERIFY, PACKAGE = "import", "explore", "trial", "select", "verify", "package"
SHORTLIST, MEASURE, LINK, REPLAY = "shortlist", "measure", "link", "replay"

MEASURED_IN_STEPS = ("csynth", "cosim")
"""Evidence that takes a tool minutes to hours a design: several workers share the work, each with its licence."""

FIRST_TURN = 1
"""Trials that are added after a design was chosen begin another turn: its choice, its check and its package."""

NO_BITSTREAM, HARDWARE = "none", "hw"


def run_steps(model: Model, options: Mapping[str, Any]) -> tuple[NewStep, ...]:
    """What a run of a model begins with. `options` stay with the run, where every body finds them."""
    measured = measured_in_steps(options)
    linked = wants_link(options)
    shortlist = (NewStep(SHORTLIST, SHORTLIST, "explore", needs=(EXPLORE,)),) if measured else ()
    link = (NewStep(LINK, LINK, "build", needs=(VERIFY,), may_fail=True),) if linked else ()
    return (
        NewStep(IMPORT, IMPORT, "import"),
        NewStep(EXPLORE, EXPLORE, "explore", needs=(IMPORT,)),
        *shortlist,
        # the chosen design is synthesised once more, with its FIFOs sized, where the tools are
        NewStep(SELECT, SELECT, "profile" if measured else "explore", needs=(SHORTLIST if measured else EXPLORE,)),
        NewStep(VERIFY, VERIFY, "build", needs=(SELECT,)),
        *link,
        NewStep(PACKAGE, PACKAGE, "build", needs=(VERIFY, LINK) if linked else (VERIFY,)),
    )


def measured_in_steps(options: Mapping[str, Any]) -> bool:
    return options.get("evidence") in MEASURED_IN_STEPS


def bitstream_target(options: Mapping[str, Any]) -> str:
    """hw, hw_emu or none. Asked for nothing, a run whose evidence has the tools at hand builds what a card takes."""
    asked = options.get("bitstream")
    return str(asked) if asked else HARDWARE if measured_in_steps(options) else NO_BITSTREAM


def wants_link(options: Mapping[str, Any]) -> bool:
    """Whether there is something for v++ to do. That its tools are not there the step says itself."""
    if bitstream_target(options) == NO_BITSTREAM or not options.get("platform"):
        return False
    platform = load_platform(str(options["platform"]))
    return bool(platform.shell) and platform.board is None  # a board has a shell of ours, and its own builder


def trial_steps(
    count: int,
    options: Mapping[str, Any] | None = None,
    *,
    first: int = 0,
    turn: int = FIRST_TURN,
    needs: tuple[str, ...] = (),
) -> tuple[NewStep, ...]:
    """One step a trial. A trial that fails costs itself only; what looks at the best of them sees what there is."""
    after = in_turn(SHORTLIST if measured_in_steps(options or {}) else SELECT, turn)
    return tuple(
        NewStep(TRIAL, f"{TRIAL}/{number:04d}", "explore", {"number": number}, needs, (after,), may_fail=True)
        for number in range(first, first + count)
    )


def measure_steps(trials: Sequence[int], turn: int = FIRST_TURN) -> tuple[NewStep, ...]:
    """One step for each design that is worth a tool's time, under its trial's number. One that fails costs itself."""
    return tuple(
        NewStep(
            MEASURE, in_turn(f"{MEASURE}/{number:04d}", turn), "profile", {"number": number, "turn": turn},
            needed_by=(in_turn(SELECT, turn),), may_fail=True,
        )
        for number in trials
    )  # fmt: skip


def replay_steps(run_id: str, number: int) -> tuple[NewStep, ...]:
    """A run that evaluates a trial of another run again, and nothing else."""
    return (NewStep(REPLAY, REPLAY, "explore", {"run": run_id, "number": number}),)


def in_turn(key: str, turn: int) -> str:
    """What a step is called when trials were added after a choice, so that one chooses again."""
    return key if turn == FIRST_TURN else f"{key}@{turn}"


def choosing_steps(model: Model, options: Mapping[str, Any], turn: int) -> tuple[NewStep, ...]:
    """All that comes after the trials, once more."""
    again = [step for step in run_steps(model, options) if step.kind not in (IMPORT, EXPLORE)]
    return tuple(
        replace(
            step, key=in_turn(step.key, turn), payload={**step.payload, "turn": turn},
            needs=tuple(need if need in (IMPORT, EXPLORE) else in_turn(need, turn) for need in step.needs),
        )
        for step in again
    )  # fmt: skip
