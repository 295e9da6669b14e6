"""/v1/contents: files by the hash of their content, for workers on machines that share no folder with this one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from penstock.services.api.answers.params import PROBLEMS
from penstock.services.api.answers.problems import Problem
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Ctx
from penstock.services.api.routes.models import intake
from penstock.services.store import MissingContentError, WrongContentError

router = APIRouter(prefix="/v1/contents", tags=["contents"], responses=PROBLEMS)

Hash = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="the SHA-256 of the content, in hexadecimal")]
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.head("/{sha256}", include_in_schema=False)
@router.get(
    "/{sha256}",
    summary="A file by its hash",
    response_class=Response,
    responses={
        200: {"description": "the file", "content": _FILE},
        206: {"description": "the part of the file that `Range` asked for"},
    },
)
def get_content(sha256: Hash, context: Ctx, caller: Caller) -> Response:
    """What steps hand to each other. One range of bytes may be asked for, so that a broken transfer goes on."""
    try:
        path = context.store.path(sha256)
    except MissingContentError:
        raise Problem(
            "content-not-found", f"there is no content {sha256}", where="path", hint="put it here first"
        ) from None
    return FileResponse(path, media_type="application/octet-stream", headers={"ETag": f'"{sha256}"'})


@router.put(
    "/{sha256}",
    status_code=204,
    summary="Keep a file",
    openapi_extra={"requestBody": {"required": True, "content": _FILE}},
)
async def put_content(sha256: Hash, request: Request, context: Ctx, caller: Caller) -> Response:
    """Keeps the body under its hash: whole or not at all, and only if it is the hash of what came. Twice is fine."""
    await run_in_threadpool(intake(context).check_disk)
    with context.store.receiving() as incoming:
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        try:
            await run_in_threadpool(context.store.keep, incoming, sha256)
        except WrongContentError as error:
            raise Problem(
                "content-differs", str(error), where="body", hint="send the file again; the hash is that of its bytes"
            ) from None
    return Response(status_code=204)
