"""From database records to what the API gives: one function for each kind of document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from penstock.compiler.evidence import EVIDENCE
from penstock.db import Transaction
from penstock.db.lifecycle import Submitted
from penstock.db.repositories.trial_pages import TrialTally
from penstock.db.repositories.trials import BestTrial, TrialRow
from penstock.db.schema.records import Artifact, Attempt, Event, Json, Model, Run, Step
from penstock.db.schema.states import RUN_TERMINAL, RunState, StepState
from penstock.dse.evaluation.objectives import DEFAULT_OBJECTIVES, OBJECTIVES
from penstock.services.api.answers.estimates import estimate_of
from penstock.services.api.answers.schemas import (
    ArtifactOut,
    AttemptOut,
    Best,
    Chosen,
    ErrorOut,
    EventOut,
    LogOut,
    ModelOut,
    ModelRef,
    Progress,
    RunDetail,
    RunOut,
    StepOut,
    TrialDetail,
    TrialOut,
)
from penstock.services.api.answers.waiting import waiting_for
from penstock.services.run_options import EXTENDED
from penstock.services.run_summary import RunSummary
from penstock.services.step_kinds import EXPLAINED, TRIAL, StepKey


def model_out(model: Model) -> ModelOut:
    fields = ("id", "name", "owner", "kind", "source", "sha256", "size", "created_at")
    known = {field: getattr(model, field) for field in fields}
    return ModelOut.model_validate(known | {"url": f"/v1/models/{model.id}"})


def error_out(error: Json | None) -> ErrorOut | None:
    """An error as it was recorded; whatever lacks a code or a sentence still says so."""
    if error is None:
        return None
    fields: dict[str, Any] = {
        name: str(error[name]) for name in ("where", "limit", "hint", "log_tail") if error.get(name)
    }
    if isinstance(others := error.get("others"), list):
        fields["others"] = [str(line) for line in cast("list[object]", others)]
    return ErrorOut(
        code=str(error.get("code") or "unknown"),
        what=str(error.get("what") or "no reason was recorded"),
        **fields,
    )


def run_list(tx: Transaction, runs: Sequence[Run]) -> list[RunOut]:
    """Runs with their models, progress and best trials, in a fixed number of queries.

    Runs that have chosen show that: for the best trial all trials of a run must be read.
    """
    ids = [run.id for run in runs]
    tallies = tx.trial_pages.tally([run.id for run in runs if run.state not in RUN_TERMINAL])
    models = tx.models.by_ids(sorted({run.model_id for run in runs}))
    counts = tx.steps.counts_by_kind(ids)
    best = best_trials(tx, [run for run in runs if _chosen(run) is None])
    return [
        RunOut.model_validate(
            _run_fields(run, models[run.model_id], counts[run.id], best.get(run.id), tallies.get(run.id))
        )
        for run in runs
    ]


def best_trials(tx: Transaction, runs: Sequence[Run]) -> dict[str, BestTrial]:
    """For each run its best trial by what it wants first; a query for each such figure."""
    by_figure: dict[str, list[str]] = {}
    for run in runs:
        by_figure.setdefault(first_figure(run), []).append(run.id)
    found: dict[str, BestTrial] = {}
    for figure, ids in by_figure.items():
        found |= tx.trials.best(ids, figure, EVIDENCE)
    return found


def first_figure(run: Run) -> str:
    """The figure of the objective that decides; a run of an older release may name one that is no more."""
    asked = run.options.get("objectives") or DEFAULT_OBJECTIVES
    return OBJECTIVES[asked[0] if asked[0] in OBJECTIVES else DEFAULT_OBJECTIVES[0]].figure


def submitted_run(made: Submitted, model: Model) -> RunDetail:
    """A run that was submitted in this moment: all that there is to know of it is at hand."""
    counts = Counter((step.kind, step.state) for step in made.steps)
    fields = _run_fields(made.run, model, counts, None, None)
    return RunDetail.model_validate(
        fields
        | {
            "estimate": None,
            "notes": made.run.notes,
            "summary": dict(made.run.summary),
            "logs": [],
            "steps": [step_out(step, ()) for step in made.steps],
            "waiting_for": "",
            "last_event_id": made.last_event_id,
        }
    )


def run_detail(tx: Transaction, run: Run, *, estimated: bool = False) -> RunDetail:
    """One run with its steps (trials have a list of their own) and what it waits for.

    `estimated` adds when it may end, which takes a few more queries: for whoever looks, not for whoever changes it.
    """
    # The event id is read first: whoever follows from it may see a change twice, but never misses one.
    last_event_id = tx.events.newest_id(run.id)
    steps = tx.steps.list_except(run.id, TRIAL)
    model = tx.models.by_ids([run.model_id])[run.model_id]
    counts = tx.steps.counts_by_kind([run.id])[run.id]
    found = counts.get((TRIAL, StepState.SUCCEEDED), 0)
    best = best_trials(tx, [run]).get(run.id) if found else None
    tally = tx.trial_pages.tally([run.id]).get(run.id)
    attempts = tx.attempts.of_steps([step.id for step in steps if step.fence])
    logs = tx.step_logs.running(run.id) if run.state == RunState.RUNNING else ()
    fields = _run_fields(run, model, counts, best, tally)
    return RunDetail.model_validate(
        fields
        | {
            "estimate": estimate_of(tx, run, steps, fields["progress"]) if estimated else None,
            "notes": run.notes,
            "summary": dict(run.summary),
            "logs": [LogOut.model_validate(log) for log in logs],
            "steps": [step_out(step, attempts.get(step.id, ())) for step in steps],
            "waiting_for": waiting_for(tx, run, steps, counts),
            "last_event_id": last_event_id,
        }
    )


def step_out(step: Step, attempts: Sequence[Attempt]) -> StepOut:
    return StepOut(
        id=step.id,
        kind=step.kind,
        key=step.key,
        queue=step.queue,
        state=step.state,  # pyright: ignore[reportArgumentType]
        attempt=step.attempt,
        max_attempts=step.max_attempts,
        worker=step.owner,
        lease_until=step.lease_until,
        reused=step.reused_from is not None,
        progress=step.progress,
        progress_text=step.progress_text,
        error=error_out(step.error),
        attempts=[
            AttemptOut(
                number=attempt.number,
                worker=attempt.worker,
                started_at=attempt.started_at,
                finished_at=attempt.finished_at,
                outcome=attempt.outcome,
                error=error_out(attempt.error),
            )
            for attempt in attempts
        ],
        queued_at=step.queued_at,
        started_at=step.started_at,
        finished_at=step.finished_at,
    )


def trial_out(row: TrialRow, chosen: int | None) -> TrialOut:
    """A trial's step and what it found. A step that succeeded without a summary cannot be."""
    number = row.number if row.number is not None else trial_number(row.key)
    return TrialOut(
        number=number,
        state=row.state if row.state is not None else trial_state(row.step_state),  # pyright: ignore[reportArgumentType]
        chosen=chosen is not None and number == chosen,
        params=dict(row.params or {}),
        figures=dict(row.figures or {}),
        evidence=row.evidence,
        seconds=row.seconds,
        attempt=row.attempt,
        worker=row.owner,
        error=error_out(row.error),
        created_at=row.created_at,
        origin=row.origin or "",
        version=row.version or "",
    )


