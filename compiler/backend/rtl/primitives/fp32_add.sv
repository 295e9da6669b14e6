// a + b, or a - b with SUBTRACT: round to nearest even. Subnormal operands count as 0, subnormal results become 0.
module fp32_add #(
    parameter SUBTRACT = 0
) (
    input             clk,
    input             ce,
    input      [31:0] a,
    input      [31:0] b,
    output reg [31:0] y
);
  // 1: order by magnitude, distance of the exponents, special operands
  wire        b_sign = b[31] ^ (SUBTRACT != 0);
  wire        a_smaller = a[30:0] < b[30:0];
  wire [31:0] major = a_smaller ? {b_sign, b[30:0]} : a;
  wire [31:0] minor = a_smaller ? a : {b_sign, b[30:0]};
  wire [7:0]  a_above = a[30:23] - b[30:23];
  wire [7:0]  b_above = b[30:23] - a[30:23];
  wire        a_nan = &a[30:23] && |a[22:0];
  wire        b_nan = &b[30:23] && |b[22:0];
  reg  [7:0]  exponent1;
  reg  [7:0]  distance1;
  reg  [23:0] major1, minor1;
  reg         sign1, subtract1, infinite1, nan1;
  always @(posedge clk)
    if (ce) begin
      exponent1 <= major[30:23];
      distance1 <= a_smaller ? b_above : a_above;
      major1 <= |major[30:23] ? {1'b1, major[22:0]} : 24'd0;
      minor1 <= |minor[30:23] ? {1'b1, minor[22:0]} : 24'd0;
      subtract1 <= a[31] ^ b_sign;
      // two zeros are negative if both are; what cancels is positive, which stage 5 sees to
      sign1 <= |major[30:23] ? major[31] : a[31] & b_sign;
      infinite1 <= &major[30:23];
      nan1 <= a_nan || b_nan || (&a[30:23] && &b[30:23] && (a[31] ^ b_sign));
    end

  // 2: align the smaller one, with guard, round and sticky bits
  wire [26:0] shifted_out = {minor1, 3'b0} & ~(27'h7FFFFFF << distance1[4:0]);
  wire        far = |distance1[7:5];
  wire [26:0] aligned = {minor1, 3'b0} >> distance1[4:0];
  reg  [26:0] aligned2;
  reg  [23:0] major2;
  reg  [7:0]  exponent2;
  reg         sign2, subtract2, infinite2, nan2;
  always @(posedge clk)
    if (ce) begin
      aligned2 <= far ? {26'b0, |minor1} : {aligned[26:1], aligned[0] | |shifted_out};
      major2 <= major1;
      exponent2 <= exponent1;
      {sign2, subtract2, infinite2, nan2} <= {sign1, subtract1, infinite1, nan1};
    end

  // 3: add; skip 16 leading zeros
  wire [27:0] sum = subtract2 ? {1'b0, major2, 3'b0} - {1'b0, aligned2} : {1'b0, major2, 3'b0} + {1'b0, aligned2};
  wire        skip16 = ~|sum[27:12];
  reg  [27:0] sum3;
  reg  [7:0]  exponent3;
  reg         skip3, sign3, infinite3, nan3;
  always @(posedge clk)
    if (ce) begin
      sum3 <= skip16 ? {sum[11:0], 16'b0} : sum;
      skip3 <= skip16;
      exponent3 <= exponent2;
      {sign3, infinite3, nan3} <= {sign2, infinite2, nan2};
    end

  // 4: skip the other leading zeros
  wire        skip8 = ~|sum3[27:20];
  wire [27:0] by8 = skip8 ? {sum3[19:0], 8'b0} : sum3;
  wire        skip4 = ~|by8[27:24];
  wire [27:0] by4 = skip4 ? {by8[23:0], 4'b0} : by8;
  wire        skip2 = ~|by4[27:26];
  wire [27:0] by2 = skip2 ? {by4[25:0], 2'b0} : by4;
  wire        skip1 = ~by2[27];
  reg  [27:0] normal4;
  reg  [4:0]  zeros4;
  reg  [7:0]  exponent4;
  reg         sign4, infinite4, nan4;
  always @(posedge clk)
    if (ce) begin
      normal4 <= skip1 ? {by2[26:0], 1'b0} : by2;
      zeros4 <= {skip3, skip8, skip4, skip2, skip1};
      exponent4 <= exponent3;
      {sign4, infinite4, nan4} <= {sign3, infinite3, nan3};
    end

  // 5: round and pack; the carry of the increment runs into the exponent
  wire        up = normal4[3] & (normal4[4] | |normal4[2:0]);
  wire [9:0]  exponent = {2'b0, exponent4} + 10'd1 - {5'b0, zeros4};
  wire [32:0] rounded = {exponent, normal4[26:4]} + {32'b0, up};
  wire        vanished = ~normal4[27];
  wire        tiny = rounded[32] || ~|rounded[31:23];
  wire        huge = ~rounded[32] && (rounded[31] || &rounded[30:23]);
  always @(posedge clk)
    if (ce) begin
      if (nan4) y <= 32'h7FC00000;
      else if (infinite4 || (huge && !vanished)) y <= {sign4, 31'h7F800000};
      else if (vanished) y <= {sign4 & zero_operands4, 31'b0};
      else if (tiny) y <= {sign4, 31'b0};
      else y <= {sign4, rounded[30:0]};
    end

  // a sum of two zeros keeps its sign
  reg zero_operands1, zero_operands2, zero_operands3, zero_operands4;
  always @(posedge clk)
    if (ce) {zero_operands1, zero_operands2, zero_operands3, zero_operands4}
        <= {~|major[30:23], zero_operands1, zero_operands2, zero_operands3};
endmodule
