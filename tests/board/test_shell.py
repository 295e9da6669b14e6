"""The shell's parts that need no tool: clocks, constraints, buffers, board files."""

from __future__ import annotations

import pytest

from penstock.compiler.backend.rtl import RtlDesign, RtlPort
from penstock.compiler.backend.rtl.shell import UartLink, wrap_core
from penstock.compiler.backend.rtl.shell.pll import COMPARED_MHZ, OSCILLATOR_MHZ, OUTPUT_MHZ, find_pll
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Board, load_platform, parse_platform
from tests.board.folder import wrapped
from tests.board.hand_core import hand_core
from tests.platforms.test_platforms import GOOD


def board_of(name: str) -> Board:
    board = load_platform(name).board
    assert board is not None
    return board


@pytest.mark.parametrize("source", [12.0, 25.0, 50.0, 100.0])
@pytest.mark.parametrize("wanted", [11.0, 33.3, 48.0, 50.0, 62.5, 77.7, 100.0, 130.0])
def test_a_pll_stays_within_its_limits_and_below_the_clock_that_was_asked_for(source: float, wanted: float) -> None:
    pll = find_pll(source, wanted)
    if pll is None:
        assert source == wanted
        return
    assert 0.98 * wanted <= pll.output_mhz <= wanted + 1e-6
    assert COMPARED_MHZ[0] <= source / pll.reference <= COMPARED_MHZ[1]
    assert OSCILLATOR_MHZ[0] <= pll.oscillator_mhz <= OSCILLATOR_MHZ[1]
    feedback = pll.oscillator_mhz / pll.inner
    assert OUTPUT_MHZ[0] <= feedback <= OUTPUT_MHZ[1]
    assert feedback / pll.feedback == pytest.approx(source / pll.reference)


def test_round_clocks_are_met_exactly() -> None:
    pairs = [(12.0, 50.0), (12.0, 60.0), (25.0, 50.0), (25.0, 80.0), (25.0, 100.0), (12.0, 100.0)]
    clocks = [find_pll(source, wanted) for source, wanted in pairs]
    assert [pll.output_mhz if pll else None for pll in clocks] == pytest.approx([wanted for _, wanted in pairs])


def test_a_clock_that_no_pll_makes_is_refused() -> None:
    with pytest.raises(PenstockError, match=r"no PLL makes 0.5 MHz of 25 MHz"):
        find_pll(25.0, 0.5)


def test_every_pin_of_the_top_has_a_place() -> None:
    for name in ("ulx3s-85f", "ecp5-evn"):
        design = wrapped(platform=name)
        top = design.rtl.files["penstock_board.sv"]
        located = {line.split('"')[1]: line.split('"')[3] for line in design.constraints.splitlines() if "COMP" in line}
        for pin in ("clock", "reset_button", "uart_rx", "uart_tx"):
            assert pin in located
            assert pin in top
        assert sum(port.startswith("leds[") for port in located) == design.board.leds == 8
        assert f'FREQUENCY PORT "clock" {design.board.oscillator_mhz:g} MHZ;' in design.constraints
    assert (located["clock"], located["uart_rx"], located["uart_tx"]) == ("A10", "P2", "P3")


def test_what_lies_between_two_groups_is_hidden_from_the_host() -> None:
    ports = [(port.argument, port.direction, port.words) for port in wrapped(600).host_ports]
    assert ports == [("x", "write", 600), ("w", "write", 600), ("y", "read", 600)]


def test_the_digest_follows_the_core_the_shell_and_the_settings() -> None:
    digests = {wrapped().digest, wrapped(9).digest, wrapped(baud=115200).digest, wrapped(platform="ecp5-evn").digest}
    assert len(digests) == 4
    assert wrapped().digest == wrapped().digest


def refusal(design: RtlDesign, baud: int | None = None) -> str:
    with pytest.raises(PenstockError) as caught:
        wrap_core(design, board_of("ulx3s-85f"), UartLink(baud), clock_mhz=50.0)
    return caught.value.code


def test_cores_that_no_shell_fits_are_refused() -> None:
    core = hand_core()
    stream = RtlPort("s", "stream_in", 8, 4, "i8", None)
    other = RtlPort("mid_in", "memory_read", 64, 4, "i16", "mid")
    assert refusal(RtlDesign("c", {}, {}, (stream,))) == "no-board-for-streams"
    assert refusal(RtlDesign("c", {}, {}, core.ports[:2])) == "no-result"
    assert refusal(RtlDesign("c", {}, {}, (core.ports[2], other, core.ports[4]))) == "argument-ports-differ"
    many = tuple(RtlPort(f"p{i}", "memory_read", 8, 4, "i8", f"parameter_number_{i}") for i in range(60))
    assert refusal(RtlDesign("c", {}, {}, (*many, core.ports[4]))) == "too-many-ports"
    assert refusal(core, 12_000_000) == "baud-out-of-range"


BOARD = """
[board]
oscillator_mhz = 25.0
baud = 3000000
leds_active_low = false
reset_active_low = true
load = ["program {bitstream}"]
pin = [
    { signal = "clock", site = "A1", io_type = "LVCMOS33", pull = "NONE" },
    { signal = "uart_rx", site = "A2", io_type = "LVCMOS33", pull = "UP" },
    { signal = "uart_tx", site = "A3", io_type = "LVCMOS33", pull = "UP" },
    { signal = "reset_button", site = "A4", io_type = "LVCMOS33", pull = "UP" },
    { signal = "led0", site = "B1", io_type = "LVCMOS33", pull = "NONE" },
    { signal = "led1", site = "B2", io_type = "LVCMOS33", pull = "NONE" },
    { signal = "led2", site = "B3", io_type = "LVCMOS33", pull = "NONE" },
]
"""


def test_a_board_is_read_from_its_platform_file() -> None:
    board = parse_platform(GOOD + BOARD, "here").board
    assert board is not None
    assert (board.name, board.leds, board.pins[1].site) == ("toy", 3, "A2")
    assert parse_platform(GOOD, "here").board is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("oscillator_mhz = 25.0\n", "", "board: field 'oscillator_mhz' is missing"),
        ('signal = "uart_rx"', 'signal = "uart_rx", volts = 3', "unknown field 'volts'"),
        ('signal = "led1"', 'signal = "led3"', "signal 'led1' is on 0 pins"),
        ('signal = "led2"', 'signal = "led1"', "signal 'led1' is on 2 pins"),
        ('signal = "led2"', 'signal = "buzzer"', "signal 'led2' is on 0 pins"),
        ('site = "A2"', 'site = "A1"', "site 'A1' is used twice"),
        ('pull = "UP"', 'pull = "SIDEWAYS"', "field 'pull' is 'SIDEWAYS'"),
        ("{bitstream}", "it", "field 'load' names no command"),
        ("baud = 3000000", "baud = 3", "field 'baud' is 3"),
    ],
)
def test_a_board_that_is_wrong_is_refused_by_name(old: str, new: str, message: str) -> None:
    text = GOOD + BOARD.replace(old, new, 1)
    with pytest.raises(PenstockError) as caught:
        parse_platform(text, "here")
    assert caught.value.code == "bad-platform-file"
    assert message in caught.value.one_line()
