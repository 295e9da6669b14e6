// a * b, both signed, up to 18 bits: operand and product registers, all inside one DSP block. Latency 2.
module int_mul #(
    parameter AW = 8,
    parameter BW = 8,
    parameter YW = 16
) (
    input           clk,
    input           ce,
    input  [AW-1:0] a,
    input  [BW-1:0] b,
    output [YW-1:0] y
);
  wire signed [17:0] a_wide = $signed(a);
  wire signed [17:0] b_wide = $signed(b);
  wire        [35:0] product;
`ifdef PENSTOCK_XILINX
  wire        [44:0] longer;
  assign product = longer[35:0];
  xilinx_dsp48 multiplier (.clk(clk), .ce(ce), .a({{9{a_wide[17]}}, a_wide}), .d(27'b0), .b(b_wide), .y(longer));
`else
  mult18 #(.SIGNED_A(1), .SIGNED_B(1), .INPUT_REGISTERS(1))
      multiplier (.clk(clk), .ce(ce), .a(a_wide), .b(b_wide), .y(product));
`endif
  wire signed [YW+35:0] extended = {{YW{product[35]}}, product};
  assign y = extended[YW-1:0];
endmodule
