// a / b, or with REMAINDER the rest: one bit a stage. Toward zero, with ROUND = 1 down, with ROUND = 2 up.
// The low YW bits. Latency W + 2. What a division by zero gives is not defined.
module int_div #(
    parameter W = 32,
    parameter YW = 32,
    parameter SIGNED = 1,
    parameter REMAINDER = 0,
    parameter ROUND = 0
) (
    input               clk,
    input               ce,
    input      [W-1:0]  a,
    input      [W-1:0]  b,
    output reg [YW-1:0] y
);
  genvar k;
  generate
    for (k = 0; k <= W; k = k + 1) begin : stage
      reg [W-1:0] rest;      // below the divisor
      reg [W-1:0] quotient;  // the bits found, after those of the dividend that are left
      reg [W-1:0] divisor;
      reg [1:0]   signs;     // of a and b
      if (k == 0) begin : first
        wire [1:0] negative = SIGNED != 0 ? {a[W-1], b[W-1]} : 2'b00;
        always @(posedge clk)
          if (ce) begin
            rest <= {W{1'b0}};
            quotient <= negative[1] ? -a : a;
            divisor <= negative[0] ? -b : b;
            signs <= negative;
          end
      end else begin : next
        wire [W:0] longer = {stage[k-1].rest, stage[k-1].quotient[W-1]};
        wire [W:0] less = longer - {1'b0, stage[k-1].divisor};
        always @(posedge clk)
          if (ce) begin
            rest <= less[W] ? longer[W-1:0] : less[W-1:0];
            quotient <= {stage[k-1].quotient[W-2:0], ~less[W]};
            divisor <= stage[k-1].divisor;
            signs <= stage[k-1].signs;
          end
      end
    end
  endgenerate
  wire         negative = stage[W].signs[1] != stage[W].signs[0];
  wire         further = |stage[W].rest && ((ROUND == 1 && negative) || (ROUND == 2 && ~negative));
  wire [W-1:0] magnitude = stage[W].quotient + {{(W - 1) {1'b0}}, further};
  wire [W-1:0] rest = stage[W].rest;
  wire [W-1:0] result = REMAINDER != 0 ? (stage[W].signs[1] ? -rest : rest) : (negative ? -magnitude : magnitude);
  always @(posedge clk)
    if (ce) y <= result[YW-1:0];
endmodule
