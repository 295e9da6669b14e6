// DSP48E2 as the primitives use it: registered A, B and D, pre-adder, product, registered P. Every other mode stops.
module DSP48E2 #(
    parameter AMULTSEL = "A", parameter PREADDINSEL = "A", parameter USE_MULT = "MULTIPLY",
    parameter AREG = 1, parameter ACASCREG = 1, parameter BREG = 1, parameter BCASCREG = 1, parameter DREG = 1,
    parameter ADREG = 1, parameter MREG = 1, parameter PREG = 1, parameter CREG = 1, parameter INMODEREG = 1,
    parameter OPMODEREG = 1, parameter ALUMODEREG = 1, parameter CARRYINREG = 1, parameter CARRYINSELREG = 1
) (
    input CLK, CEA1, CEA2, CEB1, CEB2, CED, CEAD, CEM, CEP, CEC, CEALUMODE, CECARRYIN, CECTRL, CEINMODE,
    input RSTA, RSTB, RSTC, RSTD, RSTM, RSTP, RSTALLCARRYIN, RSTALUMODE, RSTCTRL, RSTINMODE,
    input [29:0] A, input [26:0] D, input [17:0] B, input [47:0] C, output reg [47:0] P,
    input [4:0] INMODE, input [8:0] OPMODE, input [3:0] ALUMODE, input CARRYIN, input [2:0] CARRYINSEL,
    input [29:0] ACIN, input [17:0] BCIN, input [47:0] PCIN, input CARRYCASCIN, input MULTSIGNIN
);
  initial
    if (AMULTSEL != "AD" || PREADDINSEL != "A" || AREG != 1 || BREG != 1 || DREG != 1 || ADREG != 0 || MREG != 0
        || PREG != 1) $fatal(1, "a mode that the model does not know");
  reg signed [26:0] a2, d1;
  reg signed [17:0] b2;
  wire signed [26:0] sum = INMODE[2] ? d1 + a2 : a2;
  wire signed [44:0] product = sum * b2;
  always @(posedge CLK) begin
    if (CEA2) a2 <= A[26:0];
    if (CED) d1 <= D;
    if (CEB2) b2 <= B;
    if (CEP) P <= OPMODE == 9'b000000101 && ALUMODE == 4'b0000 ? {{3{product[44]}}, product} : 48'hX;
  end
endmodule
