// Layer sum.
// compute: r: 4 x c: 16 as seq; 64 slots, 7 stages. II = 4: loop-carried arith.addf on acc, 7 stages over 2 iterations.
/* verilator lint_off WIDTH */
module task_sum (
  input  logic clk,
  input  logic rst,
  input  logic start,
  input  logic [4:0] len_seq,
  output logic x_re,
  output logic [5:0] x_addr,
  input  logic [31:0] x_rdata,
  output logic y_we,
  output logic [3:0] y_addr,
  output logic [31:0] y_wdata,
  output logic ended
);
  logic acc_we;
  logic [3:0] acc_waddr;
  logic [31:0] acc_wdata;

  // compute
  logic [1:0] r;
  logic r_last;
  logic [3:0] c;
  logic c_last;
  logic [3:0] n_seq_less_1;  // seq - 1
  logic [5:0] x_at;
  logic [31:0] acc_bank;
  logic [31:0] acc_now;
  logic r_first;
  logic r_first_s1;
  logic [31:0] chosen;
  logic [31:0] map;
  logic [3:0] c_s1;
  logic [3:0] c_s2;
  logic [3:0] c_s3;
  logic [3:0] c_s4;
  logic [3:0] c_s5;
  logic [3:0] c_s6;
  logic r_last_s1;
  logic r_last_s2;
  logic r_last_s3;
  logic r_last_s4;
  logic r_last_s5;
  logic r_last_s6;
  logic [31:0] y_word;
  logic active;
  logic v0;
  logic c_last_and_r_last;
  logic [1:0] slot;
  logic c_first;
  logic c_first_and_r_first;
  logic [7:0] pending;
  logic advance;
  logic c_last_and_r_last_s1;
  logic c_last_and_r_last_s2;
  logic c_last_and_r_last_s3;
  logic c_last_and_r_last_s4;
  logic c_last_and_r_last_s5;
  logic c_last_and_r_last_s6;
  logic ce;
  logic go;
  logic v1;
  logic v2;
  logic v3;
  logic v4;
  logic v5;
  logic v6;

  // loops
  always_ff @(posedge clk) begin
    n_seq_less_1 <= rst ? 4'd1 : len_seq - 1;
  end
  assign r_last = r == 3;
  assign c_last = c == n_seq_less_1;
  assign x_at = {r, c};
  assign r_first = r == 0;
  assign c_last_and_r_last = c_last & r_last;
  assign c_first = c == 0;
  assign c_first_and_r_first = c_first & r_first;
  always_ff @(posedge clk) begin
    if (rst) begin
      r <= '0;
      c <= '0;
    end
    else if (advance) begin
      if (c_last) r <= r_last ? '0 : r + 1'b1;
      c <= c_last ? '0 : c + 1'b1;
    end
  end

  // when each stage moves
  always_ff @(posedge clk) pending <= rst ? '0 : pending + start - (v0 & go & c_first_and_r_first);
  assign v0 = active & (slot == 0) & (start | (pending != 0) | ~c_first_and_r_first);
  assign advance = v0 & go;
  assign ended = v6 & ce & c_last_and_r_last_s6;
  always_ff @(posedge clk) begin
    if (rst) active <= 1'b1;
    else if (ended) active <= 1'b1;
    else if (advance & c_last_and_r_last) active <= 1'b0;
  end
  always_ff @(posedge clk) begin
    if (rst | ended) slot <= '0;
    else if (go & (v0 | slot != 0)) slot <= slot == 3 ? '0 : slot + 1'b1;
  end
  assign ce = 1'b1;
  assign go = ce;
  always_ff @(posedge clk) begin
    if (rst) v1 <= 1'b0;
    else if (ce) v1 <= v0 & go;
    if (rst) v2 <= 1'b0;
    else if (ce) v2 <= v1;
    if (rst) v3 <= 1'b0;
    else if (ce) v3 <= v2;
    if (rst) v4 <= 1'b0;
    else if (ce) v4 <= v3;
    if (rst) v5 <= 1'b0;
    else if (ce) v5 <= v4;
    if (rst) v6 <= 1'b0;
    else if (ce) v6 <= v5;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 0 to 1
    r_first_s1 <= r_first;
    c_s1 <= c;
    r_last_s1 <= r_last;
    c_last_and_r_last_s1 <= c_last_and_r_last;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 1 to 2
    c_s2 <= c_s1;
    r_last_s2 <= r_last_s1;
    c_last_and_r_last_s2 <= c_last_and_r_last_s1;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 2 to 3
    c_s3 <= c_s2;
    r_last_s3 <= r_last_s2;
    c_last_and_r_last_s3 <= c_last_and_r_last_s2;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 3 to 4
    c_s4 <= c_s3;
    r_last_s4 <= r_last_s3;
    c_last_and_r_last_s4 <= c_last_and_r_last_s3;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 4 to 5
    c_s5 <= c_s4;
    r_last_s5 <= r_last_s4;
    c_last_and_r_last_s5 <= c_last_and_r_last_s4;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 5 to 6
    c_s6 <= c_s5;
    r_last_s6 <= r_last_s5;
    c_last_and_r_last_s6 <= c_last_and_r_last_s5;
  end

  // what is computed
  if (1) begin : acc_now_lane
    assign acc_now = acc_bank;
  end
  if (1) begin : chosen_lane
    assign chosen = r_first_s1 ? 2'sd0 : $signed({1'b0, acc_now});
  end
  if (1) begin : map_lane
    wire [31:0] sum;  // stage 1 to 6
    fp32_add sum_core (.clk(clk), .ce(ce), .a(x_rdata), .b(chosen), .y(sum));
    assign map = sum;
  end
  assign y_word = map;


  assign x_re = (v0 & go);
  assign x_addr = x_at;
  assign y_we = (v6 & r_last_s6 & ce);
  assign y_addr = c_s6;
  assign y_wdata = y_word;
  if (1) begin : acc_store
    assign acc_we = v6 & ce;
    assign acc_waddr = c_s6;
    if (1) begin : acc_store_lane
      assign acc_wdata = map;
    end
  end
  if (1) begin : acc_banks
    penstock_ram #(.WIDTH(32), .WORDS(16), .FORWARD(0), .ASYNC(0)) ram (
      .clk(clk), .we(acc_we), .waddr(acc_waddr), .wdata(acc_wdata),
      .re(ce), .raddr(c), .rdata(acc_bank));
  end
endmodule
