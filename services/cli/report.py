"""`penstock report`: what the reports in a folder of AMD's tools say, in words, as a page and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from penstock.services.cli.exit_codes import OK, documented_exit_codes


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="a solution, or the folder that v++ or Vivado worked in")
    ],
    top: Annotated[str | None, typer.Option(help="the top function, where no report names it")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for report.html and report.json")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of lines")] = False,
) -> int:
    """Say what csynth, co-simulation, Vivado and the link reported below DIR, and what of it cannot be relied on."""
    from penstock.profiling.solutions.found import find_reports
    from penstock.profiling.solutions.page import lines_of, page_of

    with documented_exit_codes():
        found = find_reports(folder, top)
        text = json.dumps(found.to_json(), indent=1) + "\n"
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / "report.json").write_text(text)
            (out / "report.html").write_text(page_of(found))
        print(text if as_json else "\n".join(lines_of(found)), end="" if as_json else "\n")
        if out is not None and not as_json:
            print(f"written   {out / 'report.html'}, {out / 'report.json'}")
    return OK
