"""`penstock up`: the whole service on this machine, in the foreground."""

from __future__ import annotations

from typing import Annotated

import typer


def up(
    port: Annotated[
        int | None, typer.Option(help="Port of pages and API; 0 takes a free one.", min=0, max=65535)
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    home: Annotated[str | None, typer.Option(help="Data folder; else PENSTOCK_HOME.")] = None,
    workers: Annotated[int, typer.Option(help="Worker processes.", min=1, max=64)] = 1,
    json_status: Annotated[
        bool, typer.Option("--json", help="Print the status as one JSON object instead of a block.")
    ] = False,
) -> int:
    """Start Postgres, Redis, the API with its pages, and the workers; Ctrl-C stops everything in order.

    Servers that PENSTOCK_DATABASE_URL or PENSTOCK_REDIS_URL name are used instead of embedded ones.
    """
    from penstock.services.supervisor.up import Options, run

    return run(Options(port=port, host=host, home=home, workers=workers, json_status=json_status))
