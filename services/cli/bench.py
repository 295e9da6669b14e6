"""`penstock bench`: run a program of benchmarks/ and print its figures as one object or one table."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]


class BenchError(Exception):
    """A benchmark that cannot be run, on one line."""

    exit_code = 2


def bench(
    name: Annotated[str | None, typer.Argument(help="which benchmark; without it they are listed")] = None,
    all_: Annotated[bool, typer.Option("--all", help="run every benchmark, one after the other")] = False,
    data: Annotated[Path | None, typer.Option("--data", help="folder of data, for a benchmark that reads one")] = None,
    only: Annotated[str | None, typer.Option(metavar="PATTERN", help="only rows with this in their names")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="at most so many rows")] = None,
    options: Annotated[str | None, typer.Option(metavar="TEXT", help="options for each compilation")] = None,
    keep: Annotated[Path | None, typer.Option(help="file of rows: found ones are added, not run again")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object a benchmark")] = False,
) -> int:
    """Run a benchmark and print its figures: name, machine, evidence, rows and summary."""
    registry = load_registry()
    known: dict[str, Any] = registry.BENCHMARKS
    if name is not None and name not in known:
        near = difflib.get_close_matches(name, known, 1)
        advice = f"did you mean {near[0]}? " if near else ""
        raise BenchError(f"there is no benchmark {name!r} - {advice}known: {', '.join(sorted(known))}")
    if name is None and not all_:
        for each, benchmark in sorted(known.items()):
            print(f"{each:<12}{benchmark.summary}")
        return 0
    given = {"only": only, "limit": limit, "options": options, "keep": keep}
    asked = {key: value for key, value in given.items() if value is not None}
    for each in sorted(known) if all_ else [str(name)]:
        if unknown := set(asked) - (registry.takes(each) if asked else set()):
            raise BenchError(f"the benchmark {each} takes no --{min(unknown)}")
        figures: dict[str, Any] = registry.run(each, data, **asked)
        if only is not None and not figures["rows"]:
            raise BenchError(f"no row of the benchmark {each} has {only!r} in its name or group")
        if as_json:
            print(json.dumps(figures))
        else:
            _show(figures)
    return 0


def load_registry() -> ModuleType:
    """The benchmarks lie beside the packages in the repository and are not installed with them."""
    if not (ROOT / "benchmarks" / "registry.py").is_file():
        raise BenchError("the benchmarks are not installed with penstock - run it from a checkout of the repository")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))  # before any installed package of the same name
    return import_module("benchmarks.registry")


def _show(figures: Mapping[str, Any]) -> None:
    console = Console()
    machine = figures["machine"]
    console.print(f"[bold]{figures['name']}[/] on {machine['processor']}, {machine['cores']} cores", highlight=False)
    rows: list[Mapping[str, Any]] = figures["rows"]
    if rows:
        table = Table(box=None, pad_edge=False, header_style="bold")
        columns = list(dict.fromkeys(key for row in rows for key in row))
        for column in columns:
            table.add_column(column, justify="left" if isinstance(rows[0].get(column), str) else "right")
        for row in rows:
            table.add_row(*(_text(row.get(column)) for column in columns))
        console.print(table)
    for key, value in figures["summary"].items():
        console.print(f"{key}: {_text(value)} [{figures['evidence']}]", markup=False, highlight=False)


def _text(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
