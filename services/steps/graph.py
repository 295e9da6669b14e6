"""The steps of a run: import, explore (which fans out into trials), select, verify, package.

Where tools that take long measure the best designs, `shortlist` stands before `select` and fans out into a step for
each; where a platform with a shell gets a bitstream by v++, `link` stands before `package`.

Light to import, since the API makes the graph: bodies, compiler and tools live elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.db.schema.records import Model, NewStep
from penstock.services.bitstreams import measured_in_steps, wants_link
from penstock.services.step_kinds import (
    ARRAY,
    CHECK,
    EXPLORE,
    FIRST_TURN,
    IMPORT,
    KERNEL,
    LINK,
    MEASURE,
    PACKAGE,
    REPLAY,
    SELECT,
    SHORTLIST,
    STEP_KINDS,
    TO_BE_TOLD,
    TRIAL,
    VERIFY,
    WHAT_IF,
    StepKey,
)

GIVEN = "given"
"""In the payload of steps of a run that was given its design: which."""


def run_steps(model: Model, options: Mapping[str, Any], turn: int = FIRST_TURN) -> tuple[NewStep, ...]:
    """What a run of a model begins with. `options` stay with the run, where every body finds them."""
    if model.kind == KERNEL:
        return (_step(IMPORT), _step(KERNEL, needs=(IMPORT,)), _step(PACKAGE, needs=(KERNEL,)))
    measured, linked = measured_in_steps(options), wants_link(options)
    shortlist = (_step(SHORTLIST, needs=(EXPLORE,), turn=turn),) if measured else ()
    link = (_step(LINK, needs=(VERIFY,), turn=turn),) if linked else ()
    # the chosen design is synthesised once more, with its FIFOs sized, where the tools are
    select = _step(SELECT, needs=(SHORTLIST if measured else EXPLORE,), turn=turn)
    return (
        _step(IMPORT),
        _step(EXPLORE, needs=(IMPORT,)),
        *shortlist,
        replace(select, queue=STEP_KINDS[MEASURE].queue, licence=STEP_KINDS[MEASURE].licence) if measured else select,
        _step(VERIFY, needs=(SELECT,), turn=turn),
        *link,
        _step(PACKAGE, needs=(VERIFY, LINK) if linked else (VERIFY,), turn=turn),
    )


def _step(
    kind: str, number: int | None = None, *, needs: tuple[str, ...] = (), turn: int = FIRST_TURN, **fields: Any
) -> NewStep:
    """A step of one kind, in the queue that the table says; it needs what it names of its own turn."""
    facts = STEP_KINDS[kind]
    key = StepKey(kind, number).in_turn(turn)
    payload = fields.pop("payload", {}) | ({} if key.turn == FIRST_TURN else {"turn": turn})
    return NewStep(
        kind, str(key), facts.queue, payload, tuple(in_turn(need, turn) for need in needs),
        may_fail=facts.may_fail, licence=facts.licence, **fields,
    )  # fmt: skip


def trial_steps(
    count: int,
    options: Mapping[str, Any] | None = None,
    *,
    first: int = 0,
    turn: int = FIRST_TURN,
    needs: tuple[str, ...] = (),
    told: bool = False,
) -> tuple[NewStep, ...]:
    """One step a trial. A trial that fails costs itself only; what looks at the best of them sees what there is.

    Those that are to be `told` their setting wait in a queue that nobody serves.
    """
    after = str(last_before_choice(options or {}).in_turn(turn))
    queue = TO_BE_TOLD if told else STEP_KINDS[TRIAL].queue
    return tuple(
        replace(_step(TRIAL, number, payload={"number": number}, needed_by=(after,)), needs=needs, queue=queue)
        for number in range(first, first + count)
    )


def last_before_choice(options: Mapping[str, Any]) -> StepKey:
    """The step that waits for all trials."""
    return StepKey(SHORTLIST if measured_in_steps(options) else SELECT)


def measure_steps(trials: Sequence[int], turn: int = FIRST_TURN) -> tuple[NewStep, ...]:
    """One step for each design that is worth a tool's time, under its trial's number. One that fails costs itself."""
    return tuple(
        _step(
            MEASURE, number, turn=turn, payload={"number": number, "turn": turn}, needed_by=(in_turn(SELECT, turn),)
        )
        for number in trials
    )  # fmt: skip


def replay_steps(run_id: str, number: int) -> tuple[NewStep, ...]:
    """A run that evaluates a trial of another run again, and nothing else."""
    return (_step(REPLAY, payload={"run": run_id, "number": number}),)


def what_if_steps(run_id: str, design: str, program: str, changes: Mapping[str, Any]) -> tuple[NewStep, ...]:
    """A run that says what changes of another run's design would do. Design and program are named by their content."""
    payload = {"run": run_id, "design": design, "program": program, "changes": dict(changes)}
    return (_step(WHAT_IF, payload=payload),)


def given_steps(model: Model, options: Mapping[str, Any], run_id: str, design: str) -> tuple[NewStep, ...]:
    """A run that searches nothing: it takes a design of another run, finishes, checks and packs it."""
    payload = {GIVEN: {"run": run_id, "design": design}}
    steps = [step for step in run_steps(model, options) if step.kind != SHORTLIST]
    takes = {EXPLORE: (IMPORT,), SELECT: (EXPLORE,)}
    return tuple(
        replace(step, payload=payload, needs=takes[step.kind]) if step.kind in takes else step for step in steps
    )


def check_steps() -> tuple[NewStep, ...]:
    """A run that says what is known of its model before any search, and searches nothing."""
    return (_step(IMPORT), _step(CHECK, needs=(IMPORT,)))


def array_steps(asked: Mapping[str, Any]) -> tuple[NewStep, ...]:
    """A run that makes an array of cores for its model, a kernel in the shapes that are asked for."""
    return (_step(ARRAY, payload={"asked": dict(asked)}),)


def in_turn(key: str, turn: int) -> str:
    """What a step of this key is called in a turn."""
    return str(StepKey.parse(key).in_turn(turn))


def choosing_steps(model: Model, options: Mapping[str, Any], turn: int) -> tuple[NewStep, ...]:
    """All that comes after the trials, once more."""
    return tuple(step for step in run_steps(model, options, turn) if STEP_KINDS[step.kind].chooses)
