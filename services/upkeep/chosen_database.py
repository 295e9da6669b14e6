"""The database of a service for upkeep: the one that is named, that of a service that runs here, or of one at rest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.compiler.errors import PenstockError
from penstock.services.settings import Settings
from penstock.services.supervisor.home import Home
from penstock.services.supervisor.postgres import EmbeddedPostgres


@contextmanager
def database_of(settings: Settings, *, fresh: bool = False) -> Iterator[str]:
    """Its address. A service at rest has its Postgres started for the block; with `fresh` one is made on a new folder,
    and goes again if the block fails."""
    if settings.database_url:
        yield settings.database_url
        return
    home = Home(settings.home)
    there = (home.postgres / "PG_VERSION").exists()
    if fresh and there:
        raise PenstockError(
            code="not-empty", what="there is a service in this folder already", where=str(home.root),
            hint="set PENSTOCK_HOME to a new folder: nothing is ever overwritten",
        )  # fmt: skip
    if not fresh and not there:
        raise PenstockError(
            code="no-service", what="there is no service in this folder", where=str(home.root),
            hint="set PENSTOCK_HOME to the folder of one, or PENSTOCK_DATABASE_URL",
        )  # fmt: skip
    if home.running() is not None:
        yield EmbeddedPostgres(home.postgres, home.sockets).url
        return
    home.prepare()
    home.lock()
    server = EmbeddedPostgres(home.postgres, home.make_sockets(), log=home.logs / "postgres.log")
    try:
        server.start()
        yield server.url
    except BaseException:
        server.stop()
        if fresh:
            shutil.rmtree(home.postgres, ignore_errors=True)
        raise
    finally:
        server.stop()
        home.remove_sockets()
        home.release()
