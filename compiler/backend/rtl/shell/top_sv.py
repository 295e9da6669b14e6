"""The text of a board's top: pins on the outside, the core with its frame buffers and the link inside."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.backend.rtl.shell.buffers import BufferedArgument
from penstock.compiler.backend.rtl.shell.identity import HostPort
from penstock.compiler.backend.rtl.shell.pll import Pll, instance
from penstock.compiler.platforms import Board

TOP = "penstock_board"
IDENTITY_FILE = "penstock_identity.hex"


def top_text(
    design: RtlDesign,
    board: Board,
    arguments: Sequence[BufferedArgument],
    pll: Pll | None,
    step: int,
    identity_bytes: int,
) -> str:
    """One module: everything that depends on the core's ports or on the board is written out here."""
    hosts = [a.host for a in arguments if a.host is not None]
    lanes = max(port.word_bytes for port in hosts)
    body = [
        _clock(board, pll),
        _LINK.format(
            step=step, ports=len(hosts), lanes=lanes, identity_bytes=identity_bytes, file=IDENTITY_FILE,
            word_bytes=_constants([p.word_bytes for p in hosts], 16), words=_constants([p.words for p in hosts], 24),
            writable=_constants([int(p.direction == "write") for p in hosts], 1), top_bit=lanes * 8 - 1,
        ),
        *[_argument(argument) for argument in arguments],
        _read_multiplexer(arguments, lanes * 8),
        _core(design),
        _lights(board),
    ]  # fmt: skip
    pins = "input  logic clock, reset_button, uart_rx,\n    output logic uart_tx"
    leds = f"output logic [{board.leds - 1}:0] leds"
    head = f"// {design.top} on {board.name}.\nmodule {TOP} (\n    {pins},\n    {leds}\n);"
    return head + "".join(body) + "endmodule\n"


_LINK = """
    logic [7:0] received, queued, answer;
    logic received_valid, queued_valid, queued_ready, answer_valid, answer_ready, overflow;
    logic [7:0] word_port;
    logic [23:0] word_addr;
    logic word_we, word_re, busy, link_ok, core_start, core_rst, core_done;
    logic [{top_bit}:0] word_wdata, word_rdata;
    logic [9:0] identity_addr;
    logic [7:0] identity_data;

    penstock_uart_receiver #(.STEP(16'd{step})) receiver (
        .clk(clk), .rst(rst), .rx(uart_rx), .data(received), .valid(received_valid)
    );
    penstock_uart_transmitter #(.STEP(16'd{step})) transmitter (
        .clk(clk), .rst(rst), .data(answer), .valid(answer_valid), .ready(answer_ready), .tx(uart_tx)
    );
    penstock_byte_fifo queue (
        .clk(clk), .rst(rst), .in_data(received), .in_valid(received_valid), .out_data(queued),
        .out_valid(queued_valid), .out_ready(queued_ready), .overflow(overflow)
    );
    penstock_identity_rom #(.BYTES({identity_bytes}), .FILE("{file}")) identity (
        .clk(clk), .addr(identity_addr), .data(identity_data)
    );
    penstock_link #(
        .PORTS({ports}), .LANES({lanes}), .IDENTITY_BYTES({identity_bytes}),
        .WORD_BYTES({word_bytes}), .WORDS({words}), .WRITABLE({writable})
    ) host_link (
        .clk(clk), .rst(rst), .in_data(queued), .in_valid(queued_valid), .in_ready(queued_ready),
        .out_data(answer), .out_valid(answer_valid), .out_ready(answer_ready), .word_port(word_port),
        .word_addr(word_addr), .word_we(word_we), .word_wdata(word_wdata), .word_re(word_re),
        .word_rdata(word_rdata), .identity_addr(identity_addr), .identity_data(identity_data),
        .core_start(core_start), .core_rst(core_rst), .core_done(core_done), .busy(busy), .overflow(overflow),
        .link_ok(link_ok)
    );
"""


def _clock(board: Board, pll: Pll | None) -> str:
    source = instance(pll) if pll else "\n    assign clk = clock;\n    assign locked = 1'b1;\n"
    pressed = "!reset_button" if board.reset_active_low else "reset_button"
    return (
        f"\n    logic clk, locked, rst;\n{source}"
        f"    penstock_reset_generator resets (.clk(clk), .locked(locked), .button({pressed}), .rst(rst));\n"
    )


