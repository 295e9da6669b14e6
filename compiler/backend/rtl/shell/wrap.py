"""Puts a core on a board: clock, reset, serial link, frame buffers, and the top that connects them."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files

from penstock.compiler.backend.rtl.design import RtlDesign
from penstock.compiler.backend.rtl.shell.buffers import find_arguments
from penstock.compiler.backend.rtl.shell.constraints import preferences
from penstock.compiler.backend.rtl.shell.identity import HostPort, digest_of, identity_block
from penstock.compiler.backend.rtl.shell.pll import find_pll
from penstock.compiler.backend.rtl.shell.top_sv import IDENTITY_FILE, TOP, top_text
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Board

MODULES = (
    "uart_receiver.sv", "uart_transmitter.sv", "byte_fifo.sv", "frame_buffer.sv", "identity_rom.sv",
    "reset_generator.sv", "link.sv",
)  # fmt: skip
SHELL = files("penstock.compiler.backend.rtl.shell")
FEWEST_CLOCKS_A_BIT = 6


@dataclass(frozen=True)
class UartLink:
    """The serial link; `baud` None takes the board's."""

    baud: int | None = None


@dataclass(frozen=True)
class BoardDesign:
    """A design for one board: SystemVerilog whose top's ports are pins, the pins' places, and the host's side."""

    rtl: RtlDesign
    board: Board
    clock_mhz: float
    baud: int
    host_ports: tuple[HostPort, ...]
    digest: str
    constraints: str = field(repr=False)


def wrap_core(design: RtlDesign, board: Board, link: UartLink | None = None, *, clock_mhz: float) -> BoardDesign:
    """The design on the board, at the clock that its PLL makes: the one asked for, or the next lower one."""
    arguments = find_arguments(design)
    pll = find_pll(board.oscillator_mhz, clock_mhz)
    actual = pll.output_mhz if pll else board.oscillator_mhz
    baud = (link or UartLink()).baud or board.baud
    _check_baud(baud, actual, board)
    host_ports = tuple(argument.host for argument in arguments if argument.host is not None)
    clock_hz = round(actual * 1e6)
    block_bytes = len(identity_block(host_ports, bytes(32), clock_hz, baud))
    sources = {
        **design.files,
        **{f"penstock_{name}": SHELL.joinpath("sv", name).read_text() for name in MODULES},
        f"{TOP}.sv": top_text(design, board, arguments, pll, step_of(baud, clock_hz), block_bytes),
    }
    digest = digest_of(sources, design.data, host_ports, f"{board.name} {board.part} {clock_hz} {baud}")
    block = identity_block(host_ports, digest, clock_hz, baud)
    data = {**design.data, IDENTITY_FILE: "\n".join(f"{byte:02x}" for byte in block) + "\n"}
    rtl = RtlDesign(top=TOP, files=sources, data=data, ports=())
    return BoardDesign(rtl, board, actual, baud, host_ports, digest.hex(), preferences(board))


def step_of(baud: int, clock_hz: int) -> int:
    """What the bit clock's phase accumulator adds each cycle."""
    return round(baud * 65536 / clock_hz)


def _check_baud(baud: int, clock_mhz: float, board: Board) -> None:
    clocks = clock_mhz * 1e6 / baud
    if clocks < FEWEST_CLOCKS_A_BIT or step_of(baud, round(clock_mhz * 1e6)) < 64:
        raise PenstockError(
            code="baud-out-of-range", what=f"{baud} baud at a clock of {clock_mhz:g} MHz", where=board.name,
            limit=f"a bit takes {clocks:.3g} cycles, possible are {FEWEST_CLOCKS_A_BIT} to 1024",
            hint="choose another baud rate or a faster clock",
        )  # fmt: skip
