"""`penstock pin | unpin | delete | gc`: what is kept and what goes, over REST only."""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer
from rich.console import Console

from penstock.services.cli.client import connect, resolve
from penstock.services.cli.exit_codes import OK
from penstock.services.cli.runs import JsonFlag, RunArgument, Url, print_json
from penstock.services.cli.watching import follow
from penstock.services.client.states import is_over

_AGE = re.compile(r"(\d+(?:\.\d+)?)([hdw])")
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0}
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def pin(run: RunArgument, as_json: JsonFlag = False, url: Url = None) -> int:
    """Keep a run: until it is unpinned it is neither deleted nor collected."""
    return _pinned(run, True, as_json, url)


def unpin(run: RunArgument, as_json: JsonFlag = False, url: Url = None) -> int:
    """Keep a run no longer."""
    return _pinned(run, False, as_json, url)


def delete(
    names: Annotated[list[str], typer.Argument(metavar="RUN|MODEL…", help="Ids of runs and of models.")],
    cancel: Annotated[bool, typer.Option("--cancel", help="Stop runs that are going first.")] = False,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Delete runs with their trials and files, and models of which there are no runs. There is no way back."""
    freed = 0
    with connect(url) as service:
        for name in names:
            if name.startswith("mdl_"):
                service.delete_model(name)
                continue
            run = resolve(service, name)
            if cancel and not is_over(service.run(run)):
                service.cancel(run)
                follow(service, run, Console(stderr=True))
            freed += service.delete_run(run).bytes
    if as_json:
        print(json.dumps({"deleted": names, "bytes": freed}))
    else:
        print(f"deleted {len(names)}, {size_text(freed)} are free within the hours to come")
    return OK


def gc(
    older_than: Annotated[str, typer.Option(help="Age: 30d, 12h, 8w. Runs count from their end.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and leave it.")] = False,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Remove runs that ended long ago and are not pinned, models without runs, and files that nobody needs.

    Needs a token of scope admin.
    """
    days = _days(older_than)
    with connect(url) as service:
        found = service.collect(days, dry_run=dry_run)
        total = found
        while found.more:
            found = service.collect(days, dry_run=dry_run)
            total = found.model_copy(
                update={name: getattr(total, name) + getattr(found, name) for name in ("runs", "models", "bytes")}
            )
    if as_json:
        print_json(total)
    else:
        would = "would remove" if dry_run else "removed"
        print(f"{would} {total.runs} runs and {total.models} models, {size_text(total.bytes)} of files")
    return OK


def size_text(count: int) -> str:
    """3 bytes, 1.2 MB."""
    value, unit = float(count), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def _days(age: str) -> float:
    match = _AGE.fullmatch(age.strip())
    if match is None:
        raise typer.BadParameter(f"'{age}' is no age: write 30d, 12h or 8w")
    return float(match[1]) * _DAYS[match[2]]


def _pinned(run: str, pinned: bool, as_json: bool, url: str | None) -> int:
    with connect(url) as service:
        name = resolve(service, run)
        found = service.pin(name) if pinned else service.unpin(name)
    if as_json:
        print_json(found)
    else:
        print(f"{found.id}: {'pinned' if found.pinned else 'not pinned'}")
    return OK
