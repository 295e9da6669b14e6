"""An array as SystemVerilog: engines from fixed modules, wired for its sizes. No kernel has a part in it."""

from __future__ import annotations

from importlib.resources import files

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort, RtlPortKind
from penstock.compiler.mesh.instructed.array import GO, KINDS, LEVELS, LINK, ROOM, CoreArray
from penstock.compiler.mesh.instructed.programs import ArrayProgram

TOP = "penstock_array"
PROGRAM = "load"
_MODULES = ("loops", "address", "body", "reader", "mover", "tokens", "mac", "drain", "core")


def design_of(array: CoreArray, program: ArrayProgram | None = None, tokens: int = 1) -> RtlDesign:
    """The same files for every program; with one, the ports say how many words it meets."""
    own = files("penstock.compiler.mesh.instructed.modules")
    fifo = files("penstock.compiler.backend.rtl.modules").joinpath("penstock_fifo.sv").read_text()
    texts = {"penstock_fifo.sv": fifo}
    texts |= {f"penstock_array_{name}.sv": own.joinpath(f"penstock_array_{name}.sv").read_text() for name in _MODULES}
    texts[f"{TOP}.sv"] = _top(array)
    words: dict[str, int] = {} if program is None else program.words
    ports = [RtlPort(PROGRAM, "stream_in", 64, tokens, "i32", None, PROGRAM)]
    for channel in array.used_channels:
        readers, writers = array.clients(channel)
        if readers:
            ports.append(_port(array, f"in_{channel}", "memory_read", words.get(f"in_{channel}", 1)))
        if writers:
            ports.append(_port(array, f"out_{channel}", "memory_write", words.get(f"out_{channel}", 1)))
    return RtlDesign(TOP, texts, {}, tuple(ports))


def _port(array: CoreArray, name: str, kind: RtlPortKind, words: int) -> RtlPort:
    return RtlPort(name, kind, array.word * 8, words, "i8", name)


