// a / b, correctly rounded: a digit recurrence without restoring, one bit a stage. Subnormal operands count as 0;
// what is below 2^-126 before rounding becomes 0.
module fp32_div (
    input             clk,
    input             ce,
    input      [31:0] a,
    input      [31:0] b,
    output reg [31:0] y
);
  localparam STAGES = 26;  // bits: one before the point, 24 after it, one to round by where the first is 0

  wire a_zero = ~|a[30:23];
  wire b_zero = ~|b[30:23];
  wire a_top = &a[30:23];
  wire b_top = &b[30:23];
  wire a_nan = a_top && |a[22:0];
  wire b_nan = b_top && |b[22:0];

  // remainder, divisor, bits so far, exponent (10 bits, signed), {sign, nan, infinite, zero} after every stage
  genvar k;
  generate
    for (k = 0; k <= STAGES; k = k + 1) begin : stage
      wire [24:0] remainder;
      wire [23:0] divisor;
      wire [25:0] quotient;
      wire [9:0]  exponent;
      wire [3:0]  flags;
      if (k == 0) begin : first
        assign remainder = {2'b01, a[22:0]};
        assign divisor = {1'b1, b[22:0]};
        assign quotient = 26'b0;
        assign exponent = {2'b0, a[30:23]} - {2'b0, b[30:23]} + 10'd126;
        wire nan = a_nan || b_nan || (a_zero && b_zero) || (a_top && b_top);
        assign flags = {a[31] ^ b[31], nan, a_top || b_zero, a_zero || b_top};
      end else begin : next
        // The sign of the remainder is the complement of the last bit of the quotient. The first step subtracts
        // without doubling.
        wire [24:0] old = stage[k-1].remainder;
        wire [24:0] divisor_wide = {1'b0, stage[k-1].divisor};
        wire        subtract = k == 1 || ~old[24];
        wire [24:0] doubled = k == 1 ? old : {old[23:0], 1'b0};
        wire [24:0] last;
        wire        unused;
        assign {last, unused} = {doubled, 1'b1} + {divisor_wide ^ {25{subtract}}, subtract};
        reg [24:0] remainder_register;
        reg [23:0] divisor_register;
        reg [25:0] quotient_register;
        reg [9:0]  exponent_register;
        reg [3:0]  flags_register;
        always @(posedge clk)
          if (ce) begin
            remainder_register <= last;
            divisor_register <= stage[k-1].divisor;
            quotient_register <= {stage[k-1].quotient[24:0], ~last[24]};
            exponent_register <= stage[k-1].exponent;
            flags_register <= stage[k-1].flags;
          end
        assign remainder = remainder_register;
        assign divisor = divisor_register;
        assign quotient = quotient_register;
        assign exponent = exponent_register;
        assign flags = flags_register;
      end
    end
  endgenerate

  // last: a quotient of 26 bits is never half way, so the first bit left over rounds it
  wire [25:0] quotient = stage[STAGES].quotient;
  wire [9:0]  exponent = stage[STAGES].exponent;
  wire        sign, nan, infinite, zero;
  assign {sign, nan, infinite, zero} = stage[STAGES].flags;
  wire        whole = quotient[25];
  wire [22:0] fraction = whole ? quotient[24:2] : quotient[23:1];
  wire        up = whole ? quotient[1] : quotient[0];
  wire        unused;
  wire [30:0] rounded;
  assign {rounded, unused} = {exponent[7:0], fraction, 1'b1} + {7'b0, whole, 23'b0, up};
  wire        tiny = exponent[9] || (exponent[8:0] == 9'd0 && ~whole);
  wire        huge = ~exponent[9] && (exponent[8] || &exponent[7:0] || (exponent[7:0] == 8'd254 && whole));
  always @(posedge clk)
    if (ce) begin
      y[31] <= sign & ~nan;
      if (nan) y[30:0] <= 31'h7FC00000;
      else if (infinite) y[30:0] <= 31'h7F800000;
      else if (zero || tiny) y[30:0] <= 31'b0;
      else if (huge) y[30:0] <= 31'h7F800000;
      else y[30:0] <= rounded;
    end
endmodule
