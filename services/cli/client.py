"""A typed client of the public REST API: what the command line and `make demo` speak to the service with.

Every failure is a `ServiceError` of one line that says what to do, with the exit code that fits it.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import parse_qsl, quote

import httpx
from pydantic import BaseModel, ValidationError

from penstock.compiler.reference import LIBRARIES
from penstock.compiler.tasks.source import is_task_source
from penstock.services.api.answers.schemas import (
    ArtifactList,
    ArtifactOut,
    HealthOut,
    LoginLink,
    ModelOut,
    RunDetail,
    RunList,
    RunOut,
    TrialList,
    TrialOut,
)
from penstock.services.cli.exit_codes import CONSTRAINTS_UNMET, FAILED, SERVICE_ERROR, UNMET, USAGE

LONGEST_POLL_SECONDS = 30
_RETRY_STATUS = frozenset({429, 503})
_RETRIES = 3
_CHUNK = 1 << 20
_ZOO_NAME = re.compile(r"[a-z][a-z0-9_]*")

D = TypeVar("D", bound=BaseModel)


class ServiceError(Exception):
    """The service refused, failed or cannot be reached; `exit_code` is the one the command ends with."""

    def __init__(self, line: str, *, code: str, exit_code: int, status: int | None = None) -> None:
        super().__init__(line)
        self.code = code
        self.exit_code = exit_code
        self.status = status

    def one_line(self) -> str:
        return " ".join(str(self).split())

    @property
    def is_outage(self) -> bool:
        """Whether the same request may well succeed in a moment."""
        return self.status is None or self.status in _RETRY_STATUS


class UsageError(Exception):
    """What the user asked for cannot be sent at all."""

    exit_code = USAGE

    def one_line(self) -> str:
        return " ".join(str(self).split())


@dataclass(frozen=True)
class ModelSource:
    """MODEL of the command line: a file, `zoo:name?key=value`, or a model of a library by its reference."""

    path: Path | None = None
    entry: str = ""
    zoo: str = ""
    arguments: Mapping[str, str | int | float | bool] | None = None
    reference: str = ""

    @staticmethod
    def parse(text: str) -> ModelSource:
        if text.startswith("zoo:"):
            name, _, query = text.removeprefix("zoo:").partition("?")
            if not _ZOO_NAME.fullmatch(name):
                raise UsageError(f"'{text}' names no model: write zoo:NAME or zoo:NAME?key=value")
            pairs = parse_qsl(query, keep_blank_values=True)
            return ModelSource(zoo=name, arguments={key: _literal(value) for key, value in pairs})
        if text.partition(":")[0] in LIBRARIES and ":" in text:
            return ModelSource(reference=text)  # the service reads it
        file, _, entry = text.rpartition(":") if ".py:" in text else (text, "", "")
        path = Path(file)
        if path.suffix not in (".py", ".onnx", ".mlir"):
            raise UsageError(
                f"'{text}' is no model: write file.py:function, file.onnx, file.mlir, zoo:NAME?key=value "
                f"or a model of a library ({', '.join(f'{name}:NAME' for name in LIBRARIES)})"
            )
        if path.suffix == ".py" and not entry and not _is_task_program(path):
            raise UsageError(f"'{text}' lacks its entry function: write {text}:FUNCTION")
        if not path.is_file():
            raise UsageError(f"there is no file {path}")
        return ModelSource(path=path, entry=entry)


def _is_task_program(path: Path) -> bool:
    """Which needs no entry; the service has the last word."""
    try:
        return is_task_source(path.read_text())
    except (OSError, UnicodeDecodeError):
        return False


class Service:
    """One service. Requests that may be repeated safely are, a few times, while it is away for a moment."""

    def __init__(self, url: str, token: str = "", *, transport: httpx.BaseTransport | None = None) -> None:
        self.url = _checked(url)
        headers = {"Accept": "application/json", "User-Agent": "penstock-cli"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        # No proxies from the environment: the service is near, and a token must not go astray.
        self._client = httpx.Client(
            base_url=self.url, headers=headers, timeout=httpx.Timeout(30.0, connect=5.0), transport=transport,
            trust_env=False,
        )  # fmt: skip

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def health(self) -> HealthOut:
        return self._document(HealthOut, self._send("GET", "/v1/health", accept=(503,)))

    def login_link(self) -> str:
        return self._document(LoginLink, self._send("POST", "/v1/login-links")).url

    def submit_model(self, source: ModelSource, name: str = "") -> ModelOut:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        if source.reference:
            body = {"reference": source.reference, "name": name}
            return self._document(ModelOut, self._send("POST", "/v1/models", json=body, headers=key))
        if source.path is None:
            body = {"zoo": source.zoo, "arguments": dict(source.arguments or {}), "name": name}
            return self._document(ModelOut, self._send("POST", "/v1/models", json=body, headers=key))
        fields = {"entry": source.entry, "name": name}
        data = {field: value for field, value in fields.items() if value}
        with _opened(source.path) as file:
            files = {"file": (source.path.name, file, "application/octet-stream")}
            response = self._send("POST", "/v1/models", data=data, files=files, headers=key, timeout=600.0)
        return self._document(ModelOut, response)

    def submit_run(self, model: str, **options: Any) -> RunDetail:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        return self._document(RunDetail, self._send("POST", "/v1/runs", json={"model": model, **options}, headers=key))

    def run(self, run: str, *, wait: int = 0, after: int | None = None) -> RunDetail:
        """One run. With `wait`, answers when it ended, or when something happened after event `after`."""
        query: dict[str, Any] = {"wait": wait} if wait else {}
        if after is not None and wait:
            query["after"] = after
        path = f"/v1/runs/{quote(run, safe='')}"
        return self._document(RunDetail, self._send("GET", path, params=query, timeout=wait + 30.0))

    def runs(self, *, limit: int = 20, state: str = "") -> Iterator[RunOut]:
        """Runs, the newest first; pages are fetched as they are needed."""
        cursor: str | None = None
        left = limit
        while left > 0:
            query = {"limit": min(left, 100), "state": state or None, "cursor": cursor}
            page = self._document(RunList, self._send("GET", "/v1/runs", params=_present(query)))
            yield from page.items
            left -= len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    def trials(self, run: str) -> list[TrialOut]:
        """Every trial of a run; pages are put together."""
        found: list[TrialOut] = []
        cursor: str | None = None
        while True:
            query = _present({"limit": 500, "cursor": cursor})
            page = self._document(TrialList, self._send("GET", f"/v1/runs/{quote(run, safe='')}/trials", params=query))
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found

    def artifacts(self, run: str) -> list[ArtifactOut]:
        return self._document(ArtifactList, self._send("GET", f"/v1/runs/{quote(run, safe='')}/artifacts")).items

    def cancel(self, run: str) -> RunDetail:
        return self._document(RunDetail, self._send("POST", f"/v1/runs/{quote(run, safe='')}/cancel"))

    def pause(self, run: str) -> RunDetail:
        return self._document(RunDetail, self._send("POST", f"/v1/runs/{quote(run, safe='')}/pause"))

    def resume(self, run: str) -> RunDetail:
        return self._document(RunDetail, self._send("POST", f"/v1/runs/{quote(run, safe='')}/resume"))

    def extend(self, run: str, trials: int) -> RunDetail:
        key, path = {"Idempotency-Key": str(uuid.uuid4())}, f"/v1/runs/{quote(run, safe='')}/extend"
        return self._document(RunDetail, self._send("POST", path, json={"trials": trials}, headers=key))

    def replay(self, run: str, trial: int) -> RunDetail:
        """The run that evaluates the trial again."""
        path = f"/v1/runs/{quote(run, safe='')}/trials/{trial}/replay"
        return self._document(RunDetail, self._send("POST", path))

    def download(self, artifact: ArtifactOut, folder: Path) -> Path:
        """Fetches an artifact into `folder` under its own name: whole, with the right hash, or not at all."""
        target = folder / safe_name(artifact.name)
        if target.is_file() and _sha256(target) == artifact.sha256:
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".penstock-")
        try:
            digest = hashlib.sha256()
            with (
                os.fdopen(descriptor, "wb") as file,
                _Download(self, f"/v1/artifacts/{artifact.id}") as chunks,
            ):
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != artifact.sha256:
                line = f"{artifact.name} arrived damaged (its hash differs): fetch it again"
                raise ServiceError(line, code="damaged-download", exit_code=SERVICE_ERROR)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        finally:
            Path(temporary).unlink(missing_ok=True)
        return target

    def _send(
        self,
        method: str,
        path: str,
        *,
        accept: tuple[int, ...] = (),
        timeout: float | None = None,
        **request: Any,
    ) -> httpx.Response:
        if timeout is not None:
            request["timeout"] = httpx.Timeout(timeout, connect=5.0)
        retries = _RETRIES
        while True:
            try:
                response = self._client.request(method, path, **request)
            except httpx.HTTPError as error:
                raise self.unreachable(error) from error
            if response.is_success or response.status_code in accept:
                return response
            if response.status_code not in _RETRY_STATUS or retries == 0:
                raise refusal(response)
            retries -= 1
            time.sleep(min(_retry_after(response), 5.0))

    def unreachable(self, error: httpx.HTTPError) -> ServiceError:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            line = f"no service answers at {self.url}: is it up? run `penstock up`, or set PENSTOCK_URL"
        elif isinstance(error, httpx.TimeoutException):
            line = f"the service at {self.url} took too long to answer: see `penstock doctor` and its log"
        else:
            line = f"the connection to {self.url} broke ({type(error).__name__}): try again"
        return ServiceError(line, code="unreachable", exit_code=SERVICE_ERROR)

    @staticmethod
    def _document(kind: type[D], response: httpx.Response) -> D:
        try:
            return kind.model_validate_json(response.content)
        except ValidationError:
            line = f"what answers at {response.url} is not a Penstock service of this version"
            raise ServiceError(line, code="not-penstock", exit_code=SERVICE_ERROR) from None


class _Download:
    """A streamed response as a context manager over its chunks, with the client's errors in our form."""

    def __init__(self, service: Service, url: str) -> None:
        self.service = service
        self.response = service._client.stream("GET", url)

    def __enter__(self) -> Iterator[bytes]:
        try:
            opened = self.response.__enter__()
            if not opened.is_success:
                opened.read()
                raise refusal(opened)
        except httpx.HTTPError as error:
            raise self.service.unreachable(error) from error
        return self._chunks(opened)

    def __exit__(self, *caught: Any) -> None:
        self.response.__exit__(*caught)

    def _chunks(self, opened: httpx.Response) -> Iterator[bytes]:
        try:
            yield from opened.iter_bytes(_CHUNK)
        except httpx.HTTPError as error:
            raise self.service.unreachable(error) from error


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(f"'{url}' is no address of a service: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError(f"'{url}' is no address of a service: write http://HOST:PORT")
    return url.rstrip("/")


def refusal(response: httpx.Response) -> ServiceError:
    """The error for a response that is not a success; problem documents speak for themselves."""
    status = response.status_code
    try:
        document = response.json()
    except ValueError:
        document = {}
    code = str(document.get("code", "")) if isinstance(document, dict) else ""
    if not code:
        line = f"what answers at {response.url} is not a Penstock service (HTTP {status})"
        return ServiceError(line, code="not-penstock", exit_code=SERVICE_ERROR, status=status)
    line = str(document.get("detail", ""))
    if status == 401:
        line += ": set PENSTOCK_TOKEN"
    exit_code = SERVICE_ERROR if status >= 500 or status == 429 else FAILED if status == 409 else USAGE
    if code in UNMET:
        exit_code = CONSTRAINTS_UNMET
    return ServiceError(line, code=code, exit_code=exit_code, status=status)


def safe_name(name: str) -> str:
    """The last part of an artifact's name: a service must not choose where on this machine it is written."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    if last in ("", ".", "..") or any(ord(letter) < 32 for letter in last):
        raise ServiceError(f"the artifact's name {name!r} is no file name", code="bad-name", exit_code=SERVICE_ERROR)
    return last


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "1")
    return float(text) if text.isdecimal() else 1.0


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _present(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _literal(text: str) -> str | int | float | bool:
    """A value of a zoo reference: numbers and true/false as such, anything else as text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text  # JSON has no name for the others
