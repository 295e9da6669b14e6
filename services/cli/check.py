"""`penstock check`: what is known of a model before any search, in seconds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.services.cli.asked import AskedOptions, takes_run_options
from penstock.services.cli.exit_codes import OK, documented_exit_codes, exit_code_of
from penstock.services.jobs.model import check_reference
from penstock.services.run_options import CHECK, MODEL_HELP

if TYPE_CHECKING:
    from penstock.compiler.package.report import HostOperation
    from penstock.compiler.package.verdict import ModelVerdict, Refusal

_MOST_LISTED = 12
_MOST_WRONG = 3


@takes_run_options(CHECK)
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    asked: AskedOptions,
    clock: Annotated[float | None, typer.Option(help="MHz [default: the platform's]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of lines")] = False,
) -> int:
    """Say what of MODEL would run where, what is refused and why, how large it is; search nothing."""
    with documented_exit_codes():
        check_reference(model, asked["dims"] or ())
        from penstock.services.cli.options import check_target
        from penstock.services.cli.stages import Stages
        from penstock.services.jobs.verdict import look_at

        target = check_target({**asked, "evidence": "modelled"}, clock, None)
        with Stages().running() as stages:
            verdict = look_at(
                model, target.platform, target.clock_mhz, target.quantize, stages.begin, asked["dims"] or ()
            )
    if as_json:
        print(verdict.to_json(), end="")
    else:
        print("\n".join(_lines(verdict, target.platform.title)))
    for refusal in verdict.refusals:
        print(f"penstock: {_said(refusal)}", file=sys.stderr)
    return exit_code_of(verdict.refusals[0].code) if verdict.refusals else OK


def _lines(verdict: ModelVerdict, platform: str) -> Iterator[str]:
    yield f"model        {verdict.model} on {platform} at {verdict.clock_mhz:g} MHz"
    if verdict.inputs:
        ports = (verdict.host or verdict).inputs, (verdict.host or verdict).outputs
        takes, gives = (", ".join(f"{p.name} {list(p.shape)} {p.dtype}" for p in side) for side in ports)
        yield f"imports      takes {takes}; gives {gives}"
    if verdict.accelerator:
        products = sum(operation.reduces for operation in verdict.accelerator)
        yield f"accelerator  {len(verdict.accelerator)} operations, {products} of them sums or products of matrices"
    if wrong := sorted(
        (one for one in verdict.accelerator if one.error is not None), key=lambda one: -(one.error or 0)
    ):
        worst = ", ".join(f"'{one.layer}' by {one.error:.2%}" for one in wrong[:_MOST_WRONG])
        yield f"errors       by layer, of its largest number, beside the float model: {worst}; --json has all"
    if verdict.host is not None:
        for when, operations in verdict.host.stages:
            yield from _host(when, operations)
    elif verdict.accelerator:
        yield "host         nothing"
    if (size := verdict.size) is not None:
        where = "on the chip" if size.weights_in == "rom" else "in external memory"
        yield (
            f"size         {size.parameters:,} parameters, {size.weight_bytes:,} bytes {where} "
            f"(on-chip memory: {size.on_chip_bytes:,})"
            + (f", {size.work:,} steps of work an input" if size.work else "")
        )
    if (estimate := verdict.estimate) is not None:
        name, share = max(estimate.shares.items(), key=lambda item: item[1])
        yield (
            f"estimate     {estimate.latency_cycles:,} cycles, {estimate.latency_us:,.4g} µs, {share:.1%} of {name} "
            f"[{estimate.evidence}], the first design of a search"
        )
    for note in verdict.notes:
        yield f"note         {note}"
    count = len(verdict.refusals)
    yield f"verdict      {f'refused for {count} reason' + 's' * (count > 1) if count else 'it can be compiled'}"


def _host(when: str, operations: tuple[HostOperation, ...]) -> Iterator[str]:
    """By operation and reason: a model may have hundreds."""
    kinds = Counter((one.operation.removeprefix("aten.").split(".")[0], one.why) for one in operations)
    for (operation, why), count in kinds.most_common(_MOST_LISTED):
        times = f"{count} × " if count > 1 else ""
        yield f"host         {when} the accelerator: {times}{operation}, {why}"
    if len(kinds) > _MOST_LISTED:
        yield f"host         {when} the accelerator: {len(kinds) - _MOST_LISTED} more kinds"


def _said(refusal: Refusal) -> str:
    from penstock.compiler.errors import PenstockError

    return PenstockError(**refusal.model_dump()).one_line()
