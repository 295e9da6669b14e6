// a * b of 18 bits: one DSP block with its output register and, if asked for, its operand registers.
// PENSTOCK_ECP5 instantiates MULT18X18D, whose registers synthesis leaves unused; without it, the behavioural twin.
module mult18 #(
    parameter SIGNED_A = 0,
    parameter SIGNED_B = 0,
    parameter INPUT_REGISTERS = 0
) (
    input         clk,
    input         ce,
    input  [17:0] a,
    input  [17:0] b,
    output [35:0] y
);
`ifdef PENSTOCK_ECP5
  ecp5_mult18 #(
      .SIGNED_A(SIGNED_A), .SIGNED_B(SIGNED_B), .INPUT_REGISTERS(INPUT_REGISTERS)
  ) block (.clk(clk), .ce(ce), .a(a), .b(b), .y(y));
`else
  wire [17:0] a_held, b_held;
  generate
    if (INPUT_REGISTERS != 0) begin : registered
      reg [17:0] a_register, b_register;
      always @(posedge clk)
        if (ce) begin
          a_register <= a;
          b_register <= b;
        end
      assign {a_held, b_held} = {a_register, b_register};
    end else begin : direct
      assign {a_held, b_held} = {a, b};
    end
  endgenerate
  wire signed [18:0] a_wide = {SIGNED_A != 0 && a_held[17], a_held};
  wire signed [18:0] b_wide = {SIGNED_B != 0 && b_held[17], b_held};
  wire signed [37:0] product = a_wide * b_wide;
  reg         [35:0] held;
  always @(posedge clk) if (ce) held <= product[35:0];
  assign y = held;
`endif
endmodule
