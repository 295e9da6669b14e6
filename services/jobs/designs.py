"""A design of a run, asked about and taken up: what changes of it would do, and a run that takes it as it is."""

from __future__ import annotations

import json

from penstock.compiler.design import Design
from penstock.db import Transaction, lifecycle
from penstock.db.schema.records import Artifact, Run
from penstock.services.jobs.changes import DesignChanges, changed, read_changes
from penstock.services.jobs.quotas import NO_QUOTAS, Quotas, check_quotas
from penstock.services.jobs.refused import RefusedError
from penstock.services.jobs.runs import check_waiting, find_run, no_run
from penstock.services.run_options import EXTENDED, LONGEST_NAME
from penstock.services.step_kinds import EXPLORE, WHAT_IF
from penstock.services.steps.graph import given_steps, what_if_steps
from penstock.services.store import ContentStore, MissingContentError

DESIGN, PREPARED = "design.json", "prepared"
_SOON = 10
"""The priority of a question that somebody waits for, among the runs of its owner."""


def ask_what_if(
    tx: Transaction, store: ContentStore, run_id: str, changes: DesignChanges, *, owner: str | None,
    most_waiting: int, quotas: Quotas = NO_QUOTAS,
) -> Run:  # fmt: skip
    """A run that says what the changes would do. Asked of such a run, they are added to the changes that it has."""
    check_quotas(tx, owner, quotas, runs=1)
    check_waiting(tx, most_waiting, owner)
    run = find_run(tx, run_id)
    asked = tx.steps.by_key(run.id, WHAT_IF)
    if asked is not None:
        base, design, program = (str(asked.payload[name]) for name in ("run", "design", "program"))
        changes = changes.after(read_changes(asked.payload["changes"]))
    else:
        prepared = _program_of(tx, run)
        base, design, program = run.id, _design_of(tx, run).sha256, prepared.sha256
    changed(_read(store, design), changes)
    return lifecycle.submit(
        tx,
        model_id=run.model_id,
        name=_named("what if of ", run, asked is not None),
        steps=what_if_steps(base, design, program, changes.model_dump(mode="json", exclude_none=True)),
        options=_options(run),
        owner=owner,
        priority=_SOON,
    )


def take_design(
    tx: Transaction, run_id: str, *, owner: str | None, most_waiting: int, quotas: Quotas = NO_QUOTAS
) -> Run:
    """A run of exactly the design that another run has: it is finished, checked and packed, and nothing is searched."""
    check_quotas(tx, owner, quotas, runs=1)
    check_waiting(tx, most_waiting, owner)
    run = find_run(tx, run_id)
    model, design = tx.models.get(run.model_id), _design_of(tx, run)
    if model is None:
        raise no_run(run_id)
    name = run.name.removeprefix("what if of ") + ", changed" if tx.steps.by_key(run.id, WHAT_IF) else run.name
    options = _options(run)
    return lifecycle.submit(
        tx, model_id=model.id, name=name[:LONGEST_NAME], steps=given_steps(model, options, run.id, design.sha256),
        options=options, owner=owner,
    )  # fmt: skip


def _options(run: Run) -> dict[str, object]:
    """Those that say what a design is for; how much was searched does not."""
    return {name: value for name, value in run.options.items() if name not in ("trials", EXTENDED)}


def _named(prefix: str, run: Run, again: bool) -> str:
    return (run.name if again else prefix + run.name)[:LONGEST_NAME]


def _design_of(tx: Transaction, run: Run) -> Artifact:
    """Of several choices the last one counts; the newest comes first."""
    return _artifact(tx, run, DESIGN, "has no design: none was chosen yet, or the change was refused")


def _program_of(tx: Transaction, run: Run) -> Artifact:
    step = tx.steps.by_key(run.id, EXPLORE)
    found = tx.artifacts.by_name(step.id, PREPARED) if step is not None else None
    return found or _artifact(tx, run, PREPARED, "never came to its search")


def _artifact(tx: Transaction, run: Run, name: str, otherwise: str) -> Artifact:
    found = next((file for file in tx.artifacts.list(run.id, limit=500).items if file.name == name), None)
    if found is None:
        raise RefusedError(
            "no-design", f"run '{run.id}' {otherwise}", where="path",
            hint="wait until the run has chosen, or name another one",
        )  # fmt: skip
    return found


def _read(store: ContentStore, sha256: str) -> Design:
    try:
        return Design.from_json(json.loads(store.read_bytes(sha256)))
    except MissingContentError as error:
        raise RefusedError(
            "artifact-gone", "the record of the design is no longer in the store", where="path",
            hint="start the run again",
        ) from error  # fmt: skip