def _constants(values: Sequence[int], bits: int) -> str:
    """A packed parameter, the first value lowest."""
    return "{" + ", ".join(f"{bits}'d{value}" for value in reversed(values)) + "}"


def _argument(argument: BufferedArgument) -> str:
    """The wires of an argument's core ports and its frame buffers."""
    lines = [f"\n    // {argument.name}"]
    for port in (*((argument.writer,) if argument.writer else ()), *argument.readers):
        lines.append(_wires(port))
    port, host = argument.port, argument.host
    bits = port.address_bits
    if argument.writer:
        write = f"{port.name}_we", f"{port.name}_addr", f"{port.name}_wdata"
    else:
        assert host is not None, "what only the core reads, the host writes"
        write = (
            f"word_we && word_port == 8'd{host.index}",
            f"word_addr[{bits - 1}:0]",
            f"word_wdata[{port.width - 1}:0]",
        )
    readers = [(r.name, f"{r.name}_re", f"{r.name}_addr", f"{r.name}_rdata") for r in argument.readers]
    if host is not None and host.direction == "read":
        lines.append(f"    logic [{port.width - 1}:0] {port.name}_host;")
        chosen = f"word_re && word_port == 8'd{host.index}"
        readers.append((port.name, chosen, f"word_addr[{bits - 1}:0]", f"{port.name}_host"))
    for name, enable, address, data in readers:
        lines.append(
            f"    penstock_frame_buffer #(.WIDTH({port.width}), .WORDS({port.words}), .ADDRESS_BITS({bits})) "
            f"{name}_buffer (\n"
            f"        .clk(clk), .we({write[0]}), .waddr({write[1]}), .wdata({write[2]}),\n"
            f"        .re({enable}), .raddr({address}), .rdata({data})\n    );"
        )
    return "\n".join(lines) + "\n"


def _wires(port: RtlPort) -> str:
    address = f"    logic [{port.address_bits - 1}:0] {port.name}_addr;"
    enable, data = ("re", "rdata") if port.kind == "memory_read" else ("we", "wdata")
    return f"    logic {port.name}_{enable};\n{address}\n    logic [{port.width - 1}:0] {port.name}_{data};"


def _read_multiplexer(arguments: Sequence[BufferedArgument], bits: int) -> str:
    """The word that the host reads; the address is settled long before, so one register keeps this off the path."""
    choices: list[str] = []
    for argument in arguments:
        host: HostPort | None = argument.host
        if host is not None and host.direction == "read":
            padded = f"{{{bits - host.word_bits}'d0, {argument.port.name}_host}}"
            value = padded if bits > host.word_bits else f"{argument.port.name}_host"
            choices.append(f"            8'd{host.index}: word_rdata <= {value};")
    cases = "\n".join(choices)
    return f"""
    always_ff @(posedge clk) begin
        case (word_port)
{cases}
            default: word_rdata <= '0;
        endcase
    end
"""


def _core(design: RtlDesign) -> str:
    ports: list[str] = []
    for port in design.ports:
        signals = ("re", "addr", "rdata") if port.kind == "memory_read" else ("we", "addr", "wdata")
        ports.append(", ".join(f".{port.name}_{s}({port.name}_{s})" for s in signals))
    connections = ",\n        ".join([".clk(clk), .rst(core_rst), .start(core_start), .done(core_done)", *ports])
    return f"\n    {design.top} core (\n        {connections}\n    );\n"


def _lights(board: Board) -> str:
    """A heartbeat, the core at work, the last packet in order; the other LEDs stay dark."""
    lit = ["heartbeat[24]", "busy", "link_ok", *["1'b0"] * (board.leds - 3)]
    value = "{" + ", ".join(reversed(lit)) + "}"
    return f"""
    logic [24:0] heartbeat = 25'd0;
    always_ff @(posedge clk) heartbeat <= heartbeat + 25'd1;
    assign leds = {"~" if board.leds_active_low else ""}{value};
"""
