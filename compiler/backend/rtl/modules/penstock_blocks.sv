// A channel of COUNT blocks: the writer fills one while the reader empties another; a block passes whole.
// Claims wait for a free or a full block; a release hands the block over, or gives it back.
/* verilator lint_off WIDTH */
module penstock_blocks #(
    parameter int BANKS = 1,
    parameter int WIDTH = 8,  // bits of a bank's word
    parameter int WORDS = 1,  // words of a bank in one block
    parameter int COUNT = 2,
    parameter NAME = "blocks",
    localparam int A = WORDS > 1 ? $clog2(WORDS) : 1
) (
    input  logic                        clk,
    input  logic                        rst,
    output logic                        in_free,
    input  logic                        in_claim,
    input  logic                        in_release,
    input  logic [BANKS-1:0]            in_we,
    input  logic [BANKS-1:0][A-1:0]     in_addr,
    input  logic [BANKS-1:0][WIDTH-1:0] in_wdata,
    output logic                        out_full,
    input  logic                        out_claim,
    input  logic                        out_release,
    input  logic                        out_re,
    input  logic [BANKS-1:0][A-1:0]     out_addr,
    output logic [BANKS-1:0][WIDTH-1:0] out_rdata
);
  localparam int C = $clog2(COUNT + 1);
  localparam int B = COUNT > 1 ? $clog2(COUNT) : 1;
  localparam int L = COUNT * WORDS > 1 ? $clog2(COUNT * WORDS) : 1;
  logic [C-1:0] used, full;
  logic [B-1:0] in_block, out_block;
  logic [L-1:0] in_base, out_base;
  assign in_free  = used != COUNT;
  assign out_full = full != 0;
  always_ff @(posedge clk)
    if (rst) begin
      used <= '0;
      full <= '0;
      in_block <= '0;
      out_block <= '0;
      in_base <= '0;
      out_base <= '0;
    end else begin
      if (in_claim != out_release) used <= in_claim ? used + 1'b1 : used - 1'b1;
      if (in_release != out_claim) full <= in_release ? full + 1'b1 : full - 1'b1;
      if (in_release) begin
        in_block <= in_block == COUNT - 1 ? '0 : in_block + 1'b1;
        in_base <= in_block == COUNT - 1 ? '0 : in_base + WORDS;
      end
      if (out_release) begin
        out_block <= out_block == COUNT - 1 ? '0 : out_block + 1'b1;
        out_base <= out_block == COUNT - 1 ? '0 : out_base + WORDS;
      end
    end
  for (genvar b = 0; b < BANKS; b++) begin : bank
    logic [WIDTH-1:0] words[0:COUNT*WORDS-1];
    wire [L-1:0] in_at = in_base + in_addr[b];
    wire [L-1:0] out_at = out_base + out_addr[b];
    always_ff @(posedge clk) if (in_we[b]) words[in_at] <= in_wdata[b];
    always_ff @(posedge clk) if (out_re) out_rdata[b] <= words[out_at];
  end
`ifdef PENSTOCK_PROBES
  int high = 0;
  always_ff @(posedge clk) if (!rst && int'(used) + int'(in_claim) > high) high <= int'(used) + int'(in_claim);
  final $display("penstock.high_water %s %0d", NAME, high);
`endif
endmodule
