"""/v1/models/{id}/array: an array of cores for a Triton kernel, as a run."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from penstock.services.api.answers.documents import submitted_run
from penstock.services.api.answers.params import POLL_AFTER_SECONDS, PROBLEMS
from penstock.services.api.answers.schemas import RunDetail
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Ctx
from penstock.services.api.plumbing.idempotency import IdempotencyHeader
from penstock.services.api.routes.models import ModelId, intake
from penstock.services.jobs.arrays import NewArray, start_array
from penstock.services.jobs.models import find_model

router = APIRouter(prefix="/v1/models", tags=["models"], responses=PROBLEMS)


@router.post("/{model_id}/array", status_code=202, response_model=RunDetail, summary="Make an array of cores")
def make_array(
    model_id: ModelId, asked: NewArray, context: Ctx, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JSONResponse:
    """Starts a run that makes an array of cores once, and a program for the kernel in each shape: what `penstock array`
    does. With `platform` it finds the array too.

    Its summary has `array`; its files are array.json, array.zip (SystemVerilog, C++ and programs) and, of an array that
    was found, array.toml.
    """
    idempotency.check_key(idempotency_key)
    fingerprint = idempotency.request_hash(f"POST /v1/models/{model_id}/array", asked.asked())
    with context.database.begin(caller.actor) as tx:

        def work() -> JSONResponse:
            model = find_model(tx, model_id, where="path", hold=True)
            intake(context).check_disk()
            most, quotas = context.options.max_waiting_runs, context.options.quotas
            made = start_array(tx, model, asked, owner=caller.owner, most_waiting=most, quotas=quotas)
            document = submitted_run(made, model)
            headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
            return idempotency.json_response(document, 202, headers)

        return idempotency.once(tx, caller=caller, key=idempotency_key, fingerprint=fingerprint, work=work)
