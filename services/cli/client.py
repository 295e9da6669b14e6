"""The service that a command speaks to, by the client that programs use too; its errors get documented exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.services.cli.exit_codes import CONSTRAINTS_UNMET, FAILED, SERVICE_ERROR, TIMEOUT, UNMET, USAGE
from penstock.services.client.blocking import Client
from penstock.services.client.errors import (
    ConflictError,
    InvalidRequestError,
    NotAllowedError,
    NotFoundError,
    ServiceError,
    StillRunningError,
    UsageError,
)


@contextmanager
def connect(url: str | None = None) -> Iterator[Client]:
    """The service that the environment, or `--url`, names."""
    with service_exit_codes(), Client(url) as service:
        yield service


@contextmanager
def service_exit_codes() -> Iterator[None]:
    """Gives every error of the client the exit code that docs/cli.md promises."""
    try:
        yield
    except (ServiceError, UsageError) as error:
        error.__dict__["exit_code"] = exit_code_for(error)
        raise


def exit_code_for(error: ServiceError | UsageError) -> int:
    if isinstance(error, ServiceError) and error.code in UNMET:
        return CONSTRAINTS_UNMET
    match error:
        case StillRunningError():
            return TIMEOUT
        case ConflictError():
            return FAILED
        case UsageError() | InvalidRequestError() | NotAllowedError() | NotFoundError():
            return USAGE
        case _:
            return SERVICE_ERROR


def resolve(service: Client, run: str) -> str:
    """The id that the user means: `latest` is the newest run."""
    if run != "latest":
        return run
    newest = next(service.runs(limit=1), None)
    if newest is None:
        raise UsageError("there is no run yet: start one with `penstock submit`")
    return newest.id
