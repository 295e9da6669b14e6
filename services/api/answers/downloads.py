"""Files as responses: the right type and name, an ETag that is the content's hash, single ranges, HEAD."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from penstock.db.schema.records import Artifact
from penstock.services.api.answers.problems import Problem

_CHUNK = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# Whatever an artifact contains, shown inline it may neither run scripts nor reach this service.
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"


def download(path: Path, artifact: Artifact, request: Request, *, inline: bool) -> Response:
    """The response for a file whose content never changes."""
    size = path.stat().st_size
    etag = f'"{artifact.sha256}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=31536000, immutable",
        "Content-Disposition": _disposition(artifact.name, inline),
    }
    if inline:
        headers["Content-Security-Policy"] = _SANDBOX
    if _is_known(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    wanted = requested_range(request.headers.get("range", ""), size)
    if request.headers.get("if-range", etag) != etag:
        wanted = None
    start, end = wanted or (0, size)
    status = 200
    if wanted is not None:
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=artifact.media_type)
    return StreamingResponse(
        _read(path, start, end), status_code=status, headers=headers, media_type=artifact.media_type
    )


def requested_range(header: str, size: int) -> tuple[int, int] | None:
    """The bytes from start to before end; None where the header asks for nothing we serve in parts."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.group(0) == "bytes=-":
        return None  # absent, several ranges, or another unit: the whole file is the right answer
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
    if start >= size or end <= start:
        raise Problem(
            "range-not-satisfiable",
            f"'{header[:60]}' lies outside the file",
            where="header Range",
            limit=f"the file has {size} bytes",
            hint="ask for a range inside it, or for the whole file",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end


def _read(path: Path, start: int, end: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        left = end - start
        while left > 0:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                return
            left -= len(chunk)
            yield chunk


def _disposition(name: str, inline: bool) -> str:
    """Content-Disposition with an ASCII name for old clients and the real one for the others."""
    last = name.rpartition("/")[2] or "artifact"
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", last)
    kind = "inline" if inline else "attachment"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(last, safe='')}"


def _is_known(header: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return etag in tags or "*" in tags
