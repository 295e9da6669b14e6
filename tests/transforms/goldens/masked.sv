// Layer body.
// compute: t1: 2 x p0: 3 x p1: 2; 12 slots, 10 stages. II = 1: one iteration a cycle.
/* verilator lint_off WIDTH */
module task_body (
  input  logic clk,
  input  logic rst,
  input  logic [1:0][31:0] unpack_x_to_body_tdata,
  input  logic unpack_x_to_body_tvalid,
  output logic unpack_x_to_body_tready,
  output logic [1:0][31:0] body_to_convert_body_tdata,
  output logic body_to_convert_body_tvalid,
  input  logic body_to_convert_body_tready,
  output logic ended
);

  // compute
  logic t1;
  logic t1_last;
  logic [1:0] p0;
  logic p0_last;
  logic p1;
  logic p1_last;
  logic [1:0] w_load_at;
  logic [63:0] w_bank;
  logic [1:0][31:0] w_now;
  logic [1:0][0:0] unpadded;
  logic [2:0] unpadded_place;
  logic unpadded_to_4;
  logic unpadded_to_4_s1;
  logic [1:0][0:0] unpadded_s2;
  logic [1:0][0:0] unpadded_s3;
  logic [1:0][0:0] unpadded_s4;
  logic [1:0][0:0] unpadded_s5;
  logic [1:0][0:0] unpadded_s6;
  logic [1:0][0:0] unpadded_s7;
  logic [1:0][0:0] unpadded_s8;
  logic [1:0][0:0] unpadded_s9;
  logic [1:0][31:0] map;
  logic [1:0][31:0] body_to_convert_body_token;
  logic active;
  logic v0;
  logic p0_last_and_p1_last_and_t1_last;
  logic advance;
  logic p0_last_and_p1_last_and_t1_last_s1;
  logic p0_last_and_p1_last_and_t1_last_s2;
  logic p0_last_and_p1_last_and_t1_last_s3;
  logic p0_last_and_p1_last_and_t1_last_s4;
  logic p0_last_and_p1_last_and_t1_last_s5;
  logic p0_last_and_p1_last_and_t1_last_s6;
  logic p0_last_and_p1_last_and_t1_last_s7;
  logic p0_last_and_p1_last_and_t1_last_s8;
  logic p0_last_and_p1_last_and_t1_last_s9;
  logic ce;
  logic go;
  logic v1;
  logic v2;
  logic v3;
  logic v4;
  logic v5;
  logic v6;
  logic v7;
  logic v8;
  logic v9;

  // loops
  assign t1_last = t1 == 1;
  assign p0_last = p0 == 2;
  assign p1_last = p1 == 1;
  assign w_load_at = {t1, p1};
  assign unpadded_place = {t1, p1, 1'd0};
  assign unpadded_to_4 = unpadded_place <= 4;
  assign p0_last_and_p1_last_and_t1_last = p0_last & p1_last & t1_last;
  always_ff @(posedge clk) begin
    if (rst) begin
      t1 <= '0;
      p0 <= '0;
      p1 <= '0;
    end
    else if (advance) begin
      if (p0_last & p1_last) t1 <= t1_last ? '0 : t1 + 1'b1;
      if (p1_last) p0 <= p0_last ? '0 : p0 + 1'b1;
      p1 <= p1_last ? '0 : p1 + 1'b1;
    end
  end

  // when each stage moves
  assign v0 = active;
  assign advance = v0 & go;
  assign ended = v9 & ce & p0_last_and_p1_last_and_t1_last_s9;
  always_ff @(posedge clk) begin
    if (rst) active <= 1'b1;
    else if (ended) active <= 1'b1;
    else if (advance & p0_last_and_p1_last_and_t1_last) active <= 1'b0;
  end
  assign ce = (~v9 | body_to_convert_body_tready);
  assign go = ce & (~v0 | unpack_x_to_body_tvalid);
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
    if (rst) v7 <= 1'b0;
    else if (ce) v7 <= v6;
    if (rst) v8 <= 1'b0;
    else if (ce) v8 <= v7;
    if (rst) v9 <= 1'b0;
    else if (ce) v9 <= v8;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 0 to 1
    unpadded_to_4_s1 <= unpadded_to_4;
    p0_last_and_p1_last_and_t1_last_s1 <= p0_last_and_p1_last_and_t1_last;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 1 to 2
    unpadded_s2 <= unpadded;
    p0_last_and_p1_last_and_t1_last_s2 <= p0_last_and_p1_last_and_t1_last_s1;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 2 to 3
    unpadded_s3 <= unpadded_s2;
    p0_last_and_p1_last_and_t1_last_s3 <= p0_last_and_p1_last_and_t1_last_s2;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 3 to 4
    unpadded_s4 <= unpadded_s3;
    p0_last_and_p1_last_and_t1_last_s4 <= p0_last_and_p1_last_and_t1_last_s3;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 4 to 5
    unpadded_s5 <= unpadded_s4;
    p0_last_and_p1_last_and_t1_last_s5 <= p0_last_and_p1_last_and_t1_last_s4;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 5 to 6
    unpadded_s6 <= unpadded_s5;
    p0_last_and_p1_last_and_t1_last_s6 <= p0_last_and_p1_last_and_t1_last_s5;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 6 to 7
    unpadded_s7 <= unpadded_s6;
    p0_last_and_p1_last_and_t1_last_s7 <= p0_last_and_p1_last_and_t1_last_s6;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 7 to 8
    unpadded_s8 <= unpadded_s7;
    p0_last_and_p1_last_and_t1_last_s8 <= p0_last_and_p1_last_and_t1_last_s7;
  end
  always_ff @(posedge clk) if (ce) begin  // stage 8 to 9
    unpadded_s9 <= unpadded_s8;
    p0_last_and_p1_last_and_t1_last_s9 <= p0_last_and_p1_last_and_t1_last_s8;
  end

  // what is computed
  penstock_rom #(.WIDTH(64), .WORDS(4), .FILE("body_w.hex"), .BLOCK(0)) w_load_rom (.clk(clk), .re(ce), .raddr(w_load_at), .rdata(w_bank));
  for (genvar l0 = 0; l0 < 2; l0++) begin : w_now_lane
    assign w_now[l0] = w_bank[(l0 % 2) * 32 +: 32];
  end
  assign unpadded[0] = 1'b1;
  assign unpadded[1] = unpadded_to_4_s1;
  for (genvar l1 = 0; l1 < 2; l1++) begin : map_lane
    wire [31:0] power;  // stage 0 to 9
    fp32_exp power_core (.clk(clk), .ce(ce), .a(unpack_x_to_body_tdata[l1]), .y(power));
    wire [31:0] chosen = unpadded_s9[l1] ? $signed({1'b0, power}) : 2'sd0;
    assign map[l1] = chosen;
  end
  assign body_to_convert_body_token = map;

  assign unpack_x_to_body_tready = v0 & go;
  assign body_to_convert_body_tvalid = v9;

  assign body_to_convert_body_tdata = body_to_convert_body_token;
endmodule
