"""What `penstock compile` and `penstock explore` have in common: options, checks before the slow part, output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import EVIDENCE, RUNGS, Evidence
from penstock.compiler.package import Report, check_folder, write_archive, write_folder
from penstock.compiler.package.report import Amount, BitstreamInfo
from penstock.compiler.pipeline import QUANTISATIONS
from penstock.compiler.platforms import Platform, load_platform
from penstock.dse.rungs import usable
from penstock.services.cli.asked import AskedOptions
from penstock.services.jobs.package import Built
from penstock.services.run_options import DEFAULT_PLATFORM, BitstreamTarget
from penstock.web.text import beside_bound

BITSTREAMS: tuple[str, ...] = get_args(BitstreamTarget)


@dataclass(frozen=True)
class CompileTarget:
    """For what the model is compiled."""

    platform: Platform
    clock_mhz: float
    quantize: str | None
    evidence: Evidence
    fallback: str = ""
    """Why figures will be of weaker evidence, where this machine lacks what it takes."""


def check_target(asked: AskedOptions, clock: float | None, design: Design | None) -> CompileTarget:
    """Everything that can be refused before PyTorch is loaded. A given design decides; options may repeat it."""
    platform, quantize, evidence = asked["platform"], asked["quantize"], asked["evidence"]
    if evidence not in EVIDENCE:
        raise PenstockError(
            code="unknown-evidence", what=f"there is no evidence {evidence!r}", where="--evidence",
            limit="known: " + ", ".join(EVIDENCE), hint="see docs/report.md",
        )  # fmt: skip
    if evidence not in RUNGS:
        raise PenstockError(
            code="evidence-not-available", what=f"no tool for {evidence!r} figures is set up", where="--evidence",
            limit="available: " + ", ".join(RUNGS), hint="leave the option out",
        )  # fmt: skip
    if quantize is not None and quantize not in QUANTISATIONS:
        raise PenstockError(
            code="unknown-quantisation", what=f"there is no quantisation {quantize!r}", where="--quantize",
            limit="known: " + ", ".join(QUANTISATIONS), hint="leave the option out for the model's own types",
        )  # fmt: skip
    if design is not None:
        given = {"--platform": (platform, design.platform), "--quantize": (quantize, design.quantize),
                 "--clock": (clock, design.clock_mhz)}  # fmt: skip
        for option, (asked, decided) in given.items():
            if asked is not None and asked != decided:
                raise PenstockError(
                    code="design-conflict", what=f"{option} {asked} contradicts the design's {decided}",
                    where="--design", hint=f"leave {option} out, or edit the design",
                )  # fmt: skip
        platform, clock, quantize = design.platform, design.clock_mhz, design.quantize
    board = load_platform(platform or DEFAULT_PLATFORM)
    clock = board.check_clock(board.clock_mhz if clock is None else clock)
    _, fallback = usable(evidence, board, clock)
    return CompileTarget(board, clock, quantize, evidence, fallback)


def check_bitstream(asked: str | None) -> None:
    if asked not in (None, *BITSTREAMS):
        raise PenstockError(
            code="unknown-bitstream", what=f"there is no bitstream {asked!r}", where="--bitstream",
            limit="known: " + ", ".join(BITSTREAMS), hint="leave the option out",
        )  # fmt: skip


def check_one_size(dims: Sequence[str] | None, what: str) -> None:
    if dims:
        raise PenstockError(
            code="bad-option", what=f"{what} is of one size, and --dim says a range of them", where="--dim",
            hint="leave --dim out, and give the model that size, as in zoo:gpt2?seq=32",
        )  # fmt: skip


def write_output(built: Built, out: Path) -> Path:
    """The unpacked package and its archive beside it, in place of an older package."""
    try:
        write_folder(built.contents, out)
        return write_archive(built.contents, out)
    except OSError as error:
        raise PenstockError(
            code="output-not-writable", what=f"cannot write the package: {error.strerror or error}", where=str(out),
            hint="choose another folder with -o",
        ) from error  # fmt: skip


def save_design(design: Design, path: Path) -> None:
    try:
        design.save(path)
    except OSError as error:
        raise PenstockError(
            code="output-not-writable", what=f"cannot write the design: {error.strerror or error}", where=str(path),
            hint="choose another file with --save",
        ) from error  # fmt: skip


def check_output(out: Path) -> None:
    """Say now, not after minutes, that the package cannot be written there."""
    check_folder(out)
    existing = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PenstockError(
            code="output-not-writable", what="this folder cannot be written to", where=str(existing),
            hint="choose another folder with -o",
        )  # fmt: skip


def summary_lines(report: Report, archive: Path) -> list[str]:
    """The headline figures, each with its evidence."""
    timing, resources, csim, pytorch = report.timing, report.resources, report.verify.csim, report.verify.pytorch
    shares = [(a.share, name) for name, a in _amounts(report) if a.share is not None]
    share, name = max(shares) if shares else (None, "")
    lines = [
        f"design      {report.design.digest[:12]} for {report.platform.title} at {report.design.clock_mhz:g} MHz",
        f"latency     {_number(timing.latency_us)} µs, {_number(timing.latency_cycles)} cycles {_tag(timing.evidence)}",
        f"resources   {_share(share)} {name} {_tag(resources.evidence)}",
        f"C++         {_equal(csim.equal)} the interpreter, {csim.values} values {_tag(csim.evidence)}",
        f"{'PyTorch  ' if pytorch.reference == 'PyTorch' else 'reference'}   largest difference "
        f"{_number(pytorch.max_abs_error)}, tolerance {_number(pytorch.tolerance)} {_tag(pytorch.evidence)}",
    ]
    if (by := timing.lengths) is not None:
        first, last = (
            f"{one.latency_cycles:,} cycles at {', '.join(f'{name}={n}' for name, n in one.sizes.items())}"
            for one in (by.runs[0], by.runs[-1])
        )
        lines.insert(2, f"by length   {first}, {last}, simulated {by.said} {_tag(by.evidence)}")
    if report.design.elements:
        shared = len(report.design.elements)
        count = sum(len(one.instances) for one in report.design.elements)
        steps = "; ".join(report.design.mapping)
        lines.insert(1, f"mapping     {count} instances on {shared} element{'s' if shared > 1 else ''}: {steps}")
        for body in {one.body.name: one.body for one in report.design.elements if one.body is not None}.values():
            lines.insert(2, f"by hand     {body.symbol}, II {body.ii}, depth {body.depth}: {body.checked}")
    if report.exploration is not None and (bound := report.exploration.bound) is not None:
        gap = "" if bound.gap_pct is None else f"; the chosen design is {beside_bound(bound.gap_pct)}"
        figure = bound.figure.replace("_", " ")
        said = f"no design is below {bound.value:,.6g} {figure}{gap}" if bound.value else "none"
        lines.insert(2, f"bound       {said}: {bound.reason}")
    if (rtl := report.verify.rtl) is not None:
        shown = f"{rtl.bits_equal} of {rtl.values} values the same bits, {rtl.samples} runs {_tag(rtl.evidence)}"
        lines.append(f"RTL         {'agrees with' if rtl.ok else 'DIFFERS FROM'} the interpreter, {rtl.note}: {shown}")
    if (made := report.synthesis) is not None:
        again = made.retimed
        lines.insert(2, f"            {_number(again.latency_cycles)} cycles {_tag(again.evidence)}, {again.basis}")
    if report.bitstream is not None:
        lines.append(f"bitstream   {_bitstream(report.bitstream)}")
    if report.host is not None:
        count = sum(len(operations) for _, operations in report.host.stages)
        whole = report.verify.whole
        agreed = "not compared" if whole is None else "as PyTorch" if whole.ok else "DIFFERS FROM PyTorch"
        if whole is not None and whole.choices and whole.choices_equal != whole.choices:
            agreed += f", {whole.choices_equal} of {whole.choices} choices between calls are PyTorch's"
        lines.append(f"host        {count} operations in PyTorch, listed in report.html; the whole: {agreed}")
    if report.accuracy is not None:
        found = report.accuracy
        lines.append(
            f"accuracy    {_share(found.accelerator_accuracy)}, PyTorch {_share(found.float_accuracy)}, "
            f"same class {_share(found.agreement)} of {found.examples} {_tag(found.evidence)}"
        )
    if (text := report.language) is not None:
        cosine = (
            ""
            if text.cosine_mean is None
            else f", scores' cosine {text.cosine_mean:.4f} ({text.cosine_least:.4f} at least)"
        )
        lines.append(
            f"perplexity  {text.accelerator_perplexity:.3f}, PyTorch {text.float_perplexity:.3f} ({text.loss:+.2%}), "
            f"on {text.tokens} tokens of {text.dataset}{cosine} {_tag(text.evidence)}"
        )
    unexplained = [*report.left_out, *(report.exploration.left_out if report.exploration else ())]
    lines += [f"left out    {one.part}: {one.why}" for one in unexplained]
    return [*lines, f"package     {archive}"]


def _bitstream(built: BitstreamInfo) -> str:
    if built.path is None:
        return f"none: {built.failure}"
    clock = built.fmax_mhz if built.reached_mhz is None else built.reached_mhz
    reached = "" if clock is None else f", {clock:g} MHz {_tag(built.evidence)}"
    return f"{built.path} for {built.board}{', emulation' if built.target == 'hw_emu' else ''}{reached}"


def _amounts(report: Report) -> list[tuple[str, Amount]]:
    r = report.resources
    return [("lut", r.lut), ("ff", r.ff), ("dsp", r.dsp), ("bram18", r.bram18), ("uram", r.uram)]


def _number(value: float | None) -> str:
    if value is None:
        return "not measured"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.2%}"


def _equal(value: bool | None) -> str:
    return {True: "equals", False: "DIFFERS FROM", None: "was not compared with"}[value]


def _tag(evidence: str | None) -> str:
    return f"[{evidence or 'not measured'}]"
