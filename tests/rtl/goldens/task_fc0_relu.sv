// Layer fc0.relu.
// compute: p0: 2 x p1: 4; 8 slots, 4 stages. II = 1: one iteration a cycle.
/* verilator lint_off WIDTH */
module task_fc0_relu (
  input  logic clk,
  input  logic rst,
  input  logic [3:0][31:0] fc0_to_fc0_relu_tdata,
  input  logic fc0_to_fc0_relu_tvalid,
  output logic fc0_to_fc0_relu_tready,
  output logic [3:0][7:0] fc0_relu_to_fc0_sum_tdata,
  output logic fc0_relu_to_fc0_sum_tvalid,
  input  logic fc0_relu_to_fc0_sum_tready,
  output logic ended
);

  // compute
  logic p0;
  logic p0_last;
  logic [1:0] p1;
  logic p1_last;
  logic [63:0] fc0_bias_bank;
  logic [1:0][31:0] fc0_bias_now;
  logic [3:0][31:0] fc0_to_fc0_relu_tdata_s1;
  logic [3:0][7:0] map;
  logic [3:0][7:0] fc0_relu_to_fc0_sum_token;
  logic active;
  logic v0;
  logic p0_last_and_p1_last;
  logic advance;
  logic p0_last_and_p1_last_s1;
  logic p0_last_and_p1_last_s2;
  logic p0_last_and_p1_last_s3;
  logic ce;
  logic go;
  logic v1;
  logic v2;
  logic v3;

  // loops
  assign p0_last = p0 == 1;
  assign p1_last = p1 == 3;
  assign p0_last_and_p1_last = p0_last & p1_last;
  always_ff @(posedge clk) begin
    if (rst) begin
      p0 <= '0;
      p1 <= '0;
    end
    else if (advance) begin
      if (p1_last) p0 <= p0_last ? '0 : p0 + 1'b1;
      p1 <= p1_last ? '0 : p1 + 1'b1;
    end
  end

  // when each stage moves
  assign v0 = active;
  assign advance = v0 & go;
  assign ended = v3 & ce & p0_last_and_p1_last_s3;
  always_ff @(posedge clk) begin
    if (rst) active <= 1'b1;
    else if (ended) active <= 1'b1;
    else if (advance & p0_last_and_p1_last) active <= 1'b0;
  end
  assign ce = (~v3 | fc0_relu_to_fc0_sum_tready);
  assign go = ce & (~v0 | fc0_to_fc0_relu_tvalid);
  always_ff @(posedge clk) begin
    if (rst) v1 <= 1'b0;
    else if (ce) v1 <= v0 & go;
    if (rst) v2 <= 1'b0;
    else if (ce) v2 <= v1;
    if (rst) v3 <= 1'b0;
    else if (ce) v3 <= v2;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 0 to 1
    fc0_to_fc0_relu_tdata_s1 <= fc0_to_fc0_relu_tdata;
    p0_last_and_p1_last_s1 <= p0_last_and_p1_last;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 1 to 2
    p0_last_and_p1_last_s2 <= p0_last_and_p1_last_s1;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 2 to 3
    p0_last_and_p1_last_s3 <= p0_last_and_p1_last_s2;
  end

  // what is computed
  penstock_rom #(.WIDTH(64), .WORDS(4), .FILE("fc0_relu_fc0_bias.hex"), .BLOCK(0)) fc0_bias_load_rom (.clk(clk), .re(ce), .raddr(p1), .rdata(fc0_bias_bank));
  for (genvar l0 = 0; l0 < 2; l0++) begin : fc0_bias_now_lane
    assign fc0_bias_now[l0] = fc0_bias_bank[(l0 % 2) * 32 +: 32];
  end
  for (genvar l0 = 0; l0 < 2; l0++) begin : map_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : map_lane
      logic [31:0] sum;
      always_ff @(posedge clk) if (ce) sum <= $signed(fc0_to_fc0_relu_tdata_s1[l0 * 2 + l1]) + $signed(fc0_bias_now[l1]);  // stage 1 to 2
      logic [30:0] upper;
      always_ff @(posedge clk) if (ce) upper <= $signed(sum) > 2'sd0 ? $signed(sum) : 2'sd0;  // stage 2 to 3
      wire [25:0] shifted = $signed({1'b0, upper}) >>> 5;
      wire [7:0] narrow = $signed({1'b0, shifted});
      assign map[l0 * 2 + l1] = narrow;
    end
  end
  assign fc0_relu_to_fc0_sum_token = map;

  assign fc0_to_fc0_relu_tready = v0 & go;
  assign fc0_relu_to_fc0_sum_tvalid = v3;

  assign fc0_relu_to_fc0_sum_tdata = fc0_relu_to_fc0_sum_token;
endmodule
