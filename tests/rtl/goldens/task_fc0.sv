// Layer fc0.
// compute: p2: 4 x p0: 2 x p1: 4; 32 slots, 6 stages. II = 1: one iteration a cycle.
/* verilator lint_off WIDTH */
module task_fc0 (
  input  logic clk,
  input  logic rst,
  input  logic [3:0][7:0] unpack_x_to_fc0_tdata,
  input  logic unpack_x_to_fc0_tvalid,
  output logic unpack_x_to_fc0_tready,
  output logic [3:0][31:0] fc0_to_fc0_relu_tdata,
  output logic fc0_to_fc0_relu_tvalid,
  input  logic fc0_to_fc0_relu_tready,
  output logic ended
);
  logic keep_0_we;
  logic [0:0] keep_0_waddr;
  logic [31:0] keep_0_wdata;
  logic acc_we;
  logic [2:0] acc_waddr;
  logic [127:0] acc_wdata;

  // compute
  logic [1:0] p2;
  logic p2_last;
  logic p0;
  logic p0_last;
  logic [1:0] p1;
  logic p1_last;
  logic p1_first;
  logic [31:0] keep_0_bank;
  logic [3:0][7:0] keep_0_now;
  logic [3:0][7:0] chosen;
  logic [3:0] fc0_weight_load_at;
  logic [31:0] fc0_weight_bank;
  logic [3:0][7:0] fc0_weight_now;
  logic [3:0][7:0] chosen_s1;
  logic [7:0][15:0] map;
  logic [3:0][16:0] tree;
  logic [2:0] acc_load_at;
  logic [2:0] acc_load_at_s1;
  logic [2:0] acc_load_at_s2;
  logic [2:0] acc_load_at_s3;
  logic [127:0] acc_bank;
  logic [3:0][31:0] acc_now;
  logic p2_first;
  logic p2_first_s1;
  logic p2_first_s2;
  logic p2_first_s3;
  logic p2_first_s4;
  logic [3:0][31:0] chosen_1;
  logic [3:0][31:0] map_1;
  logic [2:0] acc_load_at_s4;
  logic [2:0] acc_load_at_s5;
  logic p2_last_s1;
  logic p2_last_s2;
  logic p2_last_s3;
  logic p2_last_s4;
  logic p2_last_s5;
  logic [3:0][31:0] fc0_to_fc0_relu_token;
  logic active;
  logic v0;
  logic p0_last_and_p1_last_and_p2_last;
  logic advance;
  logic p0_last_and_p1_last_and_p2_last_s1;
  logic p0_last_and_p1_last_and_p2_last_s2;
  logic p0_last_and_p1_last_and_p2_last_s3;
  logic p0_last_and_p1_last_and_p2_last_s4;
  logic p0_last_and_p1_last_and_p2_last_s5;
  logic ce;
  logic go;
  logic v1;
  logic v2;
  logic v3;
  logic v4;
  logic v5;

  // loops
  assign p2_last = p2 == 3;
  assign p0_last = p0 == 1;
  assign p1_last = p1 == 3;
  assign p1_first = p1 == 0;
  assign fc0_weight_load_at = {p2, p1};
  assign acc_load_at = {p0, p1};
  assign p2_first = p2 == 0;
  assign p0_last_and_p1_last_and_p2_last = p0_last & p1_last & p2_last;
  always_ff @(posedge clk) begin
    if (rst) begin
      p2 <= '0;
      p0 <= '0;
      p1 <= '0;
    end
    else if (advance) begin
      if (p0_last & p1_last) p2 <= p2_last ? '0 : p2 + 1'b1;
      if (p1_last) p0 <= p0_last ? '0 : p0 + 1'b1;
      p1 <= p1_last ? '0 : p1 + 1'b1;
    end
  end

  // when each stage moves
  assign v0 = active;
  assign advance = v0 & go;
  assign ended = v5 & ce & p0_last_and_p1_last_and_p2_last_s5;
  always_ff @(posedge clk) begin
    if (rst) active <= 1'b1;
    else if (ended) active <= 1'b1;
    else if (advance & p0_last_and_p1_last_and_p2_last) active <= 1'b0;
  end
  assign ce = (~(v5 & p2_last_s5) | fc0_to_fc0_relu_tready);
  assign go = ce & (~(v0 & p1_first) | unpack_x_to_fc0_tvalid);
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
  end
  always_ff @(posedge clk) if (ce) begin  // stage 0 to 1
    chosen_s1 <= chosen;
    acc_load_at_s1 <= acc_load_at;
    p2_first_s1 <= p2_first;
    p2_last_s1 <= p2_last;
    p0_last_and_p1_last_and_p2_last_s1 <= p0_last_and_p1_last_and_p2_last;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 1 to 2
    acc_load_at_s2 <= acc_load_at_s1;
    p2_first_s2 <= p2_first_s1;
    p2_last_s2 <= p2_last_s1;
    p0_last_and_p1_last_and_p2_last_s2 <= p0_last_and_p1_last_and_p2_last_s1;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 2 to 3
    acc_load_at_s3 <= acc_load_at_s2;
    p2_first_s3 <= p2_first_s2;
    p2_last_s3 <= p2_last_s2;
    p0_last_and_p1_last_and_p2_last_s3 <= p0_last_and_p1_last_and_p2_last_s2;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 3 to 4
    p2_first_s4 <= p2_first_s3;
    acc_load_at_s4 <= acc_load_at_s3;
    p2_last_s4 <= p2_last_s3;
    p0_last_and_p1_last_and_p2_last_s4 <= p0_last_and_p1_last_and_p2_last_s3;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 4 to 5
    acc_load_at_s5 <= acc_load_at_s4;
    p2_last_s5 <= p2_last_s4;
    p0_last_and_p1_last_and_p2_last_s5 <= p0_last_and_p1_last_and_p2_last_s4;
  end

  // what is computed
  for (genvar l0 = 0; l0 < 2; l0++) begin : keep_0_now_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : keep_0_now_lane
      assign keep_0_now[l0 * 2 + l1] = keep_0_bank[(l0 % 2 * 2 + l1 % 2) * 8 +: 8];
    end
  end
  for (genvar l0 = 0; l0 < 2; l0++) begin : chosen_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : chosen_lane
      assign chosen[l0 * 2 + l1] = p1_first ? $signed(unpack_x_to_fc0_tdata[l0 * 2 + l1]) : $signed(keep_0_now[l0 * 2 + l1]);
    end
  end
  penstock_rom #(.WIDTH(32), .WORDS(16), .FILE("fc0_fc0_weight.hex"), .BLOCK(0)) fc0_weight_load_rom (.clk(clk), .re(ce), .raddr(fc0_weight_load_at), .rdata(fc0_weight_bank));
  for (genvar l0 = 0; l0 < 2; l0++) begin : fc0_weight_now_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : fc0_weight_now_lane
      assign fc0_weight_now[l0 * 2 + l1] = fc0_weight_bank[(l0 % 2 * 2 + l1 % 2) * 8 +: 8];
    end
  end
  for (genvar l0 = 0; l0 < 2; l0++) begin : map_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : map_lane_1
      for (genvar l2 = 0; l2 < 2; l2++) begin : map_lane
        wire [15:0] product;  // stage 1 to 3
        int_mul #(.AW(8), .BW(8), .YW(16)) product_core (.clk(clk), .ce(ce), .a(chosen_s1[l0 * 2 + l2]), .b(fc0_weight_now[l2 * 2 + l1]), .y(product));
        assign map[(l0 * 2 + l1) * 2 + l2] = product;
      end
    end
  end
  for (genvar l0 = 0; l0 < 2; l0++) begin : tree_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : tree_lane
      logic [16:0] sum;
      always_ff @(posedge clk) if (ce) sum <= $signed(map[(l0 * 2 + l1) * 2]) + $signed(map[(l0 * 2 + l1) * 2 + 1]);  // stage 3 to 4
      assign tree[l0 * 2 + l1] = $signed(sum);
    end
  end
  for (genvar l0 = 0; l0 < 2; l0++) begin : acc_now_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : acc_now_lane
      assign acc_now[l0 * 2 + l1] = acc_bank[(l0 % 2 * 2 + l1 % 2) * 32 +: 32];
    end
  end
  for (genvar l0 = 0; l0 < 2; l0++) begin : chosen_1_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : chosen_1_lane
      assign chosen_1[l0 * 2 + l1] = p2_first_s4 ? 2'sd0 : $signed(acc_now[l0 * 2 + l1]);
    end
  end
  for (genvar l0 = 0; l0 < 2; l0++) begin : map_1_lane_0
    for (genvar l1 = 0; l1 < 2; l1++) begin : map_1_lane
      logic [31:0] sum;
      always_ff @(posedge clk) if (ce) sum <= $signed(chosen_1[l0 * 2 + l1]) + $signed(tree[l0 * 2 + l1]);  // stage 4 to 5
      assign map_1[l0 * 2 + l1] = sum;
    end
  end
  assign fc0_to_fc0_relu_token = map_1;

  assign unpack_x_to_fc0_tready = v0 & p1_first & go;
  assign fc0_to_fc0_relu_tvalid = v5 & p2_last_s5;

  assign fc0_to_fc0_relu_tdata = fc0_to_fc0_relu_token;
  if (1) begin : keep_0_store
    assign keep_0_we = v0 & p1_first & go;
    assign keep_0_waddr = 1'd0;
    for (genvar g0 = 0; g0 < 2; g0++) begin : keep_0_store_lane_0
      for (genvar g1 = 0; g1 < 2; g1++) begin : keep_0_store_lane
        assign keep_0_wdata[(g0 * 2 + g1) * 8 +: 8] = unpack_x_to_fc0_tdata[g0 * 2 + g1];
      end
    end
  end
  if (1) begin : keep_0_banks
    penstock_ram #(.WIDTH(32), .WORDS(1), .FORWARD(0), .ASYNC(1)) ram (
      .clk(clk), .we(keep_0_we), .waddr(keep_0_waddr), .wdata(keep_0_wdata),
      .re(ce), .raddr(1'd0), .rdata(keep_0_bank));
  end
  if (1) begin : acc_store
    assign acc_we = v5 & ce;
    assign acc_waddr = acc_load_at_s5;
    for (genvar g0 = 0; g0 < 2; g0++) begin : acc_store_lane_0
      for (genvar g1 = 0; g1 < 2; g1++) begin : acc_store_lane
        assign acc_wdata[(g0 * 2 + g1) * 32 +: 32] = map_1[g0 * 2 + g1];
      end
    end
  end
  if (1) begin : acc_banks
    penstock_ram #(.WIDTH(128), .WORDS(8), .FORWARD(0), .ASYNC(0)) ram (
      .clk(clk), .we(acc_we), .waddr(acc_waddr), .wdata(acc_wdata),
      .re(ce), .raddr(acc_load_at_s3), .rdata(acc_bank));
  end
endmodule
