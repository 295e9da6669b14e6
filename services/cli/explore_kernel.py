"""`penstock explore KERNEL.cpp`: a C++ kernel's loops and arrays built anew, so that it is fast within limits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.compiler.errors import PenstockError
from penstock.services.cli.asked import AskedOptions, flags_given
from penstock.services.cli.exit_codes import FAILED, OK, documented_exit_codes
from penstock.services.cli.stages import Stages
from penstock.services.jobs.kernels import TAKEN, limits_of, objective_of
from penstock.services.run_options import DEFAULT_PLATFORM, EXPLORE

if TYPE_CHECKING:
    from penstock.profiling.kernels.explore.search import ExploredKernel


def explore_source(
    model: str, top: str | None, asked: AskedOptions, clock: float | None, out: Path | None, save: Path | None,
    *, as_json: bool,
) -> int:  # fmt: skip
    """Print what became of the kernel, and write its new source where --out says."""
    from penstock.compiler.platforms import load_platform
    from penstock.profiling.kernels.explore.limits import TRIALS
    from penstock.profiling.kernels.explore.search import explore_kernel

    with documented_exit_codes():
        if out is not None and out.exists() and not out.is_dir():
            raise _unwritable(out, "there is a file of that name")
        if top is None:
            raise PenstockError(
                code="no-top", what="a C++ kernel has a top function, and none is named", where=model,
                hint="name it: --top FUNCTION",
            )  # fmt: skip
        given = flags_given(asked, EXPLORE)
        if odd := [flag for name, flag in given.items() if name not in TAKEN] + (["--save"] if save else []):
            raise PenstockError(
                code="bad-option", what=f"{', '.join(odd)} of a C++ kernel", where=model,
                limit="a kernel keeps its own types, and takes --top, --platform, --clock, --trials, --objective, "
                "--limit and --out", hint="leave it out",
            )  # fmt: skip
        objective = objective_of(asked["objectives"] or (), model)
        platform = load_platform(asked["platform"] or DEFAULT_PLATFORM)
        clock_mhz = platform.check_clock(platform.clock_mhz if clock is None else clock)
        limits = limits_of(asked["limits"] or (), platform)
        try:
            with (stages := Stages()).running():
                stages.begin("trying sources")
                most = asked["trials"] or TRIALS
                found = explore_kernel(
                    Path(model), top, clock_mhz, platform.part, limits, objective=objective, trials=most,
                    watch=lambda tried: stages.note(f"{tried.number + 1} of at most {most}"),
                )  # fmt: skip
        except PenstockError as error:
            for other in error.others:
                print(f"penstock: {other.one_line()}", file=sys.stderr)
            raise
    lines = _lines(found)
    text = json.dumps(found.to_json(), indent=1) + "\n"
    if not found.equal:
        lines.append("note      a source with other values is not written: please report this kernel")
    elif out is not None:
        with documented_exit_codes():
            lines.append(f"written   {_write(out, Path(model), found.text, text)}, {out / 'exploration.json'}")
    else:
        lines.append("note      keep the new source with --out FOLDER")
    print(text if as_json else "\n".join(lines), end="" if as_json else "\n")
    return OK if found.equal else FAILED


def _write(out: Path, model: Path, source: str, report: str) -> Path:
    """The new source beside its report; never over the old one."""
    written = out / model.name
    if written.resolve() == model.resolve():
        written = out / f"explored_{written.name}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        written.write_text(source)
        (out / "exploration.json").write_text(report)
    except OSError as error:
        raise _unwritable(out, f"cannot write the new source: {error.strerror or error}") from error
    return written


def _unwritable(out: Path, what: str) -> PenstockError:
    return PenstockError(code="output-not-writable", what=what, where=str(out), hint="choose another folder with --out")


def _lines(found: ExploredKernel) -> list[str]:
    ratio = found.latency_before / max(1, found.latency)
    lines = [
        f"kernel    {found.top} of {found.kernel}, {found.part} at {found.clock_mhz:g} MHz",
        f"latency   {found.latency_before:,} -> {found.latency:,} cycles, {ratio:,.1f} times as fast "
        f"[simulated, schedules modelled], {found.trials} sources tried",
        f"runs      one every {found.interval_before:,} -> {found.interval:,} cycles"
        + (f", {found.tasks} tasks at the same time" if found.tasks > 1 else ""),
        "area      " + ", ".join(
            f"{found.area_before[name]:,} -> {found.area[name]:,} {name.upper()}" for name in found.area
        ) + " [modelled]",
        "limits    " + ", ".join(f"{value:,} {name.upper()}" for name, value in found.limits.items()),
    ]  # fmt: skip
    if not found.nests:
        lines.append("source    as it was: none of the sources tried is better, or it has no loops that may be moved")
    for nest in found.nests:
        lanes = ", ".join(f"{tile} of {name}" for name, tile in nest.lanes.items())
        lines.append(
            f"nest      line {nest.line}: loops {', '.join(nest.order)}" + (f"; {lanes} at once" if lanes else "")
        )
    if found.equal:
        lines.append(f"values    {found.compared:,} words as the source leaves them, bit for bit, by g++")
    else:
        lines.append(f"values    {found.different:,} of {found.compared:,} words differ from the source's")
    return lines
