"""`penstock backup | restore`: for whoever runs the service, on its own machine or beside its database and store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.compiler.errors import PenstockError
from penstock.services.cli.exit_codes import FAILED, OK
from penstock.services.settings import Settings

DatabaseOnly = Annotated[
    bool, typer.Option("--database-only", help="Without the store and the key: for a change of Postgres.")
]
JsonManifest = Annotated[bool, typer.Option("--json", help="Print what the backup holds as JSON.")]


def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR|FILE.tar", help="A new folder, or a new file.")],
    database_only: DatabaseOnly = False,
    as_json: JsonManifest = False,
) -> int:
    """Write a backup of the service of PENSTOCK_HOME or PENSTOCK_DATABASE_URL, while it works or at rest.

    It holds everything, keys too: keep it where only you can read it.
    """
    from penstock.services.upkeep.backup import back_up
    from penstock.services.upkeep.chosen_database import database_of

    settings = Settings.from_environment()
    try:
        with database_of(settings) as url:
            made = back_up(url, settings, target.absolute(), whole=not database_only, say=_say)
    except OSError as error:
        raise PenstockError(
            code="output-unwritable", what=f"the backup cannot be written: {error.strerror}", where=str(target),
            hint="is there room, and may you write there? Nothing was left behind",
        ) from None  # fmt: skip
    manifest = made.manifest
    print(manifest.model_dump_json(indent=1) if as_json else f"{made.path}: {manifest.runs} runs, "
          f"{manifest.contents} files of {manifest.bytes:,} bytes")  # fmt: skip
    if manifest.missing:
        print(
            f"penstock: {len(manifest.missing)} files that runs refer to are not in the store any more; all else is",
            file=sys.stderr,
        )
        return FAILED
    return OK


def restore(
    source: Annotated[Path, typer.Argument(metavar="DIR|FILE.tar", help="What `penstock backup` wrote.")],
    as_json: JsonManifest = False,
) -> int:
    """Make a service of a backup: in a new PENSTOCK_HOME, or in the empty database of PENSTOCK_DATABASE_URL.

    `penstock up` then starts it, and the runs that were going go on. Nothing is ever overwritten.
    """
    from penstock.services.upkeep.archive import BackupReader
    from penstock.services.upkeep.chosen_database import database_of
    from penstock.services.upkeep.restore import restore as restored

    settings = Settings.from_environment()
    BackupReader(source.absolute()).close()  # what is none is said before a server is made for it
    with database_of(settings, fresh=True) as url:
        manifest = restored(url, settings, source.absolute(), say=_say)
    print(manifest.model_dump_json(indent=1) if as_json else f"{settings.home}: {manifest.runs} runs, "
          f"{manifest.contents} files; `penstock up` starts it")  # fmt: skip
    return OK


def _say(line: str) -> None:
    print(f"penstock: {line}", file=sys.stderr)
