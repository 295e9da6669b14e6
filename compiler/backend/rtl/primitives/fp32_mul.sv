// a * b: round to nearest even. Subnormal operands count as 0, results below the normal numbers become 0.
// The 24x24-bit product is two 18-bit multipliers and, for the top six bits of a, adders.
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
  wire [35:0] middle1;
  mult18 low_product (.clk(clk), .ce(ce), .a(a_whole[17:0]), .b(b_whole[17:0]), .y(low1));
  mult18 middle_product (.clk(clk), .ce(ce), .a(a_whole[17:0]), .b({12'b0, b_whole[23:18]}), .y(middle1));
  reg [23:0] row0, row1, row2, row3, row4, row5;
  reg [29:0] high1;
  always @* begin
    row0 = b_whole & {24{a_whole[18]}};
    row1 = b_whole & {24{a_whole[19]}};
    row2 = b_whole & {24{a_whole[20]}};
    row3 = b_whole & {24{a_whole[21]}};
    row4 = b_whole & {24{a_whole[22]}};
    row5 = b_whole & {24{a_whole[23]}};
  end
  reg [8:0] exponent1;
  reg       sign1, zero1, infinite1, nan1;
  always @(posedge clk)
    if (ce) begin
      high1 <= ({6'b0, row0} + {5'b0, row1, 1'b0}) + (({4'b0, row2, 2'b0} + {3'b0, row3, 3'b0})
               + ({2'b0, row4, 4'b0} + {1'b0, row5, 5'b0}));
      exponent1 <= {1'b0, a[30:23]} + {1'b0, b[30:23]};
      sign1 <= a[31] ^ b[31];
      zero1 <= a_zero || b_zero;
      infinite1 <= a_top || b_top;
      nan1 <= (a_top && |a[22:0]) || (b_top && |b[22:0]) || (a_top && b_zero) || (b_top && a_zero);
    end

  // 2: the two upper products
  reg [30:0] upper2;
  reg [17:0] low2;
  reg        low_sticky2;
  reg [8:0]  exponent2;
  reg        sign2, zero2, infinite2, nan2;
  always @(posedge clk)
    if (ce) begin
      upper2 <= {1'b0, high1} + {7'b0, middle1[23:0]};
      low2 <= low1[35:18];
      low_sticky2 <= |low1[17:0];
      exponent2 <= exponent1;
      {sign2, zero2, infinite2, nan2} <= {sign1, zero1, infinite1, nan1};
    end

  // 3: the product's upper 30 bits, the others as one sticky bit
  reg [29:0] product3;
  reg        sticky3;
  reg [8:0]  exponent3;
  reg        sign3, zero3, infinite3, nan3;
  wire [30:0] product = upper2 + {13'b0, low2};
  always @(posedge clk)
    if (ce) begin
      product3 <= product[29:0];
      sticky3 <= low_sticky2;
      exponent3 <= exponent2;
      {sign3, zero3, infinite3, nan3} <= {sign2, zero2, infinite2, nan2};
    end

  // 4: normalise, round, pack; the carry of the increment runs into the exponent
  wire        carry = product3[29];
  wire [22:0] fraction = carry ? product3[28:6] : product3[27:5];
  wire        guard = carry ? product3[5] : product3[4];
  wire        sticky = |product3[3:0] || sticky3 || (carry && product3[4]);
  wire        up = guard && (sticky || fraction[0]);
  wire [9:0]  exponent = {1'b0, exponent3} - 10'd127 + {9'b0, carry};
  wire [32:0] rounded = {exponent, fraction} + {32'b0, up};
  wire        tiny = rounded[32] || ~|rounded[31:23];
  wire        huge = ~rounded[32] && (rounded[31] || &rounded[30:23]);
  always @(posedge clk)
    if (ce) begin
      if (nan3) y <= 32'h7FC00000;
      else if (infinite3) y <= {sign3, 31'h7F800000};
      else if (zero3 || tiny) y <= {sign3, 31'b0};
      else if (huge) y <= {sign3, 31'h7F800000};
      else y <= {sign3, rounded[30:0]};
    end
endmodule
