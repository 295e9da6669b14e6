"""`penstock analyse`: somebody's HLS C++ kernel, its cycles, what waits for what, and why, without a vendor's tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.compiler.errors import PenstockError
from penstock.services.cli.exit_codes import FAILED, OK, documented_exit_codes

if TYPE_CHECKING:
    from penstock.profiling.kernels.analysis import Analysis
    from penstock.profiling.kernels.fix import FixedKernel
    from penstock.profiling.kernels.values import ValueCheck

_MOST_LINES = 20


def analyse(
    kernel: Annotated[Path, typer.Argument(metavar="KERNEL.cpp", help="a source of Vitis HLS C++")],
    top: Annotated[str, typer.Option(help="its top function")],
    clock: Annotated[float, typer.Option(help="MHz")] = 300.0,
    part: Annotated[str, typer.Option(help="the FPGA")] = "xcu280-fsvh2892-2L-e",
    reports: Annotated[
        Path | None, typer.Option(help="a solution's syn/report folder: its II and depth are used")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder for analysis.html and analysis.json")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="compile and run it on random numbers, beside its nests and their C++")
    ] = False,
    rtl: Annotated[
        bool,
        typer.Option("--rtl", help="--check, and its nests as SystemVerilog in Verilator"),
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="write the source back with better pragmas, and nothing else changed")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of lines")] = False,
) -> int:
    """Say how long KERNEL.cpp takes, what limits it in which line, and how deep its FIFOs must be."""
    from penstock.profiling.kernels.analysis import analyse_kernel
    from penstock.profiling.kernels.fix import fix_kernel
    from penstock.profiling.kernels.page import page_of
    from penstock.profiling.kernels.values import check_values

    with documented_exit_codes():
        try:
            found = analyse_kernel(kernel, top, clock, part, reports)
            checked = check_values(kernel, top, clock, out=out, rtl=rtl) if check or rtl else None
            fixed = fix_kernel(kernel, top, clock, part) if fix else None
        except PenstockError as error:
            for other in error.others:
                print(f"penstock: {other.one_line()}", file=sys.stderr)
            raise
    values = {"values": checked.to_json()} if checked is not None else {}
    changes = {"fix": fixed.to_json()} if fixed is not None else {}
    text = json.dumps({**found.to_json(), **values, **changes}, indent=1) + "\n"
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "analysis.json").write_text(text)
        (out / "analysis.html").write_text(page_of(found))
    lines = [
        *_lines(found),
        *(_checked(checked) if checked is not None else []),
        *(_fixed(fixed) if fixed is not None else []),
    ]
    if fixed is not None and fixed.changes:
        written = out / kernel.name if out is not None else kernel
        written.write_bytes(fixed.text.encode(errors="surrogateescape"))
        lines.append(f"written   {written}")
    if out is not None:
        lines.append(f"written   {out / 'analysis.html'}, {out / 'analysis.json'}")
        lines += [f"written   {out / 'hls' / 'penstock_top.cpp'}, the C++ of its nests"] if checked is not None else []
    print(text if as_json else "\n".join(lines), end="" if as_json else "\n")
    return FAILED if found.deadlock or (checked is not None and not checked.equal) else OK


def _checked(checked: ValueCheck) -> list[str]:
    """A line for each level that was held against the source, and one for the cycles of hardware."""
    cycles = [
        f"cycles    {level.cycles:,} of the SystemVerilog [open-rtl], {level.simulated_cycles:,} by the simulator"
        for level in checked.levels
        if level.cycles is not None
    ]
    values = [
        f"values    {level.level}: {level.compared:,} results as the source gives them, bit for bit"
        if not level.different
        else f"values    {level.level}: {level.different:,} of {level.compared:,} results differ; {level.first}"
        for level in checked.levels
    ]
    return [*values, *cycles]


def _fixed(fixed: FixedKernel) -> list[str]:
    """What was changed, and what it is worth."""
    if not fixed.changes:
        return [f"fix       nothing to change: {fixed.trials} changes of pragmas were tried, none is better"]
    before, after = (
        "it stops for ever" if cycles is None else f"{cycles:,} cycles"
        for cycles in (fixed.latency_before, fixed.latency)
    )
    return [
        f"fix       {before} -> {after} [simulated], {fixed.fifo_bits_before:,} -> {fixed.fifo_bits:,} bits of FIFOs",
        *(f"          {change}" for change in fixed.changes),
    ]


def _lines(found: Analysis) -> list[str]:
    lines = [f"kernel    {found.top} of {found.kernel}, {found.part} at {found.clock_mhz:g} MHz"]
    if found.deadlock:
        lines.append(f"deadlock  {found.deadlock}")
    else:
        lines.append(
            f"latency   {found.latency:,} cycles, a new run every {found.interval:,} "
            f"[simulated, schedules {found.schedule}]"
        )
    lines.append(
        "area      " + ", ".join(f"{value:,} {name.upper()}" for name, value in found.area.items()) + " [modelled]"
    )
    slow = [loop for loop in found.loops if loop.ii > 1]
    lines += [
        f"loop      {x.where} {x.loop}: II = {x.ii}, "
        + (f"{x.limit} ({x.limit_at})" if x.limit else "as it is asked for")
        for x in slow[:_MOST_LINES]
    ]
    waiting = sorted(((c, t.name, ch, why) for t in found.tasks for ch, why, c in t.waits), reverse=True)
    lines += [
        f"wait      {name} {cycles:,} cycles for {channel} ({why})"
        for cycles, name, channel, why in waiting[:_MOST_LINES]
    ]
    if found.fifos:
        lines.append(f"fifos     {found.fifos_said}")
        changed = [fifo for fifo in found.fifos if fifo.depth != fifo.needed]
        lines += [f"          {f.name}: depth {f.depth} -> {f.needed} ({f.where})" for f in changed[:_MOST_LINES]]
    lines += [f"unused    {line}" for line in found.unused[:_MOST_LINES]]
    lines += [f"note      {line}" for line in found.notes[:_MOST_LINES]]
    return lines
