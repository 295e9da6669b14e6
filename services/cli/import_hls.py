"""`penstock import-hls`: a solution of Vitis HLS as a network that can be simulated and sized without the tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from penstock.services.cli.exit_codes import OK, documented_exit_codes


def import_hls(
    folder: Annotated[Path, typer.Argument(metavar="SOLUTION_DIR", help="a solution, or the project around one")],
    source: Annotated[Path | None, typer.Option(help="the source, where the project does not name one")] = None,
    top: Annotated[str | None, typer.Option(help="the top function, where no report names it")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the file to write; else it is printed")] = None,
) -> int:
    """Write SOLUTION_DIR as NETWORK.json: II, depths and FIFO depths of its reports, tokens of its source."""
    from penstock.profiling.networks.procnet import parse_procnet
    from penstock.profiling.networks.simulated import simulate_network
    from penstock.profiling.solutions.import_hls import import_solution

    with documented_exit_codes():
        found = import_solution(folder, source, top)
        text = json.dumps(found.to_json(), indent=1) + "\n"
        if out is None:
            print(text, end="")
            return OK
        out.write_text(text)
        print(f"written   {out}: {found.top} of {found.source.name}")
        print("\n".join(list(simulate_network(parse_procnet(text, out.name)).lines())[1:]))
        for note in found.notes:
            print(f"note      {note}")
    return OK