def trial_detail(row: TrialRow, chosen: int | None, design: Json | None, why: Json | None = None) -> TrialDetail:
    """A trial with its design, once it has one, and `why` it is as it is, from the result of its step."""
    known = trial_out(row, chosen).model_dump() | {"design": dict(design) if design is not None else None}
    return TrialDetail.model_validate(known | {n: v for n, v in (why or {}).items() if n in EXPLAINED})


def artifact_out(artifact: Artifact, steps: Mapping[str, str]) -> ArtifactOut:
    return ArtifactOut(
        id=artifact.id,
        name=artifact.name,
        step=steps.get(artifact.step_id, ""),
        sha256=artifact.sha256,
        size=artifact.size,
        media_type=artifact.media_type,
        created_at=artifact.created_at,
        url=f"/v1/artifacts/{artifact.id}",
    )


def event_out(event: Event) -> EventOut:
    return EventOut(id=event.id, kind=event.kind, at=event.at, data=dict(event.data), actor=event.actor)


def chosen_trial(run: Run) -> int | None:
    """The number of the trial that the run settled on."""
    return RunSummary.read(run.summary).chosen_trial


def trial_number(key: str) -> int:
    """7 of `trial/0007`."""
    number = StepKey.parse(key).number
    return -1 if number is None else number


