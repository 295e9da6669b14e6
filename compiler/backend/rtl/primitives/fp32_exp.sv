// exp(a), or 2^a with BASE_TWO: 2^t with t = a * log2(e) in fixed point, by a table of parabolas.
// Results below the normal numbers become 0.
module fp32_exp #(
    parameter BASE_TWO = 0
) (
    input             clk,
    input             ce,
    input      [31:0] a,
    output reg [31:0] y
);
  // log2(e), or 1, with 33 fraction bits
  localparam [33:0] FACTOR = BASE_TWO != 0 ? 34'h200000000 : 34'h2E2A8ECA5;
  wire [23:0] significand = {1'b1, a[22:0]};

  // 1: partial products; the top six bits of the significand choose from two tables of eight
  wire [35:0] low1, middle1;
  mult18 low_product (.clk(clk), .ce(ce), .a(significand[17:0]), .b(FACTOR[17:0]), .y(low1));
  mult18 middle_product (.clk(clk), .ce(ce), .a(significand[17:0]), .b({2'b0, FACTOR[33:18]}), .y(middle1));
  function [36:0] times(input [2:0] n);
    case (n)
      3'd0: times = 37'd0;
      3'd1: times = {3'b0, FACTOR};
      3'd2: times = {2'b0, FACTOR, 1'b0};
      3'd3: times = {3'b0, FACTOR} + {2'b0, FACTOR, 1'b0};
      3'd4: times = {1'b0, FACTOR, 2'b0};
      3'd5: times = {1'b0, FACTOR, 2'b0} + {3'b0, FACTOR};
      3'd6: times = {1'b0, FACTOR, 2'b0} + {2'b0, FACTOR, 1'b0};
      default: times = {FACTOR, 3'b0} - {3'b0, FACTOR};
    endcase
  endfunction
  wire [39:0] high = {3'b0, times(significand[20:18])} + {times(significand[23:21]), 3'b0};
  reg  [39:0] high1;
  // beyond 2^7 nothing but infinity and 0 is left, below 2^-32 nothing but 1
  wire        beyond = a[30:23] >= 8'd134;
  reg  [5:0]  shift1;
  reg         sign1, beyond1, nan1;
  always @(posedge clk)
    if (ce) begin
      high1 <= high;
      shift1 <= a[30:23] < 8'd95 ? 6'd63 : 6'd8 - a[28:23];  // 136 less the exponent
      sign1 <= a[31];
      beyond1 <= beyond;
      nan1 <= &a[30:23] && |a[22:0];
    end

  // 2: the product; its complement where a is negative
  wire [39:0] product = high1 + {4'b0, middle1} + {22'b0, low1[35:18]};
  reg  [35:0] product2;
  reg  [5:0]  shift2;
  reg         sign2, beyond2, nan2;
  always @(posedge clk)
    if (ce) begin
      product2 <= product[39:4] ^ {36{sign1}};
      {shift2, sign2, beyond2, nan2} <= {shift1, sign1, beyond1, nan1};
    end

  // 3: fixed point with 25 fraction bits
  wire signed [36:0] signed_product = {sign2, product2};
  wire signed [36:0] fixed = signed_product >>> shift2;
  reg  [34:0] fixed3;
  reg         sign3, beyond3, nan3;
  always @(posedge clk)
    if (ce) begin
      fixed3 <= fixed[34:0];
      {sign3, beyond3, nan3} <= {sign2, beyond2, nan2};
    end

  // 4 to 8: 2 to the fraction; whether the whole part is in range
  wire [28:0] power;
  exp2_polynomial polynomial (
      .clk(clk), .ce(ce), .index(fixed3[24:18]), .d({~fixed3[17], fixed3[16:0]}), .y(power));
  wire [9:0]  whole = fixed3[34:25];
  wire        huge = ~sign3 && (beyond3 || whole[9] || |whole[8:7]);
  wire        tiny = sign3 && (beyond3 || ~whole[9] || ~&whole[8:7] || whole[6:0] < 7'd2);
  reg  [10:0] side4, side5, side6, side7, side8;
  always @(posedge clk)
    if (ce) begin
      side4 <= {nan3, huge, tiny, whole[7:0] + 8'd127};
      {side8, side7, side6, side5} <= {side7, side6, side5, side4};
    end

  // 9: round; the table's error may lead out of 1 to 2 at either end, which counts as 1 and 2
  wire        in_range = power[27];
  wire [30:0] rounded = {side8[7:0], power[26:4] & {23{in_range}}} + {7'b0, power[28], 22'b0, power[3] && in_range};
  always @(posedge clk)
    if (ce) begin
      y[31] <= 1'b0;
      if (side8[10]) y[30:0] <= 31'h7FC00000;
      else if (side8[9]) y[30:0] <= 31'h7F800000;
      else if (side8[8]) y[30:0] <= 31'b0;
      else y[30:0] <= rounded;
    end
endmodule