def _top(array: CoreArray) -> str:
    kind = {name: number for number, name in enumerate(KINDS)}
    pins: list[str] = []
    serving: list[str] = []
    for channel in array.used_channels:
        readers, writers = array.clients(channel)
        if readers:
            pins += [f"output logic in_{channel}_re", f"output logic [25:0] in_{channel}_addr",
                     f"input  logic [W-1:0] in_{channel}_rdata"]  # fmt: skip
        if writers:
            pins += [f"output logic out_{channel}_we", f"output logic [25:0] out_{channel}_addr",
                     f"output logic [W-1:0] out_{channel}_wdata"]  # fmt: skip
        serving += [f"  // channel {channel}: one word a cycle; writers first"]
        before: list[str] = []
        for port in (*writers, *readers):
            free = "".join(f" & ~want[{p}]" for p in before)
            serving.append(f"  assign granted[{port}] = want[{port}]{free};")
            before.append(str(port))
        for name, ports, strobe in (("in", readers, "re"), ("out", writers, "we")):
            if not ports:
                continue
            serving.append(f"  assign {name}_{channel}_{strobe} = {' | '.join(f'granted[{p}]' for p in ports)};")
            chosen = "".join(f"granted[{p}] ? place[{p}] : " for p in ports[:-1])
            serving.append(f"  assign {name}_{channel}_addr = {chosen}place[{ports[-1]}];")
            if name == "out":
                chosen = "".join(f"granted[{p}] ? written[{p - array.readers}] : " for p in ports[:-1])
                serving.append(f"  assign out_{channel}_wdata = {chosen}written[{ports[-1] - array.readers}];")
            else:
                serving += [f"  assign answer[{p}] = in_{channel}_rdata;" for p in ports]
    return f"""// {array.text()}.
// Every engine has a program of its own, which comes through `{PROGRAM}`: a number, a field and a value a token.
/* verilator lint_off WIDTH */
module {TOP} (
    input  logic        clk,
    input  logic        rst,
    input  logic        start,  // the last token begins a run
    output logic        done,
    input  logic [63:0] {PROGRAM}_tdata,
    input  logic        {PROGRAM}_tvalid,
    output logic        {PROGRAM}_tready,
    {f",{chr(10)}    ".join(pins)}
);
  localparam int W = {array.word * 8};
  localparam int X = {array.rows};
  localparam int Y = {array.columns};
  localparam int READERS = {array.readers};
  localparam int PORTS = {array.ports};
  localparam int LEVELS = {LEVELS};
  localparam int SLOTS = {array.body};

  // what is loaded
  logic set, go, busy;
  logic [15:0] number, index;
  logic [31:0] value;
  wire begins = {PROGRAM}_tdata[15:0] == 16'h{GO:04x};
  wire load = {PROGRAM}_tvalid & {PROGRAM}_tready;
  assign {PROGRAM}_tready = !busy && !go;
  always_ff @(posedge clk) begin
    set <= load && !begins && !rst;
    go <= load && begins && !rst;
    {{value, index, number}} <= {PROGRAM}_tdata;
  end

  // whom a token is for: kinds, rows and columns, 63 for all of them
  logic [{len(KINDS) - 1}:0] of_kind;
  logic [X-1:0] of_row;
  logic [Y-1:0] of_column;
  always_comb begin
    for (int k = 0; k < {len(KINDS)}; k++) of_kind[k] = set && number[15:12] == k;
    for (int r = 0; r < X; r++) of_row[r] = number[11:6] == r || &number[11:6];
    for (int c = 0; c < Y; c++) of_column[c] = number[5:0] == c || &number[5:0];
  end

  // memory ports
  logic [PORTS-1:0] want, granted;
  logic [PORTS-1:0][25:0] place;
  logic [READERS-1:0][W-1:0] answer;
  logic [Y-1:0][W-1:0] written;
  logic [Y-1:0] writing;
{chr(10).join(serving)}

  // what stands before every mover, and behind every drain
  logic [X-1:0][Y:0][W-1:0] left_data;
  logic [X-1:0][Y:0] left_valid, left_ready;
  logic [X:0][Y-1:0][W-1:0] right_data, out_data;
  logic [X:0][Y-1:0] right_valid, right_ready, out_valid, out_ready;

  for (genvar r = 0; r < X; r++) begin : rows
    penstock_array_reader #(.WIDTH(W), .LEVELS(LEVELS), .SLOTS(SLOTS), .ROOM({ROOM})) reader (
        .clk, .rst, .set(of_kind[{kind["rows"]}] & of_row[r]), .index, .value, .go, .want(want[r]), .address(place[r]),
        .granted(granted[r]), .rdata(answer[r]), .out_tdata(left_data[r][0]), .out_tvalid(left_valid[r][0]),
        .out_tready(left_ready[r][0])
    );
    assign left_ready[r][Y] = 1'b1;
  end
  for (genvar c = 0; c < Y; c++) begin : columns
    penstock_array_reader #(.WIDTH(W), .LEVELS(LEVELS), .SLOTS(SLOTS), .ROOM({ROOM})) reader (
        .clk, .rst, .set(of_kind[{kind["columns"]}] & of_column[c]), .index, .value, .go, .want(want[X + c]),
        .address(place[X + c]), .granted(granted[X + c]), .rdata(answer[X + c]), .out_tdata(right_data[0][c]),
        .out_tvalid(right_valid[0][c]), .out_tready(right_ready[0][c])
    );
    assign right_ready[X][c] = 1'b1;
    penstock_array_address #(.LEVELS(LEVELS), .SLOTS(SLOTS)) writer (
        .clk, .rst, .set(of_kind[{kind["writers"]}] & of_column[c]), .index, .value, .go, .word(granted[READERS + c]),
        .running(writing[c]), .address(place[READERS + c])
    );
    assign want[READERS + c] = writing[c] & out_valid[X][c];
    assign written[c] = out_data[X][c];
    assign out_ready[X][c] = granted[READERS + c];
    assign out_data[0][c] = '0;
    assign out_valid[0][c] = 1'b0;
  end

  for (genvar r = 0; r < X; r++) begin : row
    for (genvar c = 0; c < Y; c++) begin : column
      penstock_array_core #(
          .WIDTH(W), .LEVELS(LEVELS), .ROWS({array.tall}), .COLUMNS({array.wide}), .DEEP({array.deep}),
          .LEFT({array.left}), .RIGHT({array.right}), .SUMS({array.sums}), .LINK({LINK}), .ROOM({ROOM})
      ) core (
          .clk, .rst, .set(of_kind[{len(KINDS) - 1}:{kind["left"]}] & {{4{{of_row[r] & of_column[c]}}}}), .index,
          .value, .go, .left_tdata(left_data[r][c]), .left_tvalid(left_valid[r][c]), .left_tready(left_ready[r][c]),
          .left_on_tdata(left_data[r][c+1]), .left_on_tvalid(left_valid[r][c+1]), .left_on_tready(left_ready[r][c+1]),
          .right_tdata(right_data[r][c]), .right_tvalid(right_valid[r][c]), .right_tready(right_ready[r][c]),
          .right_on_tdata(right_data[r+1][c]), .right_on_tvalid(right_valid[r+1][c]),
          .right_on_tready(right_ready[r+1][c]), .above_tdata(out_data[r][c]), .above_tvalid(out_valid[r][c]),
          .above_tready(out_ready[r][c]), .out_tdata(out_data[r+1][c]), .out_tvalid(out_valid[r+1][c]),
          .out_tready(out_ready[r+1][c])
      );
    end
  end

  // a run is over when all is written
  assign done = busy && writing == '0;
  always_ff @(posedge clk)
    if (rst) busy <= 1'b0;
    else if (go) busy <= 1'b1;
    else if (done) busy <= 1'b0;
endmodule
"""
