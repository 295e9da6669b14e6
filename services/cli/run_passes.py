"""`penstock compile --pass NAME FILE.mlir`: single passes on IR as text; `--list-passes`: which there are."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import typer

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError


def list_passes(asked: bool) -> None:
    """Print every pass with what it takes, and end."""
    if not asked:
        return
    from penstock.compiler.transforms.registry import PASSES

    for name, one in PASSES.items():
        options = " ".join(field.name for field in fields(one))
        does = (sys.modules[one.__module__].__doc__ or "").partition("\n")[0]
        print(f"{name:<22}{one.takes:<9}{options:<20}{does}".rstrip())
    raise typer.Exit


def show_passes(
    file: str, names: list[str], platform: str, clock_mhz: float, given: Design | None, out: Path | None
) -> int:
    """Run the passes on the file's module and print what they make of it, or write it to a file."""
    from penstock.compiler.transforms.registry import parse_passes

    specs = [spec for name in names for spec in parse_passes(name)]

    from penstock.compiler.pipeline.readable import readable
    from penstock.compiler.pipeline.single import Purpose, read_ir, run_passes

    program = run_passes(read_ir(Path(file)), specs, Purpose(platform, clock_mhz, given))
    text = readable(program.module)
    if out is None:
        print(text, end="")
        return 0
    try:
        out.write_text(text)
    except OSError as error:
        raise PenstockError(
            code="output-not-writable", what=f"cannot write the module: {error.strerror or error}", where=str(out),
            hint="choose another file with -o",
        ) from error  # fmt: skip
    return 0
