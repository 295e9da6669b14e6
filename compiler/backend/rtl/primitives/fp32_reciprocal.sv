// 1 / a by a table of parabolas. Subnormal operands count as 0; results below the normal numbers become 0.
module fp32_reciprocal (
    input             clk,
    input             ce,
    input      [31:0] a,
    output reg [31:0] y
);
  // 1 to 5: 1 / significand, between a half and one
  wire [28:0] inverse;
  reciprocal_polynomial polynomial (.clk(clk), .ce(ce), .index(a[22:16]), .d({~a[15], a[14:0]}), .y(inverse));

  // {sign, nan, infinite, zero, power of two, exponent of the result}
  wire [7:0]  exponent = 8'd253 - a[30:23];
  wire        zero = a[30:23] >= 8'd253;
  reg  [12:0] side1, side2, side3, side4, side5;
  always @(posedge clk)
    if (ce) begin
      side1 <= {a[31], &a[30:23] && |a[22:0], ~|a[30:23], zero && ~(a[30:23] == 8'd253 && ~|a[22:0]), ~|a[22:0], exponent};
      {side5, side4, side3, side2} <= {side4, side3, side2, side1};
    end

  // 6: round; a power of two is exact
  wire        sign, nan, infinite, vanished, exact;
  wire [7:0]  power;
  assign {sign, nan, infinite, vanished, exact, power} = side5;
  wire        in_range = inverse[26];  // the table's error may lead below a half, which counts as a half
  wire [30:0] rounded = {power, inverse[25:3] & {23{in_range}}} + {30'b0, inverse[2] && in_range};
  always @(posedge clk)
    if (ce) begin
      y[31] <= sign & ~nan;
      if (nan) y[30:0] <= 31'h7FC00000;
      else if (infinite) y[30:0] <= 31'h7F800000;
      else if (vanished) y[30:0] <= 31'b0;
      else if (exact) y[30:0] <= {power + 8'd1, 23'b0};
      else y[30:0] <= rounded;
    end
endmodule
