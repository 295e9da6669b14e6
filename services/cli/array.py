"""`penstock array`: hardware of an array of cores, made once, and a program for each shape of a kernel that it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.services.cli.exit_codes import OK, documented_exit_codes
from penstock.services.cli.mesh import file_text, setting

if TYPE_CHECKING:
    from penstock.compiler.mesh.instructed.made import ArrayMade
    from penstock.compiler.mesh.program import TileProgram


def array(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="FILE.py or FILE.py:kernel; it is never executed")],
    on: Annotated[str | None, typer.Option("--on", help="a shipped description, or a file .toml or .mlir")] = None,
    design: Annotated[
        str | None, typer.Option("--design", metavar="PLATFORM", help="find the array too, for all shapes together")
    ] = None,
    limit: Annotated[
        list[str] | None, typer.Option("--limit", help="with --design: RESOURCE=NUMBER, at most so many (dsp=64)")
    ] = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: an argument, a constant, a pointer's type")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", help="NAME=VALUE,NAME=VALUE: what differs in one program; may be given several times"),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", help="cpp, rtl: run every program on random tensors beside NumPy, in C++ or Verilator"),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="how many of the planner's best are tried")] = 16,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="folder for the hardware (rtl, hls) and the programs")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of lines")] = False,
) -> int:
    """Make hardware of an array of cores once, and a program for PROGRAM with each shape; find the array, if asked."""
    with documented_exit_codes():
        from penstock.compiler.mesh.instructed.listing import line_of, listing_of
        from penstock.profiling.arrays.tried import WAYS, try_programs

        if wrong := set(run or []) - set(WAYS):
            raise typer.BadParameter(f"{min(wrong)!r} is none of {', '.join(WAYS)}", param_hint="--run")
        if (on is None) == (design is None):
            raise typer.BadParameter("give --on MESH, or --design PLATFORM", param_hint="--on")
        if limit and design is None:
            raise typer.BadParameter("limits are for --design", param_hint="--limit")
        made = _made(_shapes(program, given or [], shape or [""]), on, design, limit or [], top)
        designed, found = made.lines, made.programs()
        if out is not None:
            made.write(out)
            if made.description:
                designed = [*designed, f"          {out / 'array.toml'} describes it, for --on"]
        for key, said in try_programs(made.array, made.plans, run or [], out).items():
            found[key] |= said
        if as_json:
            print(json.dumps({"array": made.array.text(), "programs": list(found.values()), "design": designed}))
            return OK
        lines = [f"array     {made.array.text()}", *designed]
        if out is not None:
            lines.append(
                f"hardware  {out / 'rtl'}, {out / 'hls'}: the same for every program; programs in {out / 'programs'}"
            )
        for key, plan in made.plans.items():
            lines += ["", line_of(key, plan), *(f"  {line}" for line in listing_of(plan.program))]
            lines += [f"  {line}" for line in _said(found[key])]
        print("\n".join(lines))
    return OK


def _shapes(program: str, given: list[str], shapes: list[str]) -> dict[str, list[TileProgram]]:
    from penstock.compiler.mesh.instructed.made import kernel_in_shapes

    file, _, name = program.partition(":")
    text, common = file_text(Path(file)), dict(setting(one) for one in given)
    values = {one: common | dict(setting(part, "--shape") for part in one.split(",") if part) for one in shapes}
    return kernel_in_shapes(text, name, values)


def _made(
    shapes: Mapping[str, list[TileProgram]], on: str | None, platform: str | None, limits: list[str], top: int
) -> ArrayMade:
    from penstock.compiler.mesh.description import load_machine
    from penstock.compiler.mesh.instructed.made import array_for, array_on
    from penstock.compiler.platforms.loader import load_platform
    from penstock.compiler.platforms.resources import RESOURCE_NAMES

    if platform is None:
        return array_on(load_machine(str(on)), shapes, top)
    most: dict[str, int] = {}
    for text in limits:
        resource, _, number = text.partition("=")
        if resource not in RESOURCE_NAMES or not number.isdecimal() or not int(number):
            raise typer.BadParameter(
                f"{text!r} is no RESOURCE=NUMBER of {', '.join(RESOURCE_NAMES)}", param_hint="--limit"
            )
        most[resource] = int(number)
    return array_for(load_platform(platform), most, shapes, top)


def _said(record: Mapping[str, object]) -> list[str]:
    lines: list[str] = []
    if "cpp_equal" in record:
        lines.append("its C++ answers as NumPy does")
    if "rtl_equal" in record:
        lines.append(f"in Verilator as NumPy does, in the {record['rtl_cycles']:,} cycles simulated [open-rtl]")
    return lines
