"""An agent in a search: it asks for trials, tells each its setting, and the service evaluates it like any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.compiler.errors import nearest
from penstock.db import Transaction, lifecycle
from penstock.db.schema.records import Json, Run
from penstock.db.schema.states import RUN_TERMINAL, StepState
from penstock.services.jobs.quotas import NO_QUOTAS, Quotas
from penstock.services.jobs.refused import RefusedError
from penstock.services.jobs.runs import extend_run, find_run, no_run, no_trial
from penstock.services.step_kinds import EXPLORE, SPACE, STEP_KINDS, TO_BE_TOLD, TOLD, TRIAL, StepKey

_SHOWN = 200


def space_of_run(tx: Transaction, run: Run) -> Json:
    """What can be decided in a run's search, as its explore step left it."""
    step = tx.steps.by_key(run.id, EXPLORE)
    found = (step.result or {}).get(SPACE) if step is not None and step.state == StepState.SUCCEEDED else None
    if found is None:
        raise RefusedError(
            "no-search-yet", f"the search of run '{run.id}' has not begun", where="path",
            hint="wait until its explore step has succeeded" if run.state not in RUN_TERMINAL else "start another run",
        )  # fmt: skip
    return found


def ask_trials(
    tx: Transaction, run_id: str, count: int, most: int, quotas: Quotas = NO_QUOTAS
) -> tuple[Run, tuple[int, ...]]:
    """Further trials that wait for their settings, and so does the run's choice; also after its end."""
    run = tx.runs.lock(find_run(tx, run_id).id)
    if run is None:
        raise no_run(run_id)
    space_of_run(tx, run)
    first = tx.steps.next_number(run.id, TRIAL)
    run = extend_run(tx, run.id, count, most, quotas, told=True)
    return run, tuple(range(first, first + count))


def tell_trial(tx: Transaction, run_id: str, number: int, params: Mapping[str, Any] | None) -> None:
    """The setting of a trial that was asked for; with None the search's own sampler decides."""
    run = tx.runs.lock(find_run(tx, run_id).id)
    if run is None:
        raise no_run(run_id)
    key = str(StepKey(TRIAL, number))
    step = tx.steps.by_key(run.id, key)
    if step is None:
        raise no_trial(run_id, number)
    told: Json = {TOLD: None if params is None else _checked(params, space_of_run(tx, run))}
    if lifecycle.tell(tx, run.id, key, (TO_BE_TOLD, STEP_KINDS[TRIAL].queue), told):
        return
    if step.queue == TO_BE_TOLD:
        raise RefusedError(
            "run-finished", f"the run was stopped before trial {number} was told", where="path",
            hint="ask another run for trials",
        )  # fmt: skip
    if TOLD in step.payload:
        raise RefusedError(
            "trial-told", f"trial {number} was told its setting before", where="path",
            limit="the first answer stands", hint="ask for another trial",
        )  # fmt: skip
    raise RefusedError(
        "trial-not-asked", f"trial {number} is the search's own", where="path",
        limit="only trials that were asked for can be told", hint=f"POST /v1/runs/{run.id}/ask gives you some",
    )  # fmt: skip


def _checked(params: Mapping[str, Any], space: Json) -> dict[str, Any]:
    """Every value is one of its parameter's: of the same kind too, so that true is not 1, and nothing is NaN."""
    choices: dict[str, list[Any]] = {one["name"]: one["values"] for one in space["parameters"]}
    for name, value in params.items():
        values = choices.get(name)
        if values is None:
            raise RefusedError(
                "unknown-parameter", f"the space has no parameter {name[:60]!r}", where=f"body.params.{name[:60]}",
                limit=f"{len(choices)} parameters", hint=nearest(name, choices, "GET /v1/runs/{id}/space has them"),
            )  # fmt: skip
        if not any(type(one) is type(value) and one == value for one in values):
            raise RefusedError(
                "bad-parameter", f"{name} cannot be {repr(value)[:60]}", where=f"body.params.{name}",
                limit="choices: " + ", ".join(map(str, values))[:_SHOWN], hint="take one of the choices",
            )  # fmt: skip
    return dict(params)
