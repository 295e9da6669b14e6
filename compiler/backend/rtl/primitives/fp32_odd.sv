// tanh(a), or erf(a) with ERF. Below one |a| * g(|a|), from one on f(|a|), where g(x) = f(x) / x and f come from one
// table of parabolas; 64 segments below 1 and 64 in every octave above, up to where next to nothing is missing to 1.
// Subnormal operands count as 0.
module fp32_odd #(
    parameter ERF = 0
) (
    input             clk,
    input             ce,
    input      [31:0] a,
    output reg [31:0] y
);
  localparam [7:0] LIMIT = ERF != 0 ? 8'd129 : 8'd130;  // the exponent from which on there is no table

  // 1: segment and place in it; the factor
  wire        below_one = a[30:23] < 8'd127;
  wire [4:0]  shift = a[30:23] < 8'd102 ? 5'd24 : 5'd30 - a[27:23];  // 126 % 32 = 30
  wire [23:0] place = {1'b1, a[22:0]} >> shift;
  wire [1:0]  octave = a[24:23] + 2'd2;  // exponents 127, 128, 129 give 1, 2, 3
  reg  [7:0]  index1;
  reg  [17:0] d1;
  reg  [23:0] factor1;
  always @(posedge clk)
    if (ce) begin
      index1 <= below_one ? {2'b0, place[23:18]} : {octave, a[22:17]};
      d1 <= (below_one ? place[17:0] : {a[16:0], 1'b0}) ^ 18'h20000;
      factor1 <= below_one ? {1'b1, a[22:0]} : 24'h800000;
    end

  // what is missing to 1 beyond the table, in units of 2^-24
  wire [1:0] missing = ERF != 0 || a[30:23] != 8'd130 || |a[22:20] ? 2'd0
                     : a[19] ? 2'd1 : a[18] ? 2'd2 : 2'd3;
  // {factor, sign, nan, beyond, missing, zero, exponent}
  reg [37:0] side1, side2, side3, side4, side5, side6, side7;
  reg [13:0] side8, side9, side10;
  always @(posedge clk)
    if (ce) begin
      side1[13:0] <= {a[31], &a[30:23] && |a[22:0], a[30:23] >= LIMIT, missing, ~|a[30:23],
                      below_one ? a[30:23] : 8'd127};
      side2 <= {factor1, side1[13:0]};
      {side7, side6, side5, side4, side3} <= {side6, side5, side4, side3, side2};
      {side10, side9, side8} <= {side9, side8, side7[13:0]};
    end

  // 2 to 7: g or f; 8 to 10: times the factor
  wire [28:0] value;
  generate
    if (ERF != 0) begin : erf
      erf_polynomial polynomial (.clk(clk), .ce(ce), .index(index1), .d(d1), .y(value));
    end else begin : tanh
      tanh_polynomial polynomial (.clk(clk), .ce(ce), .index(index1), .d(d1), .y(value));
    end
  endgenerate
  wire [49:0] product;  // 2^48 is one
  significand_product multiplier (
      .clk(clk), .ce(ce), .a(side7[37:14]), .b(value[27:2]), .y(product));

  // 11: normalise and round
  wire        sign, nan, beyond, zero;
  wire [1:0]  short_of_one;
  wire [7:0]  exponent;
  assign {sign, nan, beyond, short_of_one, zero, exponent} = side10;
  wire [24:0] normal = product[49] ? product[49:25] : product[48] ? product[48:24] : product[47:23];
  wire [7:0]  up_or_down = product[49] ? 8'd1 : product[48] ? 8'd0 : 8'hFF;
  wire [30:0] rounded;
  wire        unused;
  assign {rounded, unused} = {exponent, normal[23:1], 1'b1} + {up_or_down, 23'b0, normal[0]};
  wire        tiny = zero || (exponent == 8'd1 && ~|product[49:48]);
  always @(posedge clk)
    if (ce) begin
      y[31] <= sign & ~nan;
      if (nan) y[30:0] <= 31'h7FC00000;
      else if (beyond) y[30:0] <= short_of_one == 2'd0 ? 31'h3F800000 : {29'h0FE00000 - 29'd1, ~short_of_one + 2'd1};
      else if (tiny) y[30:0] <= 31'b0;
      else y[30:0] <= rounded;
    end
endmodule
