// (a + d) * b in one DSP48E2 with its operand registers and its product register. Latency 2.
// PENSTOCK_XILINX instantiates the cell, whose registers synthesis leaves unused; without it, the behavioural twin.
module xilinx_dsp48 (
    input                clk,
    input                ce,
    input  signed [26:0] a,
    input  signed [26:0] d,
    input  signed [17:0] b,
    output signed [44:0] y
);
`ifdef PENSTOCK_XILINX
  wire [47:0] p;
  assign y = p[44:0];
  DSP48E2 #(
      .AMULTSEL("AD"), .PREADDINSEL("A"), .USE_MULT("MULTIPLY"),
      .AREG(1), .ACASCREG(1), .BREG(1), .BCASCREG(1), .DREG(1), .ADREG(0), .MREG(0), .PREG(1),
      .CREG(0), .INMODEREG(0), .OPMODEREG(0), .ALUMODEREG(0), .CARRYINREG(0), .CARRYINSELREG(0)
  ) block (
      .CLK(clk), .CEA1(1'b0), .CEA2(ce), .CEB1(1'b0), .CEB2(ce), .CED(ce), .CEAD(1'b0), .CEM(1'b0), .CEP(ce),
      .CEC(1'b0), .CEALUMODE(1'b0), .CECARRYIN(1'b0), .CECTRL(1'b0), .CEINMODE(1'b0),
      .RSTA(1'b0), .RSTB(1'b0), .RSTC(1'b0), .RSTD(1'b0), .RSTM(1'b0), .RSTP(1'b0), .RSTALLCARRYIN(1'b0),
      .RSTALUMODE(1'b0), .RSTCTRL(1'b0), .RSTINMODE(1'b0),
      .A({{3{a[26]}}, a}), .D(d), .B(b), .C(48'b0), .P(p),
      .INMODE(5'b00100),       // the pre-adder: D + A
      .OPMODE(9'b000000101),   // the product alone
      .ALUMODE(4'b0000), .CARRYIN(1'b0), .CARRYINSEL(3'b000),
      .ACIN(30'b0), .BCIN(18'b0), .PCIN(48'b0), .CARRYCASCIN(1'b0), .MULTSIGNIN(1'b0)
  );
`else
  reg signed [26:0] a1, d1;
  reg signed [17:0] b1;
  reg signed [44:0] product;
  wire signed [26:0] sum = a1 + d1;
  always @(posedge clk)
    if (ce) begin
      {a1, d1, b1} <= {a, d, b};
      product <= sum * b1;
    end
  assign y = product;
`endif
endmodule
