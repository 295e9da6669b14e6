// a toward zero as an integer of W bits: what is out of range becomes the nearest end of the range, a NaN 0.
module fp32_to_int #(
    parameter W = 32,
    parameter SIGNED = 1
) (
    input              clk,
    input              ce,
    input      [31:0]  a,
    output reg [W-1:0] y
);
  localparam TOP = SIGNED != 0 ? W - 1 : W;  // 2^TOP is out of range
  localparam WORD = W <= 32 ? 32 : 64;
  localparam [7:0] LEFTMOST = 127 + WORD - 1;  // the exponent at which the leading bit is the word's

  // 1: how far to the right; the ends of the range
  wire       nan = &a[30:23] && |a[22:0];
  reg [23:0] significand1;
  reg [5:0]  shift1;
  reg        negative1, zero1, high1, low1;
  always @(posedge clk)
    if (ce) begin
      significand1 <= {1'b1, a[22:0]};
      shift1 <= LEFTMOST[5:0] - a[28:23];
      zero1 <= a[30:23] < 8'd127 || nan || (SIGNED == 0 && a[31]);
      high1 <= ~a[31] && a[30:23] >= 8'd127 + TOP;
      low1 <= SIGNED != 0 && a[31] && a[30:23] >= 8'd127 + TOP;
      negative1 <= a[31];
    end

  // 2: shift
  wire [WORD-1:0] leftmost = {significand1, {(WORD - 24) {1'b0}}};
  reg  [WORD-1:0] shifted2;
  reg             negative2, zero2, high2, low2;
  always @(posedge clk)
    if (ce) begin
      shifted2 <= leftmost >> (WORD == 32 ? {1'b0, shift1[4:0]} : shift1);
      {negative2, zero2, high2, low2} <= {negative1, zero1, high1, low1};
    end

  // 3: sign
  wire [WORD-1:0] resigned = negative2 ? -shifted2 : shifted2;
  localparam [W-1:0] LOWEST = SIGNED != 0 ? {1'b1, {(W - 1) {1'b0}}} : {W{1'b0}};
  always @(posedge clk)
    if (ce) begin
      if (zero2) y <= {W{1'b0}};
      else if (high2) y <= SIGNED != 0 ? ~LOWEST : {W{1'b1}};
      else if (low2) y <= LOWEST;
      else y <= resigned[W-1:0];
    end
endmodule
