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
  // 1: order by magnitude, distance of the exponents up to 31, special operands
  wire       b_sign = b[31] ^ (SUBTRACT != 0);
  wire       a_smaller = a[30:0] < b[30:0];
  wire [7:0] a_above = a[30:23] - b[30:23];
  wire [7:0] b_above = b[30:23] - a[30:23];
  wire       a_zero = ~|a[30:23];
  wire       b_zero = ~|b[30:23];
  wire       a_nan = &a[30:23] && |a[22:0];
  wire       b_nan = &b[30:23] && |b[22:0];
  reg  [7:0] exponent1;
  reg  [4:0] distance1;
  reg [22:0] major1, minor1;
  reg        minor_zero1, sign1, subtract1, zero1, infinite1, nan1;
  always @(posedge clk)
    if (ce) begin
      exponent1 <= a_smaller ? b[30:23] : a[30:23];
      distance1 <= a_smaller ? b_above[4:0] | {5{|b_above[7:5]}} : a_above[4:0] | {5{|a_above[7:5]}};
      major1 <= a_smaller ? b[22:0] : a[22:0];
      minor1 <= a_smaller ? a[22:0] : b[22:0];
      minor_zero1 <= a_smaller ? a_zero : b_zero;
      subtract1 <= a[31] ^ b_sign;
      zero1 <= a_zero && b_zero;
      sign1 <= a_zero && b_zero ? a[31] && b_sign : a_smaller ? b_sign : a[31];
      infinite1 <= &a[30:23] || &b[30:23];
      nan1 <= a_nan || b_nan || (&a[30:23] && &b[30:23] && (a[31] ^ b_sign));
    end

  // 2: align the smaller one: guard and round bit, and one sticky bit for all below
  wire [23:0] minor = {1'b1, minor1} & {24{~minor_zero1}};
  reg  [25:0] coarse;
  reg         coarse_sticky;
  always @*
    case (distance1[4:3])
      2'd0: {coarse, coarse_sticky} = {minor, 2'b0, 1'b0};
      2'd1: {coarse, coarse_sticky} = {8'b0, minor[23:6], |minor[5:0]};
      2'd2: {coarse, coarse_sticky} = {16'b0, minor[23:14], |minor[13:0]};
      default: {coarse, coarse_sticky} = {24'b0, minor[23:22], |minor[21:0]};
    endcase
  wire [6:0]  fine_mask = {&distance1[2:0], &distance1[2:1], distance1[2] & |distance1[1:0], distance1[2],
                           distance1[2] | &distance1[1:0], |distance1[2:1], |distance1[2:0]};
  reg  [26:0] complement2;
  reg  [22:0] major2;
  reg  [7:0]  exponent2;
  reg         sign2, subtract2, zero2, infinite2, nan2;
  always @(posedge clk)
    if (ce) begin
      complement2 <= {coarse >> distance1[2:0], coarse_sticky || |(coarse[6:0] & fine_mask)} ^ {27{subtract1}};
      major2 <= major1;
      exponent2 <= exponent1;
      {sign2, subtract2, zero2, infinite2, nan2} <= {sign1, subtract1, zero1, infinite1, nan1};
    end

  // 3: add, or add the complement and one
  wire        unused3;  // the lowest bits make the carry in
  wire [27:0] sum;
  assign {sum, unused3} = {2'b01, major2, 3'b0, 1'b1} + {subtract2, complement2, subtract2};
  reg  [27:0] sum3;
  reg  [6:0]  any3;  // which fours of bits have a one
  reg  [7:0]  exponent3;
  reg         sign3, zero3, infinite3, nan3;
  always @(posedge clk)
    if (ce) begin
      sum3 <= sum;
      any3 <= {|sum[27:24], |sum[23:20], |sum[19:16], |sum[15:12], |sum[11:8], |sum[7:4], |sum[3:0]};
      exponent3 <= exponent2;
      {sign3, zero3, infinite3, nan3} <= {sign2, zero2, infinite2, nan2};
    end

  // 4: skip the leading zeros, fours and ones at once
  function [1:0] zeros_of_4(input [3:0] bits);
    zeros_of_4 = bits[3] ? 2'd0 : bits[2] ? 2'd1 : bits[1] ? 2'd2 : 2'd3;
  endfunction
  wire       four = ~|any3[6:3];
  wire [2:0] fours = {four, four ? zeros_of_4({any3[2:0], 1'b1}) : zeros_of_4(any3[6:3])};
  wire [27:0] by16 = four ? {sum3[11:0], 16'b0} : sum3;
  wire [1:0] ones_high = fours[1] ? (fours[0] ? zeros_of_4(sum3[15:12]) : zeros_of_4(sum3[19:16]))
                                  : (fours[0] ? zeros_of_4(sum3[23:20]) : zeros_of_4(sum3[27:24]));
  wire [1:0] ones_low = fours[1] ? zeros_of_4(sum3[3:0]) : fours[0] ? zeros_of_4(sum3[7:4]) : zeros_of_4(sum3[11:8]);
  wire [1:0] ones = four ? ones_low : ones_high;
  reg [27:0] by4;
  always @*
    case (fours[1:0])
      2'd0: by4 = by16;
      2'd1: by4 = {by16[23:0], 4'b0};
      2'd2: by4 = {by16[19:0], 8'b0};
      default: by4 = {by16[15:0], 12'b0};
    endcase
  reg [27:0] normal4;
  reg [4:0]  zeros4;
  reg [8:0]  exponent4;  // two too large
  reg [7:0]  original4;
  reg        sign4, zero4, infinite4, nan4;
  always @(posedge clk)
    if (ce) begin
      normal4 <= by4 << ones;
      zeros4 <= {fours, ones};
      exponent4 <= {1'b0, exponent3} + 9'd2;
      original4 <= exponent3;
      {sign4, zero4, infinite4, nan4} <= {sign3, zero3, infinite3, nan3};
    end

  // 5: round and pack in one sum; the carry runs into the exponent, which is that of the larger operand + 1 - zeros
  wire        up = normal4[3] & (normal4[4] | |normal4[2:0]);
  wire        unused5;
  wire [31:0] rounded;
  assign {rounded, unused5} = {exponent4, normal4[26:4], 1'b1} + {4'b1111, ~zeros4, 23'b0, up};
  wire        cancelled = ~normal4[27];
  wire        tiny = original4 < {3'b0, zeros4};
  wire        huge = original4 == 8'd254 && zeros4 == 5'd0;
  always @(posedge clk)
    if (ce) begin
      y[31] <= sign4 & (zero4 | ~cancelled) & ~nan4;
      if (nan4) y[30:0] <= 31'h7FC00000;
      else if (infinite4 || huge) y[30:0] <= 31'h7F800000;
      else if (zero4 || cancelled || tiny) y[30:0] <= 31'b0;
      else y[30:0] <= rounded[30:0];
    end
endmodule
