// One bank of a task's memory: a write port and a read port. FORWARD: a word written in the same cycle is read.
// ASYNC: the word is there in the cycle of its address (held partial sums, registers); else in the next one.
/* verilator lint_off WIDTH */
module penstock_ram #(
    parameter int WIDTH = 8,
    parameter int WORDS = 2,
    parameter bit FORWARD = 0,
    parameter bit ASYNC = 0,
    localparam int A = WORDS > 1 ? $clog2(WORDS) : 1
) (
    input  logic             clk,
    input  logic             we,
    input  logic [A-1:0]     waddr,
    input  logic [WIDTH-1:0] wdata,
    input  logic             re,
    input  logic [A-1:0]     raddr,
    output logic [WIDTH-1:0] rdata
);
  if (WORDS == 1) begin : one
    logic [WIDTH-1:0] word;
    always_ff @(posedge clk) if (we) word <= wdata;
    assign rdata = FORWARD && we ? wdata : word;
  end else begin : many
    logic [WIDTH-1:0] words[0:WORDS-1];
    always_ff @(posedge clk) if (we) words[waddr] <= wdata;
    wire hit = FORWARD && we && waddr == raddr;
    if (ASYNC) begin : now
      assign rdata = hit ? wdata : words[raddr];
    end else begin : later
      always_ff @(posedge clk) if (re) rdata <= hit ? wdata : words[raddr];
    end
  end
endmodule
