// a * b, both signed, up to 72 bits: products of 18-bit pieces, summed by diagonals; what lies above YW is not built.
// Latency 4 (operands, products, diagonals, sum), or 5 with one more register between diagonals and sum.
module int_mul_wide #(
    parameter AW = 36,
    parameter BW = 36,
    parameter YW = 64,
    parameter LATENCY = 4
) (
    input               clk,
    input               ce,
    input      [AW-1:0] a,
    input      [BW-1:0] b,
    output reg [YW-1:0] y
);
  localparam W = YW < 36 ? 36 : YW;
  localparam NA = (AW + 17) / 18;
  localparam NB = (BW + 17) / 18;
  wire signed [71:0] a_wide = $signed(a);
  wire signed [71:0] b_wide = $signed(b);

  // 1, 2: the upper pieces are signed, the others are not
  genvar i, j;
  generate
    for (i = 0; i < 4; i = i + 1) begin : row
      for (j = 0; j < 4; j = j + 1) begin : column
        wire [W-1:0] term;
        if (i < NA && j < NB && 18 * (i + j) < YW) begin : built
          wire [35:0] product;
          mult18 #(.SIGNED_A(i == NA - 1), .SIGNED_B(j == NB - 1), .INPUT_REGISTERS(1)) multiplier (
              .clk(clk), .ce(ce), .a(a_wide[18*i+:18]), .b(b_wide[18*j+:18]), .y(product));
          wire negative = product[35] && (i == NA - 1 || j == NB - 1);
          wire [W+35:0] extended = {{W{negative}}, product};
          assign term = extended[W-1:0];
        end else begin : absent
          assign term = {W{1'b0}};
        end
      end
    end
  endgenerate

  // 3: diagonals
  reg [W-1:0] diagonal0, diagonal1, diagonal2, diagonal3;
  always @(posedge clk)
    if (ce) begin
      diagonal0 <= row[0].column[0].term;
      diagonal1 <= row[0].column[1].term + row[1].column[0].term;
      diagonal2 <= row[0].column[2].term + row[1].column[1].term + row[2].column[0].term;
      diagonal3 <= (row[0].column[3].term + row[1].column[2].term) + (row[2].column[1].term + row[3].column[0].term);
    end

  // 4: even and odd ones; the lowest product is not negative where both operands have several pieces
  wire [W+35:0] even_wide = NA > 1 && NB > 1
      ? {diagonal2, diagonal0[35:0]}
      : {{36{1'b0}}, diagonal0} + {diagonal2, 36'b0};
  wire [W-1:0] odd_sum = diagonal1 + (diagonal3 << 36);
  wire [W-1:0] even, odd;
  generate
    if (LATENCY == 4) begin : direct
      assign {even, odd} = {even_wide[W-1:0], odd_sum};
    end else begin : registered
      reg [W-1:0] even_register, odd_register;
      always @(posedge clk) if (ce) {even_register, odd_register} <= {even_wide[W-1:0], odd_sum};
      assign {even, odd} = {even_register, odd_register};
    end
  endgenerate
  wire [W-1:0] sum = even + (odd << 18);
  always @(posedge clk) if (ce) y <= sum[YW-1:0];
endmodule
