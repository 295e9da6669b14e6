// 1 / sqrt(a) by a table of parabolas. Subnormal operands count as 0, of which the result is infinite.
module fp32_rsqrt (
    input             clk,
    input             ce,
    input      [31:0] a,
    output reg [31:0] y
);
  // 1 to 5: of the significand, or of twice the significand where the exponent is odd; between a half and one
  wire [28:0] inverse;
  rsqrt_polynomial polynomial (
      .clk(clk), .ce(ce), .index({~a[23], a[22:17]}), .d({~a[16], a[15:0]}), .y(inverse));

  // {sign, nan, infinite, zero, power of four, exponent of the result}
  wire        nan = (&a[30:23] && |a[22:0]) || (a[31] && |a[30:23]);
  wire        exact = a[23] && ~|a[22:0];
  wire [7:0]  exponent = 8'd190 - {1'b0, a[30:24]} - {7'b0, a[23]};
  reg  [12:0] side1, side2, side3, side4, side5;
  always @(posedge clk)
    if (ce) begin
      side1 <= {a[31], nan, ~|a[30:23], &a[30:23], exact, exponent};
      {side5, side4, side3, side2} <= {side4, side3, side2, side1};
    end

  // 6: round; of a power of four it is exact
  wire        sign, invalid, infinite, vanished, round_number;
  wire [7:0]  power;
  assign {sign, invalid, infinite, vanished, round_number, power} = side5;
  wire        in_range = inverse[26];  // the table's error may lead below a half, which counts as a half
  wire [30:0] rounded = {power, inverse[25:3] & {23{in_range}}} + {30'b0, inverse[2] && in_range};
  always @(posedge clk)
    if (ce) begin
      y[31] <= sign & ~invalid;
      if (invalid) y[30:0] <= 31'h7FC00000;
      else if (infinite) y[30:0] <= 31'h7F800000;
      else if (vanished) y[30:0] <= 31'b0;
      else if (round_number) y[30:0] <= {power + 8'd1, 23'b0};
      else y[30:0] <= rounded;
    end
endmodule
