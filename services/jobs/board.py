"""The bitstream of a chosen design for its platform's board. One that cannot be built costs the run nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.compiler.backend.rtl.shell import BoardDesign, wrap_core
from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.compiler.package.bitstream import FOLDER, Bitstream, bitstream_files
from penstock.compiler.package.report import BitstreamInfo, ChipUse, PlacedPart
from penstock.compiler.platforms import Board, Resources
from penstock.profiling.open_rtl.bitstream import build_bitstream
from penstock.profiling.open_rtl.parts import parts_of
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.jobs.scheduled import Scheduled


@dataclass(frozen=True)
class BoardBuild:
    """What the report says of the bitstream, and the files of its folder in the package."""

    info: BitstreamInfo
    files: Mapping[str, bytes]


def build_for_board(
    scheduled: Scheduled, evidence: Evidence, tools: ToolRunner, progress: Callable[[str], None]
) -> BoardBuild | None:
    """None where the platform is no board of the open route, or where no more than the model was asked for."""
    board, clock_mhz = scheduled.platform.board, scheduled.lowered.design.clock_mhz
    if board is None or evidence == "modelled":
        return None
    design: BoardDesign | None = None
    try:
        design = wrap_core(scheduled.core.design, board, clock_mhz=clock_mhz)
        made = build_bitstream(design, tools, progress=progress).made
    except PenstockError as error:
        files = bitstream_files(design, None) if design is not None else {}
        clock = design.clock_mhz if design is not None else clock_mhz
        return BoardBuild(_info(board, clock, None, error.one_line()), files)
    return BoardBuild(_info(board, design.clock_mhz, made), bitstream_files(design, made))


def _info(board: Board, clock_mhz: float, made: Bitstream | None, failure: str = "") -> BitstreamInfo:
    parts = parts_of(made.netlist) if made else None
    return BitstreamInfo(
        board=board.name,
        part=board.part,
        clock_mhz=clock_mhz,
        path=f"{FOLDER}/{board.name}.bit" if made else None,
        fmax_mhz=round(made.fmax_mhz, 2) if made else None,
        usage=tuple(ChipUse(resource=u.resource, used=u.used, available=u.available) for u in made.usage)
        if made
        else (),
        core=_part(parts.core) if parts else None,
        shell=_part(parts.shell) if parts else None,
        evidence="implemented" if made else None,
        failure=failure,
    )


def _part(taken: Resources) -> PlacedPart:
    return PlacedPart(lut=taken.lut, ff=taken.ff, dsp=taken.dsp, bram18=taken.bram18)
