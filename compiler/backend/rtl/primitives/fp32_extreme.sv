// The larger of a and b, or with LARGER = 0 the smaller. A NaN wins, or with NAN_WINS = 0 the other operand does.
// -0 is below +0; subnormals keep their value.
module fp32_extreme #(
    parameter LARGER = 1,
    parameter NAN_WINS = 1
) (
    input             clk,
    input             ce,
    input      [31:0] a,
    input      [31:0] b,
    output reg [31:0] y
);
  wire a_nan = &a[30:23] && |a[22:0];
  wire b_nan = &b[30:23] && |b[22:0];
  wire magnitude_less = a[30:0] < b[30:0];
  wire a_less = a[31] != b[31] ? a[31] : a[31] ^ magnitude_less;  // where they are equal, either will do
  wire take_a = a_nan ? NAN_WINS != 0 : b_nan ? NAN_WINS == 0 : a_less != (LARGER != 0);
  always @(posedge clk)
    if (ce) y <= take_a ? a : b;
endmodule
