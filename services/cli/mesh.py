"""`penstock mesh`: a Triton kernel planned onto an array of cores, the best plans simulated, beside a bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.compiler.errors import PenstockError
from penstock.services.cli.exit_codes import OK, documented_exit_codes

if TYPE_CHECKING:
    from penstock.compiler.mesh.machine import Machine
    from penstock.compiler.mesh.planner import Planned


def mesh(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="FILE.py or FILE.py:kernel; it is never executed")],
    on: Annotated[str, typer.Option("--on", help="a shipped description, or a file .toml or .mlir")],
    given: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: an argument, a constant, a pointer's type")
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="how many of the best by the model are simulated")] = 16,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="folder for plan.json, mesh.svg, cores.svg, program.py")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of lines")] = False,
) -> int:
    """Plan PROGRAM onto a mesh: which core runs what and when, what is broadcast, kept and hoisted."""
    with documented_exit_codes():
        from penstock.compiler.mesh.description import load_machine
        from penstock.compiler.mesh.readable import drawn_of, lines_of, report_of
        from penstock.compiler.mesh.traffic import Traffic
        from penstock.compiler.mesh.triton.blocks import plan_kernel
        from penstock.compiler.mesh.triton.read import open_kernel
        from penstock.web.mesh_view import cores_over_time_svg, mesh_svg

        values = dict(setting(text) for text in given or [])
        file, _, name = program.partition(":")
        machine = load_machine(on)
        kernel = open_kernel(file_text(Path(file)), name, values)
        planned = plan_kernel(kernel, values, machine, top)
        traffic = Traffic(machine)
        report = report_of(planned, traffic, kernel.kernel.name)
        hardware = ""
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / "plan.json").write_text(json.dumps(report, indent=1) + "\n")
            drawn = drawn_of(planned.best, traffic, kernel.kernel.name, planned.bound)
            (out / "mesh.svg").write_text(mesh_svg(drawn))
            (out / "cores.svg").write_text(cores_over_time_svg(drawn))
            hardware = _hardware(planned, machine, out / "program.py")
        lines = [*lines_of(planned, traffic, kernel.kernel.name), *([hardware] if hardware else [])]
        print(json.dumps(report) if as_json else "\n".join(lines))
    return OK


def _hardware(planned: Planned, machine: Machine, path: Path) -> str:
    """The best plan of which hardware can be made, as a task program; what is said of it."""
    from penstock.compiler.mesh.overlay.program import OverlayProgram

    path.unlink(missing_ok=True)
    first: PenstockError | None = None
    for measured in planned.measured:
        overlay = OverlayProgram(measured.plan, machine)
        try:
            path.write_text(overlay.text())
        except PenstockError as error:
            first = first or error
            continue
        note = overlay.unit_note()
        return (
            f"hardware  {path}: a plan of {measured.run.cycles:,.0f} cycles as a task program; penstock compile it"
            f"{f'; {note}' if note else ''}"
        )
    return f"hardware  not built: {first}" if first else ""


def file_text(path: Path):
    from penstock.compiler.tasks.source import ProgramText

    try:
        return ProgramText(path.name, path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise PenstockError(
            code="bad-tile-program", what=f"the file cannot be read: {type(error).__name__}", where=str(path),
            hint="give a Python file with a @triton.jit function",
        ) from None  # fmt: skip


def setting(text: str, option: str = "--set") -> tuple[str, int | float | str]:
    from penstock.compiler.mesh.triton.blocks import given_value

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise typer.BadParameter(f"{text!r} is no NAME=VALUE", param_hint=option)
    return name, given_value(value)
