"""`penstock simulate` and `penstock size-fifos`: networks of processes from JSON files, without any source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from penstock.compiler.errors import PenstockError
from penstock.services.cli.exit_codes import FAILED, OK, documented_exit_codes

_File = Annotated[Path, typer.Argument(metavar="NETWORK.json", help="docs/network.schema.json says what stands in it")]
_Frames = Annotated[int, typer.Option(min=1, max=1000, help="transactions in a row")]
_Json = Annotated[bool, typer.Option("--json", help="print one object instead of lines")]


def simulate(
    network: _File,
    frames: _Frames = 1,
    depth: Annotated[list[str] | None, typer.Option(help="NAME=SLOTS, another depth of a FIFO; repeatable")] = None,
    as_json: _Json = False,
) -> int:
    """Say how many cycles NETWORK.json takes, who waits for whom, and whether it stops for ever."""
    from penstock.profiling.networks.procnet import read_procnet
    from penstock.profiling.networks.simulated import simulate_network

    with documented_exit_codes():
        found = simulate_network(read_procnet(network), frames, _depths(depth or []), str(network))
        print(json.dumps(found.to_json(), indent=1) if as_json else "\n".join(found.lines()))
        return FAILED if found.result.deadlock is not None else OK


def size_fifos(
    network: _File,
    frames: _Frames = 1,
    tolerance: Annotated[float, typer.Option(min=0.0, max=1.0, help="how much later it may end, as a share")] = 0.0,
    equalisation: Annotated[
        int,
        typer.Option(min=0, max=100, help="0: none costs time; 100: as if every process were as slow as the slowest"),
    ] = 0,
    as_json: _Json = False,
) -> int:
    """Find the fewest bits of FIFO with which NETWORK.json ends as early as with unbounded ones; prints the pragmas."""
    from penstock.compiler.simulator import VITIS, Sequence
    from penstock.dse.fifo.size import size_fifos as size
    from penstock.profiling.networks.procnet import read_procnet

    with documented_exit_codes():
        design = read_procnet(network)
        parts = design.network.networks if isinstance(design.network, Sequence) else (design.network,)
        sized = [
            (part, size(part, VITIS, frames=frames, tolerance=tolerance, equalisation=equalisation))
            for part in parts if part.channels
        ]  # fmt: skip
        rows = [
            {
                "network": part.name, "fifo": channel.name, "depth": channel.depth, "needed": one.depths[channel.name],
                "bits": channel.bits, "may_be_less": channel.name in one.open,
            }
            for part, one in sized
            for channel in part.channels
            if channel.name in one.depths
        ]  # fmt: skip
        fifos = [channel for part in parts for channel in part.channels if channel.kind == "fifo"]
        now = sum((fifo.depth or 0) * fifo.bits for fifo in fifos)
        bits = sum(one.bits for _, one in sized)
        latencies = {part.name: one.latency for part, one in sized}
        if as_json:
            whole = {"network": design.name, "evidence": "simulated", "latencies": latencies, "bits": bits}
            print(json.dumps({**whole, "bits_before": now, "fifos": rows}, indent=1))
            return OK
        if not rows:
            print(f"// {design.name}: there is no FIFO to size")
            return OK
        said = ", ".join(f"{cycles:,} cycles" for cycles in latencies.values())
        print(f"// {design.name}: {bits:,} bits of FIFO instead of {now:,}; {said} [simulated]")
        for row in rows:
            print(f"#pragma HLS stream variable={row['fifo']} depth={row['needed']}")
    return OK


def _depths(given: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in given:
        name, sign, slots = text.rpartition("=")
        if not sign or not slots.isdigit() or not 1 <= int(slots) < 1 << 31:
            raise PenstockError(
                code="bad-depth", what=f"not a depth: {text!r}", where="--depth",
                hint="write NAME=SLOTS, as in --depth a=16",
            )  # fmt: skip
        found[name] = int(slots)
    return found