def trial_state(step_state: str) -> str:
    """The state of a trial that has found nothing, from its step's."""
    return "complete" if step_state == StepState.SUCCEEDED else step_state


def _run_fields(
    run: Run,
    model: Model,
    counts: Mapping[tuple[str, str], int],
    best: BestTrial | None,
    tally: TrialTally | None,
) -> dict[str, Any]:
    fields = ("id", "name", "state", "owner", "pinned", "tags", "paused", "created_at", "started_at", "finished_at")
    return {field: getattr(run, field) for field in fields} | {
        "model": ModelRef(id=model.id, name=model.name, kind=model.kind, url=f"/v1/models/{model.id}"),
        "options": dict(run.options),
        "progress": _progress(run, counts, tally),
        "best": _best(best),
        "chosen": _chosen(run),
        "error": error_out(run.error),
        "url": f"/v1/runs/{run.id}",
        "page": f"/runs/{run.id}",
    }


def _best(best: BestTrial | None) -> Best | None:
    if best is None:
        return None
    return Best(
        trial=best.number,
        latency=_number(best.figures.get("latency_cycles")),
        latency_us=_number(best.figures.get("latency_us")),
        resource_share=_number(best.figures.get("resource_share")),
        evidence=best.evidence,
    )


def _chosen(run: Run) -> Chosen | None:
    """From the summary that choosing leaves behind; whatever lacks a figure shows none."""
    found = RunSummary.read(run.summary)
    if (
        (found.chosen_trial is None and found.design_of is None)
        or found.latency_cycles is None
        or found.latency_us is None
    ):
        return None
    return Chosen(
        trial=found.chosen_trial,
        latency=found.latency_cycles,
        latency_us=found.latency_us,
        evidence=found.evidence or "modelled",
        resource_share=found.resource_share,
        share_evidence=found.share_evidence or "modelled",
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _progress(run: Run, counts: Mapping[tuple[str, str], int], tally: TrialTally | None) -> Progress:
    trials = {state: count for (kind, state), count in counts.items() if kind == TRIAL}
    steps = dict.fromkeys(StepState, 0)
    for (kind, state), count in counts.items():
        if kind != TRIAL:
            steps[StepState(state)] += count
    known = sum(trials.values())
    done = trials.get(StepState.SUCCEEDED, 0) + trials.get(StepState.FAILED, 0)
    total = max(_asked_trials(run), known) if run.state not in RUN_TERMINAL else known
    pace = _trials_a_second(run, tally)
    return Progress(
        steps_done=steps[StepState.SUCCEEDED],
        steps_total=sum(steps.values()),
        trials_done=done,
        trials_failed=trials.get(StepState.FAILED, 0),
        trials_infeasible=tally.infeasible if tally else None,
        trials_running=trials.get(StepState.RUNNING, 0),
        trials_total=total,
        trials_per_minute=round(60 * pace, 3) if pace else None,
        seconds_left=round((total - done) / pace, 1) if pace and total > done else None,
    )


def _trials_a_second(run: Run, tally: TrialTally | None) -> float | None:
    """Of late; None where nothing ended in these minutes, or nothing is meant to."""
    if tally is None or run.paused or run.state not in (RunState.QUEUED, RunState.RUNNING):
        return None
    return tally.recent / tally.recent_seconds if tally.recent > 1 and tally.recent_seconds > 0 else None


def _asked_trials(run: Run) -> int:
    """Those of the start and those that were added; a grid may have fewer settings than that."""
    asked = run.options.get("trials")
    counts = [asked if asked is not None else run.summary.get("trials_planned"), run.options.get(EXTENDED)]
    return sum(count for count in counts if isinstance(count, int))
