// A FIFO: what is written in cycle t can be read from t + 1 on, a slot read in t can be written from t + 1 on.
/* verilator lint_off WIDTH */
module penstock_fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 2,
    parameter NAME = "fifo"
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] in_tdata,
    input  logic             in_tvalid,
    output logic             in_tready,
    output logic [WIDTH-1:0] out_tdata,
    output logic             out_tvalid,
    input  logic             out_tready
);
  localparam int A = DEPTH > 1 ? $clog2(DEPTH) : 1;
  localparam int C = $clog2(DEPTH + 1);
  logic [C-1:0] count;
  wire push = in_tvalid & in_tready;
  wire pop = out_tvalid & out_tready;
  assign in_tready  = count != DEPTH;
  assign out_tvalid = count != 0;
  always_ff @(posedge clk)
    if (rst) count <= '0;
    else if (push != pop) count <= push ? count + 1'b1 : count - 1'b1;

  if (DEPTH == 1) begin : one
    always_ff @(posedge clk) if (push) out_tdata <= in_tdata;
  end else begin : many
    logic [A-1:0] head, tail;
    logic [WIDTH-1:0] slots[0:DEPTH-1];
    wire [A-1:0] next_head = pop ? (head == DEPTH - 1 ? '0 : head + 1'b1) : head;
    always_ff @(posedge clk)
      if (rst) begin
        head <= '0;
        tail <= '0;
      end else begin
        head <= next_head;
        if (push) tail <= tail == DEPTH - 1 ? '0 : tail + 1'b1;
      end
    always_ff @(posedge clk) if (push) slots[tail] <= in_tdata;
    if (DEPTH <= 64) begin : shallow
      assign out_tdata = slots[head];
    end else begin : deep  // block RAM: the word that is next in line is always fetched ahead
      always_ff @(posedge clk) out_tdata <= push && tail == next_head ? in_tdata : slots[next_head];
    end
  end
`ifdef PENSTOCK_PROBES
  int high = 0;
  always_ff @(posedge clk) if (!rst && int'(count) + int'(push) > high) high <= int'(count) + int'(push);
  final $display("penstock.high_water %s %0d", NAME, high);
`endif
endmodule
