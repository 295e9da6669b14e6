// {a * c, b * c}, all signed and 8 bits, from one DSP48E2: ((a << 18) + b) * c holds both products. Latency 2.
// The lower one is 16 bits of an 18-bit field; where it is negative it has borrowed one from the upper one.
// Exact for all 2^24 operands, which a test goes through.
module int8_mul_pair (
    input         clk,
    input         ce,
    input  [7:0]  a,
    input  [7:0]  b,
    input  [7:0]  c,
    output [31:0] y
);
  wire [44:0] product;
  xilinx_dsp48 block (
      .clk(clk), .ce(ce), .a({a[7], a, 18'b0}), .d({{19{b[7]}}, b}), .b({{10{c[7]}}, c}), .y(product));
  assign y = {product[33:18] + {15'b0, product[17]}, product[15:0]};
endmodule
