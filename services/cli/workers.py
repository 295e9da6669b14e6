"""`penstock workers`: who works for the service, and who is to begin nothing more, over REST only."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from penstock.services.cli.client import connect
from penstock.services.cli.exit_codes import OK
from penstock.services.cli.runs import JsonFlag, Url


def workers(
    action: Annotated[Literal["list", "drain"], typer.Argument(help="What to do.")] = "list",
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="drain: names from `list`.")] = None,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """List workers, or have some end their steps, begin no others, and end. To drain needs a token of scope admin."""
    if (action == "drain") != bool(names):
        raise typer.BadParameter("`drain` needs a name" if action == "drain" else "`list` takes no names")
    with connect(url) as service:
        for name in names or ():
            service.drain_worker(name)
        found = service.workers()
    if as_json:
        print(json.dumps([one.model_dump(mode="json") for one in found], indent=1))
        return OK
    for one in found:
        state = "drains" if one.drains or one.name in (names or ()) else "alive" if one.alive else "silent"
        print(f"{one.name}  {state:6}  {one.concurrency} at once  {', '.join(one.queues)}")
    return OK
