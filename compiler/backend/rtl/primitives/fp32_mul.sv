// a * b: round to nearest even. Subnormal operands count as 0; what is below 2^-126 before rounding becomes 0.
// The 24x24-bit product is three 18-bit multipliers and, for the top six bits of both, adders.
module fp32_mul (
    input             clk,
    input             ce,
    input      [31:0] a,
    input      [31:0] b,
    output reg [31:0] y
);
  wire [23:0] a_whole = {1'b1, a[22:0]};
  wire [23:0] b_whole = {1'b1, b[22:0]};
  wire        a_top = &a[30:23];
  wire        b_top = &b[30:23];
  wire        a_zero = ~|a[30:23];
  wire        b_zero = ~|b[30:23];

  // 1: partial products
  wire [35:0] low1;
  wire [35:0] left1, right1;
  mult18 low_product (.clk(clk), .ce(ce), .a(a_whole[17:0]), .b(b_whole[17:0]), .y(low1));
  mult18 left_product (.clk(clk), .ce(ce), .a(a_whole[17:0]), .b({12'b0, b_whole[23:18]}), .y(left1));
  mult18 right_product (.clk(clk), .ce(ce), .a({12'b0, a_whole[23:18]}), .b(b_whole[17:0]), .y(right1));
  function [11:0] product_of_6(input [5:0] x, input [5:0] z);
    product_of_6 = (({6'b0, z & {6{x[0]}}} + {5'b0, z & {6{x[1]}}, 1'b0})
                  + ({4'b0, z & {6{x[2]}}, 2'b0} + {3'b0, z & {6{x[3]}}, 3'b0}))
                  + ({2'b0, z & {6{x[4]}}, 4'b0} + {1'b0, z & {6{x[5]}}, 5'b0});
  endfunction
  reg [11:0] high1;
  reg [8:0] exponent1;
  reg       sign1, zero1, infinite1, nan1;
  always @(posedge clk)
    if (ce) begin
      high1 <= product_of_6(a_whole[23:18], b_whole[23:18]);
      exponent1 <= {1'b0, a[30:23]} + {1'b0, b[30:23]};
      sign1 <= a[31] ^ b[31];
      zero1 <= a_zero || b_zero;
      infinite1 <= a_top || b_top;
      nan1 <= (a_top && |a[22:0]) || (b_top && |b[22:0]) || (a_top && b_zero) || (b_top && a_zero);
    end

  // 2: the inner products; the exponent without its bias
  reg [29:0] outer2;
  reg [24:0] inner2;
  reg        low_sticky2;
  reg [9:0]  exponent2;
  reg        sign2, zero2, infinite2, nan2;
  always @(posedge clk)
    if (ce) begin
      outer2 <= {high1, low1[35:18]};
      inner2 <= {1'b0, left1[23:0]} + {1'b0, right1[23:0]};
      low_sticky2 <= |low1[17:0];
      exponent2 <= {1'b0, exponent1} - 10'd127;
      {sign2, zero2, infinite2, nan2} <= {sign1, zero1, infinite1, nan1};
    end

  // 3: the product's upper 30 bits, the others as one sticky bit; which exponents are out of range
  reg [29:0] product3;
  reg        sticky3;
  reg [7:0]  exponent3;
  reg        tiny3, least3, huge3, most3;
  reg        sign3, zero3, infinite3, nan3;
  always @(posedge clk)
    if (ce) begin
      product3 <= outer2 + {5'b0, inner2};
      sticky3 <= low_sticky2;
      exponent3 <= exponent2[7:0];
      tiny3 <= exponent2[9];
      least3 <= exponent2 == 10'd0;
      huge3 <= ~exponent2[9] && (exponent2[8] || &exponent2[7:0]);
      most3 <= exponent2 == 10'd254;
      {sign3, zero3, infinite3, nan3} <= {sign2, zero2, infinite2, nan2};
    end

  // 4: normalise, round and pack in one sum, whose carry runs into the exponent
  wire        carry = product3[29];
  wire [22:0] fraction = carry ? product3[28:6] : product3[27:5];
  wire        below = |product3[3:0] || sticky3;
  wire        up = carry ? product3[5] && (product3[6] || product3[4] || below)
                         : product3[4] && (product3[5] || below);
  wire        unused4;
  wire [30:0] rounded;
  assign {rounded, unused4} = {exponent3, fraction, 1'b1} + {7'b0, carry, 23'b0, up};
  wire        huge = huge3 || (most3 && carry);
  wire        tiny = tiny3 || (least3 && ~carry);
  always @(posedge clk)
    if (ce) begin
      y[31] <= sign3 & ~nan3;
      if (nan3) y[30:0] <= 31'h7FC00000;
      else if (infinite3) y[30:0] <= 31'h7F800000;
      else if (zero3 || tiny) y[30:0] <= 31'b0;
      else if (huge) y[30:0] <= 31'h7F800000;
      else y[30:0] <= rounded;
    end
endmodule
