"""What a run found and made: /v1/runs/{id}/trials, /v1/runs/{id}/artifacts, /v1/artifacts/{id}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from penstock.db.schema.ids import is_id
from penstock.dse.evaluation.objectives import OBJECTIVES
from penstock.services.api.answers.documents import artifact_out, chosen_trial, trial_out
from penstock.services.api.answers.downloads import download
from penstock.services.api.answers.params import PROBLEMS, RunId, TrialCursor
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import ArtifactList, TrialFront, TrialList
from penstock.services.api.answers.trials import front_out, trial_page
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Ctx
from penstock.services.jobs.runs import find_run
from penstock.services.store import MissingContentError

if TYPE_CHECKING:
    Compared = TrialOrder = str
else:
    Compared = Literal[tuple(OBJECTIVES)]
    TrialOrder = Literal["number", *OBJECTIVES]

router = APIRouter(prefix="/v1", tags=["results"], responses=PROBLEMS)


@router.get("/runs/{run_id}/trials", summary="The trials of a run")
def list_trials(
    run_id: RunId,
    context: Ctx,
    caller: Caller,
    limit: Annotated[int, Query(ge=1, le=500, description="how many to give at most")] = 200,
    cursor: TrialCursor = None,
    sort: Annotated[
        TrialOrder,
        Query(description="number: as they were made; an objective: the best first, those without figures last"),
    ] = "number",
) -> TrialList:
    """The trials of a run, running and failed ones included. A cursor belongs to the order that it was given for."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        page = trial_page(tx, run, sort, cursor, limit)
    chosen = chosen_trial(run)
    return TrialList(items=[trial_out(row, chosen) for row in page.items], next_cursor=page.next_cursor)


@router.get("/runs/{run_id}/front", summary="The Pareto front of a run")
def get_front(
    run_id: RunId,
    context: Ctx,
    caller: Caller,
    objectives: Annotated[
        list[Compared] | None,
        Query(max_length=3, description="what to compare; without any, what the run was asked to keep small"),
    ] = None,
) -> TrialFront:
    """Made from all trials of the run that have ended so far, however many they are."""
    with context.database.begin() as tx:
        return front_out(tx, find_run(tx, run_id), objectives)


@router.get("/runs/{run_id}/artifacts", summary="The artifacts of a run")
def list_artifacts(run_id: RunId, context: Ctx, caller: Caller) -> ArtifactList:
    """The files that the steps of a run made, the newest first."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        page = tx.artifacts.list(run.id, limit=500)
        steps = {step.id: step.key for step in tx.steps.by_ids({file.step_id for file in page.items})}
    return ArtifactList(items=[artifact_out(artifact, steps) for artifact in page.items])


@router.head("/artifacts/{artifact_id}", include_in_schema=False)
@router.get(
    "/artifacts/{artifact_id}",
    summary="Download an artifact",
    response_class=Response,
    responses={
        200: {"description": "the file, with the type that it was stored with", "content": {"*/*": {}}},
        206: {"description": "the part of the file that `Range` asked for"},
        304: {"description": "the file that `If-None-Match` named"},
    },
)
def get_artifact(
    artifact_id: Annotated[str, Path(max_length=64)],
    request: Request,
    context: Ctx,
    caller: Caller,
    inline: Annotated[bool, Query(description="show it in the browser, in a sandbox")] = False,
) -> Response:
    """The file itself. Its ETag is its SHA-256; one range of bytes may be asked for."""
    with context.database.begin() as tx:
        artifact = tx.artifacts.get(artifact_id) if is_id(artifact_id, "art") else None
    if artifact is None:
        raise Problem(
            "artifact-not-found",
            f"there is no artifact '{artifact_id[:64]}'",
            where="path",
            hint="GET /v1/runs/{id}/artifacts lists what a run made",
        )
    try:
        path = context.store.path(artifact.sha256)
    except MissingContentError:
        raise Problem(
            "artifact-gone",
            f"the content of {artifact.name} is not in the store any more",
            where="path",
            hint="start the run again: steps whose outputs are kept are not repeated",
        ) from None
    return download(path, artifact, request, inline=inline)
