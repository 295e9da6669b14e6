"""For programs that search: a run's space, trials that they ask for, and the settings that they tell."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from penstock.compiler.search_space import SpaceInfo
from penstock.services.api.answers.params import PROBLEMS, RunId
from penstock.services.api.answers.schemas import AskedTrials, MoreTrials, ToldSetting, TrialDetail
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Ctx
from penstock.services.api.plumbing.idempotency import IdempotencyHeader
from penstock.services.api.routes.searches import TrialNumber, get_trial
from penstock.services.jobs import agents
from penstock.services.jobs.runs import find_run

router = APIRouter(prefix="/v1/runs", tags=["searches"], responses=PROBLEMS)


@router.get("/{run_id}/space", summary="What can be decided")
def get_space(run_id: RunId, context: Ctx, caller: Caller) -> SpaceInfo:
    """Every parameter of the run's search with its values, the limits, and what no design can be better than."""
    with context.database.begin() as tx:
        return SpaceInfo.model_validate(agents.space_of_run(tx, find_run(tx, run_id)))


@router.post("/{run_id}/ask", status_code=201, summary="Take part in a search")
def ask_trials(
    run_id: RunId, more: MoreTrials, context: Ctx, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JSONResponse:
    """Further trials whose settings you tell. The run chooses when all of them have ended, so tell every one.

    A run that has chosen chooses anew after them.
    """
    idempotency.check_key(idempotency_key)
    asked = f"POST /v1/runs/{run_id}/ask"
    fingerprint = idempotency.request_hash(asked, more.model_dump(mode="json"))
    with context.database.begin(caller.actor) as tx:

        def work() -> JSONResponse:
            caller.check_may_change(find_run(tx, run_id))
            run, numbers = agents.ask_trials(
                tx, run_id, more.trials, context.options.max_trials, context.options.quotas
            )
            document = AskedTrials(run=run.id, trials=list(numbers), url=f"/v1/runs/{run.id}/space")
            return idempotency.json_response(document, 201, {"Location": f"/v1/runs/{run.id}/trials"})

        return idempotency.once(tx, caller=caller, key=idempotency_key, fingerprint=fingerprint, work=work)


@router.post("/{run_id}/trials/{number}/tell", status_code=202, summary="Tell the setting of a trial")
def tell_trial(run_id: RunId, number: TrialNumber, told: ToldSetting, context: Ctx, caller: Caller) -> TrialDetail:
    """A worker evaluates it, and nobody else: figures come from the service alone. Each trial is told once."""
    with context.database.begin(caller.actor) as tx:
        caller.check_may_change(find_run(tx, run_id))
        agents.tell_trial(tx, run_id, number, told.params)
    return get_trial(run_id, number, context, caller)
