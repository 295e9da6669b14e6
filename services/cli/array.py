"""`penstock array`: hardware of an array of cores, made once, and a program for each shape of a kernel that it runs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.compiler.errors import PenstockError
from penstock.services.cli.exit_codes import OK, documented_exit_codes
from penstock.services.cli.mesh import file_text, setting

if TYPE_CHECKING:
    from penstock.compiler.mesh.instructed.array import CoreArray
    from penstock.compiler.mesh.instructed.planned import ArrayPlan
    from penstock.compiler.mesh.program import TileProgram

WAYS = ("cpp", "rtl")


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
        from penstock.compiler.mesh.instructed.listing import line_of, listing_of, record_of

        if wrong := set(run or []) - set(WAYS):
            raise typer.BadParameter(f"{min(wrong)!r} is none of {', '.join(WAYS)}", param_hint="--run")
        if (on is None) == (design is None):
            raise typer.BadParameter("give --on MESH, or --design PLATFORM", param_hint="--on")
        if limit and design is None:
            raise typer.BadParameter("limits are for --design", param_hint="--limit")
        shapes = _shapes(program, given or [], shape or [""])
        designed: list[str] = []
        if design is not None:
            cores, plans, designed, text = _designed(shapes, design, limit or [], top)
            if out is not None:
                out.mkdir(parents=True, exist_ok=True)
                (out / "array.toml").write_text(text)
                designed.append(f"          {out / 'array.toml'} describes it, for --on")
        else:
            cores, plans = _planned(shapes, str(on), top)
        found = {key: record_of(key, plan) for key, plan in plans.items()}
        if out is not None:
            _write(out, cores, plans)
        for key, said in _tried(cores, plans, run or [], out).items():
            found[key] |= said
        if as_json:
            print(json.dumps({"array": cores.text(), "programs": list(found.values()), "design": designed}))
            return OK
        lines = [f"array     {cores.text()}", *designed]
        if out is not None:
            lines.append(
                f"hardware  {out / 'rtl'}, {out / 'hls'}: the same for every program; programs in {out / 'programs'}"
            )
        for key, plan in plans.items():
            lines += ["", line_of(key, plan), *(f"  {line}" for line in listing_of(plan.program))]
            lines += [f"  {line}" for line in _said(found[key])]
        print("\n".join(lines))
    return OK


def _shapes(program: str, given: list[str], shapes: list[str]) -> dict[str, list[TileProgram]]:
    """The kernel in every shape, with all blocks that it leaves open."""
    from penstock.compiler.mesh.instructed.planned import BLOCKS
    from penstock.compiler.mesh.triton.blocks import programs_of
    from penstock.compiler.mesh.triton.read import open_kernel

    file, _, name = program.partition(":")
    text, common = file_text(Path(file)), dict(setting(one) for one in given)
    found: dict[str, list[TileProgram]] = {}
    for one in shapes:
        values = {**common, **dict(setting(part, "--shape") for part in one.split(",") if part)}
        kernel = open_kernel(text, name, values)
        found[one or kernel.kernel.name] = programs_of(kernel, values, BLOCKS)
    return found


def _planned(shapes: Mapping[str, list[TileProgram]], on: str, top: int) -> tuple[CoreArray, dict[str, ArrayPlan]]:
    from penstock.compiler.mesh.description import load_machine
    from penstock.compiler.mesh.instructed.array import array_of
    from penstock.compiler.mesh.instructed.planned import plan_product

    machine = load_machine(on)
    cores = array_of(machine)
    return cores, {name: plan_product(programs, machine, cores, top) for name, programs in shapes.items()}


def _designed(
    shapes: Mapping[str, list[TileProgram]], name: str, limits: list[str], top: int
) -> tuple[CoreArray, Mapping[str, ArrayPlan], list[str], str]:
    """The array that was found, its programs, what is said of it, and its description."""
    from penstock.compiler.mesh.instructed.design import description_of, design_array
    from penstock.compiler.mesh.instructed.listing import design_lines
    from penstock.compiler.platforms.loader import load_platform
    from penstock.compiler.platforms.resources import RESOURCE_NAMES

    most: dict[str, int] = {}
    for text in limits:
        resource, _, number = text.partition("=")
        if resource not in RESOURCE_NAMES or not number.isdecimal() or not int(number):
            raise typer.BadParameter(
                f"{text!r} is no RESOURCE=NUMBER of {', '.join(RESOURCE_NAMES)}", param_hint="--limit"
            )
        most[resource] = int(number)
    platform = load_platform(name)
    found = design_array(shapes, platform, most, top)
    best = found.best
    text = description_of(best.array, best.scratchpad, f"array-on-{platform.name}", platform.title)
    return best.array, best.plans, design_lines(found, platform), text


def _write(out: Path, cores: CoreArray, plans: Mapping[str, ArrayPlan]) -> None:
    """What the hardware is made of, and what is loaded into it."""
    from penstock.compiler.mesh.instructed.cpp import cpp_files
    from penstock.compiler.mesh.instructed.listing import listing_of
    from penstock.compiler.mesh.instructed.loading import packed, tokens_of
    from penstock.compiler.mesh.instructed.rtl import design_of

    design_of(cores).write(out / "rtl")
    for name, text in cpp_files(cores).items():
        (out / "hls" / name).parent.mkdir(parents=True, exist_ok=True)
        (out / "hls" / name).write_text(text)
    folder = out / "programs"
    folder.mkdir(exist_ok=True)
    for number, (name, plan) in enumerate(plans.items()):
        place = {key: (plan.program.memory(key), at) for key, at in plan.program.regions.items()}
        regions = [f"{key[0]} {max(key[1], key[2])}: {memory} from word {at}" for key, (memory, at) in place.items()]
        (folder / f"{number}.txt").write_text("\n".join([name, *listing_of(plan.program), "", *regions]) + "\n")
        packed(tokens_of(plan.program)).tofile(folder / f"{number}.load")


def _tried(
    cores: CoreArray, plans: Mapping[str, ArrayPlan], ways: list[str], out: Path | None
) -> dict[str, dict[str, object]]:
    """Every program on the one C++ program and the one model of the hardware, held to NumPy."""
    if not ways:
        return {}
    import numpy as np

    from penstock.compiler.mesh.instructed.places import answer_of
    from penstock.profiling.arrays.run import ArrayInCpp, ArrayInVerilator
    from penstock.profiling.tool_runner import ToolRunner

    tools, found = ToolRunner(), dict[str, dict[str, object]]()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if out is None else out / "hls"
        cpp = ArrayInCpp.of(cores, folder, tools) if "cpp" in ways else None
        rtl = ArrayInVerilator.of(cores, tools) if "rtl" in ways else None
        for name, plan in plans.items():
            draw = np.random.default_rng(0)
            kernel = plan.program.product.program
            tensors = {
                n: draw.integers(-128, 128, t.elements).astype(np.int8)
                for n, t in kernel.tensors.items() if n not in kernel.written
            }  # fmt: skip
            wanted = answer_of(plan.program.product, tensors)
            said: dict[str, object] = {}
            if cpp is not None:
                said["cpp_equal"] = bool(np.array_equal(cpp.run(plan.program, tensors), wanted))
            if rtl is not None:
                measured = rtl.run(plan.program, tensors)
                said |= {"rtl_equal": bool(np.array_equal(measured.stored, wanted)), "rtl_cycles": measured.cycles}
            found[name] = said
            if not all(said[key] for key in said if key.endswith("_equal")):
                raise PenstockError(
                    code="array-differs", what=f"{name}: what the array answers is not what NumPy does",
                    where=kernel.name, hint="this is a defect of its program; please report it",
                )  # fmt: skip
            if rtl is not None and said["rtl_cycles"] != plan.run.cycles:
                raise PenstockError(
                    code="array-differs", what=f"{name}: {said['rtl_cycles']} cycles in Verilator",
                    where=kernel.name, limit=f"{plan.run.cycles} simulated",
                    hint="this is a defect of the simulator; please report it",
                )  # fmt: skip
    return found


def _said(record: Mapping[str, object]) -> list[str]:
    lines: list[str] = []
    if "cpp_equal" in record:
        lines.append("its C++ answers as NumPy does")
    if "rtl_equal" in record:
        lines.append(f"in Verilator as NumPy does, in the {record['rtl_cycles']:,} cycles simulated [open-rtl]")
    return lines
