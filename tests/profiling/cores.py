"""Small cores written by hand, with the ports that the RTL backend gives its own."""

from __future__ import annotations

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort

STREAMING = """
module streaming #(parameter TOKENS = 16, LIMIT = 255) (
  input logic clk, input logic rst, input logic start, output logic done,
  input logic [2:0][7:0] x_tdata, input logic x_tvalid, output logic x_tready,
  output logic [2:0][11:0] y_tdata, output logic y_tvalid, input logic y_tready);
  // y = 3 x - 1 in two stages behind one clock enable
  logic [2:0][11:0] tripled;
  logic valid;
  logic [7:0] count;
  wire ce = ~y_tvalid | y_tready;
  assign x_tready = ce & (count < LIMIT);
  assign done = y_tvalid & y_tready & (count == TOKENS - 1);
  always_ff @(posedge clk) begin
    if (ce) begin
      for (int i = 0; i < 3; i++) tripled[i] <= 12'(3 * $signed(x_tdata[i]));
      for (int i = 0; i < 3; i++) y_tdata[i] <= tripled[i] - 12'd1;
      valid <= x_tvalid & x_tready;
      y_tvalid <= valid;
    end
    if (y_tvalid & y_tready) count <= count == TOKENS - 1 ? 0 : count + 1;
    if (rst) begin valid <= 0; y_tvalid <= 0; count <= 0; end
  end
`ifdef PENSTOCK_PROBES
  final $display("penstock.high_water inner %0d", 7);
  final $display("penstock.occupancy inner %0d", valid);
`endif
endmodule
"""

ADDING = """
module adding (
  input logic clk, input logic rst, input logic start, output logic done,
  output logic a_re, output logic [2:0] a_addr, input logic [31:0] a_rdata,
  output logic b_we, output logic [2:0] b_addr, output logic [31:0] b_wdata);
  // b[i] = a[i] + table[i]
  logic [31:0] offset [0:7];
  initial $readmemh("offsets.hex", offset);
  logic [7:0] waiting;
  logic [2:0] i, j;
  logic busy, fetched;
  assign a_addr = i;
  assign a_re = busy;
  assign b_we = fetched;
  assign b_addr = j;
  assign b_wdata = a_rdata + offset[j];
  assign done = fetched & j == 7;
  wire last = busy & i == 7;
  wire begins = (waiting != 0) & (~busy | last);
  always_ff @(posedge clk) begin
    waiting <= waiting + start - begins;
    fetched <= busy; j <= i;
    if (busy) i <= i + 1;
    if (last) busy <= 0;
    if (begins) busy <= 1;
    if (rst) begin waiting <= 0; busy <= 0; i <= 0; fetched <= 0; end
  end
endmodule
"""


def streaming(tokens: int = 16, limit: int = 255) -> RtlDesign:
    """Three lanes of i8 to three lanes of i12; nothing more is taken after `limit` results."""
    text = STREAMING.replace("TOKENS = 16", f"TOKENS = {tokens}").replace("LIMIT = 255", f"LIMIT = {limit}")
    ports = (
        RtlPort("x", "stream_in", 24, tokens, "i8", None),
        RtlPort("y", "stream_out", 36, tokens, "i12", None),
    )
    return RtlDesign("streaming", {"streaming.sv": text}, {}, ports)


def adding(offsets: list[int] | None = None) -> RtlDesign:
    """A memory of eight i32 words to another, with a table that is read when the simulation starts."""
    numbers = offsets or [10 * i for i in range(8)]
    data = {"offsets.hex": "\n".join(f"{n:08x}" for n in numbers) + "\n"}
    ports = (
        RtlPort("a", "memory_read", 32, 8, "i32", "a"),
        RtlPort("b", "memory_write", 32, 8, "i32", "b"),
    )
    return RtlDesign("adding", {"adding.sv": ADDING}, data, ports)
