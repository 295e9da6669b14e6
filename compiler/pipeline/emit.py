"""Writes a lowered design as the folder that HLS tools, the C simulation and the package read."""

from __future__ import annotations

from pathlib import Path

from penstock.compiler.backend.hls import emit_hls
from penstock.compiler.backend.hls.link import LinkTarget
from penstock.compiler.backend.hls.notes import layer_notes
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.platforms import load_platform


def emit(lowered: Lowered, folder: Path, *, part: str, clock_mhz: float) -> tuple[Path, ...]:
    """hls/, csim/, link/, interface.json, and the IR of every level under ir/."""
    files = emit_code(lowered, folder, part=part, clock_mhz=clock_mhz)
    above = {"1-linalg.mlir": lowered.linalg, "2-itensor.mlir": lowered.itensor}
    levels = {**({"1-tasks.mlir": lowered.linalg} if lowered.is_tasks else above), "3-stream.mlir": lowered.stream}
    written: list[Path] = []
    (folder / "ir").mkdir(parents=True, exist_ok=True)
    for name, module in levels.items():
        path = folder / "ir" / name
        path.write_text(str(module) + "\n")
        written.append(path)
    return (*files, *written)


def emit_code(lowered: Lowered, folder: Path, *, part: str, clock_mhz: float) -> tuple[Path, ...]:
    """hls/, csim/, link/ and interface.json alone."""
    design = lowered.design
    return emit_hls(
        lowered.top,
        lowered.padded.params if lowered.program.has_weights else None,
        folder,
        title=f"{lowered.program.name} on {design.platform}",
        part=part,
        clock_ns=round(1000 / clock_mhz, 3),
        notes=layer_notes(lowered.graph, design),
        link=LinkTarget(load_platform(design.platform), clock_mhz, design.dies),
        valid=lowered.border_shapes(),
    )
