"""`penstock up`: the whole service on this machine, in the foreground."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer


def up(
    port: Annotated[
        int | None, typer.Option(help="Port of pages and API; 0 takes a free one.", min=0, max=65535)
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    home: Annotated[str | None, typer.Option(help="Data folder; else PENSTOCK_HOME.")] = None,
    allow_python: Annotated[
        bool, typer.Option("--allow-python", help="Take models that are Python files: they run their sender's code.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Worker processes.", min=1, max=64)] = 1,
    json_status: Annotated[
        bool, typer.Option("--json", help="Print the status as one JSON object instead of a block.")
    ] = False,
) -> int:
    """Start Postgres, Redis, the API with its pages, and the workers; Ctrl-C stops everything in order.

    Servers that PENSTOCK_DATABASE_URL or PENSTOCK_REDIS_URL name are used instead of embedded ones.
    """
    from penstock.services.supervisor.up import Options, run

    options = Options(
        port=port, host=host, home=home, workers=workers, json_status=json_status, allow_python=allow_python
    )
    return run(options, _way_in(home))


def _way_in(home: str | None) -> Callable[[str, str], str]:
    """Has a token made for whoever starts the service, and a link for their browser."""

    def make(database_url: str, url: str) -> str:
        from penstock.db import Database
        from penstock.services.api.plumbing.accounts import first_link
        from penstock.services.supervisor.up import read_settings

        settings = read_settings()
        if home is not None:
            settings = replace(settings, home=Path(home).expanduser().absolute())
        database = Database(database_url, application="penstock-up", pool_size=1)
        try:
            return first_link(database, settings, url)
        finally:
            database.close()

    return make
