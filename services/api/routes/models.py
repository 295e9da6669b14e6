"""/v1/models: taking models in. A file goes to the content store by its hash; a zoo model is just named."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from penstock.db import Transaction
from penstock.db.schema.ids import is_id
from penstock.db.schema.records import Model
from penstock.services.api.answers.documents import model_out
from penstock.services.api.answers.params import PROBLEMS, Cursor, PageLimit, check_cursor
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import LONGEST_NAME, ModelList, ModelOut, ZooReference
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.idempotency import IdempotencyHeader
from penstock.services.api.plumbing.sources import check_linalg, check_onnx, check_python, zoo_names, zoo_source
from penstock.services.store import TooLargeError

router = APIRouter(prefix="/v1/models", tags=["models"], responses=PROBLEMS)

_CHUNK = 1 << 20
_FIELDS = ("file", "entry", "name")
_FORM_SCHEMA = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "a .py, .onnx or .mlir file"},
        "entry": {"type": "string", "description": "for a .py file: the function that returns the model"},
        "name": {"type": "string", "maxLength": LONGEST_NAME, "description": "what to call the model"},
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
                "application/json": {"schema": {"$ref": "#/components/schemas/ZooReference"}},
            },
        }
    },
)
async def submit_model(
    request: Request, context: Ctx, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JSONResponse:
    """Takes a Python, ONNX or linalg file (multipart/form-data) or names a model of the zoo (application/json)."""
    idempotency.check_key(idempotency_key)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        reference = await _zoo_reference(request)
        return await run_in_threadpool(_take_zoo, context, caller, idempotency_key, reference)
    if kind == "multipart/form-data":
        async with _form(request) as form:
            return await run_in_threadpool(_take_file, context, caller, idempotency_key, form)
    raise Problem(
        "unsupported-media-type",
        f"a model cannot be read from '{kind[:100]}'" if kind else "the body has no Content-Type",
        where="header Content-Type",
        limit="multipart/form-data for a file, application/json for a model of the zoo",
        hint='curl -F file=@model.py -F entry=model …, or --json \'{"zoo": "mlp"}\' …',
    )


@router.get("", summary="List models")
def list_models(context: Ctx, caller: Caller, limit: PageLimit = 50, cursor: Cursor = None) -> ModelList:
    """Models, the newest first."""
    check_cursor(cursor, "mdl")
    with context.database.begin() as tx:
        page = tx.models.list(cursor=cursor, limit=limit)
    return ModelList(items=[model_out(model) for model in page.items], next_cursor=page.next_cursor)


@router.get("/{model_id}", summary="One model")
def get_model(model_id: Annotated[str, Path(max_length=64)], context: Ctx, caller: Caller) -> ModelOut:
    """One model."""
    with context.database.begin() as tx:
        return model_out(find_model(tx, model_id, where="path"))


def find_model(tx: Transaction, model_id: str, *, where: str) -> Model:
    """The model with that id, or the problem that there is none."""
    model = tx.models.get(model_id) if is_id(model_id, "mdl") else None
    if model is None:
        raise Problem(
            "model-not-found",
            f"there is no model '{model_id[:64]}'",
            where=where,
            hint="submit it first with POST /v1/models",
        )
    return model


async def _zoo_reference(request: Request) -> ZooReference:
    try:
        return ZooReference.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError([_in_body(entry) for entry in error.errors()]) from None


def _in_body(entry: Any) -> dict[str, Any]:
    """An error of pydantic in the form that FastAPI gives its own."""
    return {**entry, "loc": ("body", *(entry["loc"] or (0,)))}


@asynccontextmanager
async def _form(request: Request) -> AsyncIterator[FormData]:
    """The parts of a multipart body; files lie in temporary files that go with the block."""
    form = await request.form(max_files=1, max_fields=8, max_part_size=64 * 1024)
    try:
        yield form
    finally:
        await form.close()


def _take_zoo(context: Context, caller: str | None, key: str | None, reference: ZooReference) -> JSONResponse:
    source = zoo_source(reference)
    name = reference.name or reference.zoo
    fingerprint = idempotency.request_hash("POST /v1/models", [source, name])
    details = {"zoo": reference.zoo, "options": dict(reference.arguments)}
    fields = {"name": name, "kind": "zoo", "source": source, "details": details}
    return _create(context, caller, key, fingerprint, fields)


def _take_file(context: Context, caller: str | None, key: str | None, form: FormData) -> JSONResponse:
    upload, entry, name = _parts(form)
    file = _file_name(upload.filename or "")
    suffix = file.rpartition(".")[2].lower()
    if suffix == "py":
        kind, source, details = "python", f"{file}:{entry}", {"file": file, "function": entry}
        _check_source(context, upload, file, entry)
    elif suffix == "onnx":
        kind, source, details = "onnx", file, {"file": file}
        check_onnx(upload.file.read(1), file)
    elif suffix == "mlir":
        kind, source, details = "linalg", file, {"file": file}
        check_linalg(upload.file.read(4096), file)
    else:
        raise Problem(
            "model-file-unsupported",
            f"'{file}' is neither Python nor ONNX nor linalg text",
            where="field file",
            limit="files that end in .py, .onnx or .mlir",
            hint="write a .py file with a function that returns (module, example_inputs), or export to ONNX",
        )
    upload.file.seek(0)
    check_disk(context)
    try:
        stored = context.store.put_chunks(_chunks(upload.file), limit=context.options.max_model_bytes)
    except TooLargeError as error:
        raise Problem("too-large", f"{file} is too large: {error}", where="field file") from None
    name = name or _model_name(file, entry)
    fingerprint = idempotency.request_hash("POST /v1/models", [source, name, stored.sha256])
    fields = {
        "name": name, "kind": kind, "source": source, "details": details,
        "sha256": stored.sha256, "size": stored.size,
    }  # fmt: skip
    return _create(context, caller, key, fingerprint, fields)


def _create(
    context: Context, caller: str | None, key: str | None, fingerprint: str, fields: dict[str, Any]
) -> JSONResponse:
    with context.database.begin() as tx:

        def work() -> JSONResponse:
            document = model_out(tx.models.create(**fields, owner=caller))
            return idempotency.json_response(document, 201, {"Location": document.url})

        return idempotency.once(tx, caller=caller, key=key, fingerprint=fingerprint, work=work)


def _parts(form: FormData) -> tuple[UploadFile, str, str]:
    """The file, the entry and the name; anything else in the form is refused by name."""
    unknown = sorted(set(form) - set(_FIELDS))
    if unknown:
        raise Problem(
            "unknown-option",
            f"there is no field '{unknown[0][:80]}'",
            where="body",
            limit="the fields are " + ", ".join(_FIELDS),
            hint="remove it",
        )
    upload = form.get("file")
    if not isinstance(upload, UploadFile) or not upload.filename:
        raise Problem(
            "model-file-missing",
            "the form has no file",
            where="field file",
            hint="curl -F file=@model.py -F entry=model …",
        )
    return upload, _text(form, "entry"), _text(form, "name")


def _text(form: FormData, field: str) -> str:
    value = form.get(field) or ""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not value.isprintable():
        raise Problem(
            "invalid-request",
            "expected printable text",
            where=f"field {field}",
            limit=f"at most {LONGEST_NAME} characters",
            hint="send it as a plain form field",
        )
    return value.strip()


def _file_name(name: str) -> str:
    """The last part of the file's name, printable: it is shown and stored, and never used as a path."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[-LONGEST_NAME:] or "unnamed"


