// a * b of 24 and 26 bits: three 18-bit multipliers, and adders for the upper bits of both. Latency 3.
module significand_product (
    input             clk,
    input             ce,
    input      [23:0] a,
    input      [25:0] b,
    output reg [49:0] y
);
  // 1: partial products
  wire [35:0] low1, left1, right1;
  mult18 low_product (.clk(clk), .ce(ce), .a(a[17:0]), .b(b[17:0]), .y(low1));
  mult18 left_product (.clk(clk), .ce(ce), .a(a[17:0]), .b({10'b0, b[25:18]}), .y(left1));
  mult18 right_product (.clk(clk), .ce(ce), .a({12'b0, a[23:18]}), .b(b[17:0]), .y(right1));
  function [10:0] times_3_bits(input [7:0] x, input [2:0] n);
    times_3_bits = {3'b0, x & {8{n[0]}}} + {2'b0, x & {8{n[1]}}, 1'b0} + {1'b0, x & {8{n[2]}}, 2'b0};
  endfunction
  reg [10:0] high1, higher1;
  always @(posedge clk)
    if (ce) begin
      high1 <= times_3_bits(b[25:18], a[20:18]);
      higher1 <= times_3_bits(b[25:18], a[23:21]);
    end

  // 2: the inner ones
  reg [49:0] outer2;
  reg [26:0] inner2;
  always @(posedge clk)
    if (ce) begin
      outer2 <= {{3'b0, high1} + {higher1, 3'b0}, low1};
      inner2 <= {1'b0, left1[25:0]} + {3'b0, right1[23:0]};
    end

  // 3: all
  always @(posedge clk) if (ce) y <= {outer2[49:18] + {5'b0, inner2}, outer2[17:0]};
endmodule
