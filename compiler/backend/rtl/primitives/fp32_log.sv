// The natural logarithm of a, or with BASE_TWO the one to base 2: exponent times log(2), plus (m - 1) * g(m) for the
// significand m between 0.71 and 1.42, where g(m) = log(m) / (m - 1) comes from a table of parabolas.
// Subnormal operands count as 0.
module fp32_log #(
    parameter BASE_TWO = 0
) (
    input             clk,
    input             ce,
    input      [31:0] a,
    output reg [31:0] y
);
  localparam [30:0] LOG_2 = BASE_TWO != 0 ? 31'h40000000 : 31'h2C5C85FE;  // 30 fraction bits

  // 1 to 5: g
  wire [28:0] value;
  generate
    if (BASE_TWO != 0) begin : base_two
      log2_polynomial polynomial (.clk(clk), .ce(ce), .index(a[22:17]), .d({~a[16], a[15:0]}), .y(value));
    end else begin : natural
      log_polynomial polynomial (.clk(clk), .ce(ce), .index(a[22:17]), .d({~a[16], a[15:0]}), .y(value));
    end
  endgenerate

  // 1: |m - 1| in units of 2^-24; the exponent of m, and whether m is below one
  wire        halved = a[22:17] >= 6'd27;
  reg  [23:0] distance1, distance2, distance3, distance4, distance5;
  reg  [8:0]  exponent1, exponent2;
  // {below one, nan, minus infinity, infinity, exponent zero}
  reg  [4:0]  side1, side2, side3, side4, side5, side6, side7, side8, side9, side10, side11, side12;
  wire [8:0]  exponent = {1'b0, a[30:23]} - 9'd127 + {8'b0, halved};
  always @(posedge clk)
    if (ce) begin
      distance1 <= halved ? 24'h800000 - {1'b0, a[22:0]} : {a[22:0], 1'b0};
      {distance5, distance4, distance3, distance2} <= {distance4, distance3, distance2, distance1};
      exponent1 <= exponent;
      side1 <= {halved, (&a[30:23] && |a[22:0]) || (a[31] && |a[30:23]), ~|a[30:23], &a[30:23], ~|exponent};
      {side12, side11, side10, side9, side8, side7, side6, side5, side4, side3, side2}
          <= {side11, side10, side9, side8, side7, side6, side5, side4, side3, side2, side1};
    end

  // 2, 3: exponent times log(2), four bits of the exponent at a time; it waits until stage 8
  function [34:0] times(input [3:0] n);
    integer i;
    begin
      times = 35'd0;
      for (i = 0; i < 16; i = i + 1) if (n == i) times = LOG_2 * i;
    end
  endfunction
  reg [34:0] low2;
  reg [38:0] high2, whole3, whole4, whole5, whole6, whole7, whole8;
  always @(posedge clk)
    if (ce) begin
      low2 <= times(exponent1[3:0]);
      high2 <= {times(exponent1[7:4]), 4'b0} - (exponent1[8] ? {LOG_2, 8'b0} : 39'd0);
      whole3 <= {4'b0, low2} + high2;
      {whole8, whole7, whole6, whole5, whole4} <= {whole7, whole6, whole5, whole4, whole3};
    end

  // 6 to 8: the product; 2^49 is one
  wire [49:0] product8;
  significand_product multiplier (.clk(clk), .ce(ce), .a(distance5), .b(value[27:2]), .y(product8));

  // 9: the sum with 30 fraction bits; where the exponent is zero the product alone, in full
  wire        subtract = side8[4];
  wire        unused;
  wire [38:0] sum;
  assign {sum, unused} = {whole8, 1'b1} + {{8'b0, product8[49:19]} ^ {39{subtract}}, subtract};
  reg [49:0] word9;
  reg        sign9, sign10, sign11, sign12;
  always @(posedge clk)
    if (ce) begin
      word9 <= side8[0] ? product8 : {sum[36:0], 13'b0} ^ {50{sum[38]}};
      sign9 <= side8[0] ? side8[4] : sum[38];
      {sign12, sign11, sign10} <= {sign11, sign10, sign9};
    end

  // 10, 11: skip zeros; 12: the exponent of the result
  wire        skip32 = ~|word9[49:18];
  wire [49:0] by32 = skip32 ? {word9[17:0], 32'b0} : word9;
  wire        skip16 = ~|by32[49:34];
  reg  [49:0] by16_10;
  reg  [1:0]  skipped10;
  wire        skip8 = ~|by16_10[49:42];
  wire [49:0] by8 = skip8 ? {by16_10[41:0], 8'b0} : by16_10;
  wire        skip4 = ~|by8[49:46];
  reg  [31:0] by4_11;
  reg  [3:0]  skipped11;
  wire        skip2 = ~|by4_11[31:30];
  wire [31:0] by2 = skip2 ? {by4_11[29:0], 2'b0} : by4_11;
  reg  [24:0] normal12;
  reg  [7:0]  exponent12;
  always @(posedge clk)
    if (ce) begin
      by16_10 <= skip16 ? {by32[33:0], 16'b0} : by32;
      skipped10 <= {skip32, skip16};
      by4_11 <= skip4 ? {by8[45:18], 4'b0} : by8[49:18];
      skipped11 <= {skipped10, skip8, skip4};
      normal12 <= by2[31] ? by2[31:7] : by2[30:6];
      exponent12 <= (side11[0] ? 8'd127 : 8'd133) - {2'b0, skipped11, skip2, ~by2[31]};
    end

  // 13: round
  wire [30:0] rounded = {exponent12, normal12[23:1]} + {30'b0, normal12[0]};
  always @(posedge clk)
    if (ce) begin
      y[31] <= ~side12[3] && (side12[2] || (~side12[1] && sign12));
      if (side12[3]) y[30:0] <= 31'h7FC00000;
      else if (side12[2] || side12[1]) y[30:0] <= 31'h7F800000;
      else if (~normal12[24]) y[30:0] <= 31'b0;
      else y[30:0] <= rounded;
    end
endmodule
