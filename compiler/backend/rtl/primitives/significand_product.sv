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
  wire [7:0]  top = b[25:18];
  reg  [13:0] high1;
  always @(posedge clk)
    if (ce)
      high1 <= (({6'b0, top & {8{a[18]}}} + {5'b0, top & {8{a[19]}}, 1'b0})
              + ({4'b0, top & {8{a[20]}}, 2'b0} + {3'b0, top & {8{a[21]}}, 3'b0}))
              + ({2'b0, top & {8{a[22]}}, 4'b0} + {1'b0, top & {8{a[23]}}, 5'b0});

  // 2: the inner ones
  reg [49:0] outer2;
  reg [26:0] inner2;
  always @(posedge clk)
    if (ce) begin
      outer2 <= {high1, low1};
      inner2 <= {1'b0, left1[25:0]} + {3'b0, right1[23:0]};
    end

  // 3: all
  always @(posedge clk) if (ce) y <= {outer2[49:18] + {5'b0, inner2}, outer2[17:0]};
endmodule
