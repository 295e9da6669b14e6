// The square root of a, correctly rounded: a digit recurrence without restoring, two bits a stage while the root
// is short, then one. Subnormal operands count as 0.
module fp32_sqrt (
    input             clk,
    input             ce,
    input      [31:0] a,
    output reg [31:0] y
);
  localparam DOUBLE = 4;  // stages of two bits
  localparam STAGES = 24 - DOUBLE;  // the first bit is 1; 24 more, the last to round by

  genvar k;
  generate
    for (k = 0; k <= STAGES; k = k + 1) begin : stage
      wire [26:0] remainder;  // signed
      wire [24:0] root;
      wire [23:0] rest;  // of the radicand, its next two bits at the top
      wire [7:0]  exponent;
      wire [3:0]  flags;  // {sign, nan, infinite, zero}
      if (k == 0) begin : first
        // an even exponent is made odd less one: the radicand lies between 1 and 4
        wire even = ~a[23];
        wire nan = (&a[30:23] && |a[22:0]) || (a[31] && |a[30:23]);
        assign remainder = even ? {25'b0, a[22], ~a[22]} : 27'b0;
        assign root = 25'd1;
        assign rest = even ? {a[21:0], 2'b0} : {a[22:0], 1'b0};
        assign exponent = {1'b0, a[30:24]} + 8'd63 + {7'b0, a[23]};
        assign flags = {a[31], nan, &a[30:23], ~|a[30:23]};
      end else begin : next
        // the root so far, less one bit; the remainder has two more and its sign
        localparam FOUND = k <= DOUBLE ? 2 * k : k + DOUBLE;
        localparam BITS = FOUND + 3;
        wire [26:0] old = stage[k-1].remainder;
        wire [24:0] root0 = stage[k-1].root;
        wire [23:0] rest0 = stage[k-1].rest;
        wire [26:0] middle, last;
        wire        unused;
        wire [24:0] root1 = {root0[23:0], ~middle[26]};
        wire [24:0] found = k <= DOUBLE ? {root1[23:0], ~last[26]} : root1;
        assign {middle, unused} = {old[24:0], rest0[23:22], 1'b1} + {{root0, old[26], 1'b1} ^ {27{~old[26]}}, ~old[26]};
        if (k <= DOUBLE) begin : second
          wire unused_too;
          assign {last, unused_too} = {middle[24:0], rest0[21:20], 1'b1}
              + {{root1, middle[26], 1'b1} ^ {27{~middle[26]}}, ~middle[26]};
        end else begin : only
          assign last = middle;
        end
        reg [BITS-1:0] remainder_register;
        reg [FOUND:0]  root_register;
        reg [23:0]     rest_register;
        reg [7:0]      exponent_register;
        reg [3:0]      flags_register;
        always @(posedge clk)
          if (ce) begin
            remainder_register <= last[BITS-1:0];
            root_register <= found[FOUND:0];
            rest_register <= k <= DOUBLE ? {rest0[19:0], 4'b0} : {rest0[21:0], 2'b0};
            exponent_register <= stage[k-1].exponent;
            flags_register <= stage[k-1].flags;
          end
        assign remainder = {{(27 - BITS + 1) {remainder_register[BITS-1]}}, remainder_register[BITS-2:0]};
        assign root = {25'b0 | root_register};
        assign rest = rest_register;
        assign exponent = exponent_register;
        assign flags = flags_register;
      end
    end
  endgenerate

  // last: a root is never half way between two numbers, so its last bit rounds it
  wire [24:0] root = stage[STAGES].root;
  wire        sign, nan, infinite, zero;
  assign {sign, nan, infinite, zero} = stage[STAGES].flags;
  always @(posedge clk)
    if (ce) begin
      y[31] <= sign & ~nan;
      if (nan) y[30:0] <= 31'h7FC00000;
      else if (infinite) y[30:0] <= 31'h7F800000;
      else if (zero) y[30:0] <= 31'b0;
      else y[30:0] <= {stage[STAGES].exponent, root[23:1]} + {30'b0, root[0]};
    end
endmodule