def _model_name(file: str, entry: str) -> str:
    stem = file.rpartition(".")[0]
    return stem if entry in ("", "model") else f"{stem}.{entry}"


def _check_source(context: Context, upload: UploadFile, file: str, entry: str) -> None:
    if not context.settings.allow_python_models:
        raise Problem(
            "python-models-refused",
            f"{file} would be executed, and this service executes nobody's code",
            where="field file",
            hint="submit an ONNX file or a zoo model "
            f"({', '.join(zoo_names()) or 'none are installed'}), or run your own: `penstock up`",
        )
    limit = context.options.max_source_bytes
    source = upload.file.read(limit + 1)
    if len(source) > limit:
        raise Problem(
            "too-large",
            f"{file} is too large for a source file",
            where="field file",
            limit=f"at most {limit} bytes",
            hint="keep weights out of the source",
        )
    check_python(source, file, entry)


def check_disk(context: Context) -> None:
    """Refuses new content before the disk is full: running work needs what is left."""
    free = shutil.disk_usage(context.settings.home).free
    if free < context.options.low_disk_bytes:
        raise Problem(
            "storage-full",
            "the service takes nothing new until there is room on its disk",
            limit=f"{free} bytes are free, {context.options.low_disk_bytes} are needed",
            hint="have the operator free some space; finished work is safe",
            headers={"Retry-After": "300"},
        )


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(_CHUNK), b"")
