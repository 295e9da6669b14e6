"""/v1/models: taking models in, as forms and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from penstock.compiler.reference import LIBRARIES
from penstock.services.api.answers.documents import model_out, submitted_run
from penstock.services.api.answers.params import POLL_AFTER_SECONDS, PROBLEMS, ModelCursor, PageLimit, check_cursor
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import ModelList, ModelOut, NamedModel, NewCheck, RunDetail, ZooReference
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller, Who
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.idempotency import IdempotencyHeader
from penstock.services.jobs import runs
from penstock.services.jobs.kernels import is_kernel
from penstock.services.jobs.models import (
    Intake,
    NewModel,
    find_model,
    kernel_model,
    model_file,
    model_of_files,
    named_model,
    zoo_model,
)
from penstock.services.jobs.quotas import check_quotas
from penstock.services.jobs.sources import OPTION_NAME, OPTION_VALUE, file_options
from penstock.services.run_options import LONGEST_NAME, NAME_PATTERN, PLAIN

router = APIRouter(prefix="/v1/models", tags=["models"], responses=PROBLEMS)

ModelId = Annotated[str, Path(max_length=64)]

_FIELDS = ("file", "entry", "options", "name")
_MOST_FILES, _LONGEST_ENTRY = 256, 2000
_BINARY = {"type": "string", "format": "binary"}
_OPTION = f"{OPTION_NAME}={OPTION_VALUE}"
_FORM_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["file"],
    "properties": {
        "file": {
            "anyOf": [_BINARY, {"type": "array", "items": _BINARY, "minItems": 1, "maxItems": _MOST_FILES}],
            "description": "a .py, .onnx or .mlir file; or, as several fields of this name, safetensors files with "
            "their index, a config.json of transformers, and the .py file if the model is not named by `entry`; beside "
            "any of these typical inputs (.npz, .npy), which eight bits are measured on; or a "
            "kernel in HLS C++ (.cpp) with the headers that it includes; or, beside the model that `file` or `entry` "
            "names, a task program (.py) for some of its layers",
        },
        "entry": {
            "type": "string",
            "pattern": f"^({NAME_PATTERN})?$|^(zoo|{'|'.join(map(re.escape, LIBRARIES))}):",
            "description": "for a .py file: the function that returns the model; for a kernel in C++: its top "
            "function; for safetensors files or a task program without a model's .py file: the model that they are "
            "of, as hf:gpt2?cache=64#",
        },
        "options": {
            "type": "string",
            "pattern": f"^({_OPTION}(&{_OPTION})*)?$",
            "description": "of a task program, a Triton kernel or an ONNX file: constants, or sizes of dims that the "
            "file leaves open, as P=8&Q=8",
        },
        "name": {
            "type": "string",
            "maxLength": LONGEST_NAME,
            "pattern": PLAIN,
            "description": "what to call the model",
        },
    },
}


@router.post(
    "",
    status_code=201,
    response_model=ModelOut,
    summary="Submit a model",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {"schema": _FORM_SCHEMA},
                "application/json": {
                    "schema": {
                        "anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("ZooReference", "NamedModel")]
                    }
                },
            },
        }
    },
)
async def submit_model(
    request: Request, context: Ctx, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JSONResponse:
    """Takes a Python, ONNX, linalg or C++ file (multipart/form-data) or names a model of the zoo or of a library."""
    idempotency.check_key(idempotency_key)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return await run_in_threadpool(_take_named, context, caller, idempotency_key, await request.body())
    if kind == "multipart/form-data":
        async with _form(request) as form:
            take = partial(_take_file, context, caller, idempotency_key, form)
            return await context.intake_turns.take(caller.owner, take)
    raise Problem(
        "unsupported-media-type",
        f"a model cannot be read from '{kind[:100]}'" if kind else "the body has no Content-Type",
        where="header Content-Type",
        limit="multipart/form-data for a file, application/json for a model of the zoo or of a library",
        hint='curl -F file=@model.py -F entry=model …, or --json \'{"zoo": "mlp"}\' …',
    )


@router.get("", summary="List models")
def list_models(context: Ctx, caller: Caller, limit: PageLimit = 50, cursor: ModelCursor = None) -> ModelList:
    """Models, the newest first."""
    check_cursor(cursor, "mdl")
    with context.database.begin() as tx:
        page = tx.models.list(cursor=cursor, limit=limit)
    return ModelList(items=[model_out(model) for model in page.items], next_cursor=page.next_cursor)


@router.get("/{model_id}", summary="One model")
def get_model(model_id: ModelId, context: Ctx, caller: Caller) -> ModelOut:
    """One model."""
    with context.database.begin() as tx:
        return model_out(find_model(tx, model_id, where="path"))


@router.post("/{model_id}/check", status_code=202, response_model=RunDetail, summary="Check a model")
def check_model(
    model_id: ModelId, asked: NewCheck, context: Ctx, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JSONResponse:
    """Starts a run that imports the model and says, in seconds and without a search, what would run where, what is
    refused and why, how large it is, and what a first design would take.

    Its summary has `check`: what `penstock check --json` prints. A model that cannot be imported fails the run.
    """
    idempotency.check_key(idempotency_key)
    options = asked.model_dump(mode="json")
    fingerprint = idempotency.request_hash(f"POST /v1/models/{model_id}/check", options)
    with context.database.begin(caller.actor) as tx:

        def work() -> JSONResponse:
            model = find_model(tx, model_id, where="path", hold=True)
            intake(context).check_disk()
            most, quotas = context.options.max_waiting_runs, context.options.quotas
            made = runs.check_model(tx, model, options, owner=caller.owner, most_waiting=most, quotas=quotas)
            document = submitted_run(made, model)
            headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
            return idempotency.json_response(document, 202, headers)

        return idempotency.once(tx, caller=caller, key=idempotency_key, fingerprint=fingerprint, work=work)


def _new_model(body: bytes) -> NewModel:
    """A model by its `reference`, or one of the zoo with its arguments apart."""
    try:
        if _has_reference(body):
            named = NamedModel.model_validate_json(body)
            return named_model(named.reference, named.name)
        zoo = ZooReference.model_validate_json(body)
        return zoo_model(zoo.zoo, zoo.arguments, zoo.name)
    except ValidationError as error:
        raise RequestValidationError([_in_body(entry) for entry in error.errors()]) from None


def _has_reference(body: bytes) -> bool:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False  # which the other way says in its own words
    return isinstance(document, dict) and "reference" in document


def _in_body(entry: Any) -> dict[str, Any]:
    """An error of pydantic in the form that FastAPI gives its own."""
    return {**entry, "loc": ("body", *(entry["loc"] or (0,)))}


@asynccontextmanager
async def _form(request: Request) -> AsyncIterator[FormData]:
    """The parts of a multipart body; files lie in temporary files that go with the block.

    A file without a name is a field to the parser: as many are read as there may be files, and told what they lack.
    """
    most_fields = _MOST_FILES + len(_FIELDS)
    form = await request.form(max_files=_MOST_FILES, max_fields=most_fields, max_part_size=64 * 1024)
    try:
        yield form
    finally:
        await form.close()


def intake(context: Context, caller: Who | None = None) -> Intake:
    """What this service takes in, of this caller."""
    options, settings = context.options, context.settings
    return Intake(
        context.store,
        settings.home,
        allow_python=settings.allow_python_models,
        allow_bodies=settings.allow_python_models and caller is not None and caller.scope == "admin",
        most_source_bytes=options.max_source_bytes,
        most_model_bytes=options.max_model_bytes,
        low_disk_bytes=options.low_disk_bytes,
    )


def _take_file(context: Context, caller: Who, key: str | None, form: FormData) -> JSONResponse:
    uploads, entry, options, name = _parts(form)
    with context.database.begin() as tx:  # what is kept of one who may keep no more would lie there until it is swept
        check_quotas(tx, caller.owner, context.options.quotas)
    if any(is_kernel(upload.filename or "") for upload in uploads):
        file_options(options, takes=False)
        sources = [(upload.filename or "", upload.file) for upload in uploads]
        return _create(context, caller, key, kernel_model(intake(context), sources, entry, name))
    named = ":" in entry  # a model of the zoo or of a library
    if len(uploads) == 1 and not named and not (uploads[0].filename or "").endswith(".safetensors"):
        upload = uploads[0]
        model = model_file(intake(context, caller), upload.file, upload.filename or "", entry, name, options)
    else:
        files = [(upload.filename or "", upload.file) for upload in uploads]
        model = model_of_files(intake(context), files, entry, name, options)
    return _create(context, caller, key, model)


def _take_named(context: Context, caller: Who, key: str | None, body: bytes) -> JSONResponse:
    return _create(context, caller, key, _new_model(body))


def _create(context: Context, caller: Who, key: str | None, model: NewModel) -> JSONResponse:
    fingerprint = idempotency.request_hash("POST /v1/models", model.identity)
    with context.database.begin(caller.actor) as tx:

        def work() -> JSONResponse:
            check_quotas(tx, caller.owner, context.options.quotas)
            document = model_out(model.create(tx, caller.owner))
            return idempotency.json_response(document, 201, {"Location": document.url})

        return idempotency.once(tx, caller=caller, key=key, fingerprint=fingerprint, work=work)


def _parts(form: FormData) -> tuple[list[UploadFile], str, str, str]:
    """The files, the entry, the options and the name; anything else in the form is refused by name."""
    unknown = sorted(set(form) - set(_FIELDS))
    if unknown:
        raise Problem(
            "unknown-option",
            f"there is no field '{unknown[0][:80]}'",
            where="body",
            limit="the fields are " + ", ".join(_FIELDS),
            hint="remove it",
        )
    uploads = [upload for upload in form.getlist("file") if isinstance(upload, UploadFile) and upload.filename]
    if not uploads or len(uploads) < len(form.getlist("file")):
        raise Problem(
            "model-file-missing",
            "the form has no file",
            where="field file",
            hint="curl -F file=@model.py -F entry=model …",
        )
    entry, options = (_text(form, field, _LONGEST_ENTRY) for field in ("entry", "options"))
    return uploads, entry, options, _text(form, "name", LONGEST_NAME)


def _text(form: FormData, field: str, longest: int) -> str:
    value = form.get(field) or ""
    if not isinstance(value, str) or len(value) > longest or not re.fullmatch(PLAIN, value):
        raise Problem(
            "invalid-request",
            "expected text without control characters",
            where=f"field {field}",
            limit=f"at most {longest} characters",
            hint="send it as a plain form field",
        )
    return value.strip()
