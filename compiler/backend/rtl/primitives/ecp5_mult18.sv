// MULT18X18D with its output register and, if asked for, its operand registers.
module ecp5_mult18 #(
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
  MULT18X18D #(
      .REG_INPUTA_CLK(INPUT_REGISTERS != 0 ? "CLK0" : "NONE"),
      .REG_INPUTA_CE("CE0"),
      .REG_INPUTA_RST("RST0"),
      .REG_INPUTB_CLK(INPUT_REGISTERS != 0 ? "CLK0" : "NONE"),
      .REG_INPUTB_CE("CE0"),
      .REG_INPUTB_RST("RST0"),
      .REG_INPUTC_CLK("NONE"),
      .REG_PIPELINE_CLK("NONE"),
      .REG_OUTPUT_CLK("CLK0"),
      .REG_OUTPUT_CE("CE0"),
      .REG_OUTPUT_RST("RST0"),
      .CLK0_DIV("ENABLED"),
      .GSR("DISABLED"),
      .SOURCEB_MODE("B_SHIFT"),
      .MULT_BYPASS("DISABLED"),
      .RESETMODE("SYNC")
  ) multiplier (
      .CLK0(clk), .CLK1(1'b0), .CLK2(1'b0), .CLK3(1'b0),
      .CE0(ce), .CE1(1'b1), .CE2(1'b1), .CE3(1'b1),
      .RST0(1'b0), .RST1(1'b0), .RST2(1'b0), .RST3(1'b0),
      .SIGNEDA(SIGNED_A != 0), .SIGNEDB(SIGNED_B != 0), .SOURCEA(1'b0), .SOURCEB(1'b0),
      .A0(a[0]), .A1(a[1]), .A2(a[2]), .A3(a[3]), .A4(a[4]), .A5(a[5]), .A6(a[6]), .A7(a[7]), .A8(a[8]),
      .A9(a[9]), .A10(a[10]), .A11(a[11]), .A12(a[12]), .A13(a[13]), .A14(a[14]), .A15(a[15]), .A16(a[16]),
      .A17(a[17]),
      .B0(b[0]), .B1(b[1]), .B2(b[2]), .B3(b[3]), .B4(b[4]), .B5(b[5]), .B6(b[6]), .B7(b[7]), .B8(b[8]),
      .B9(b[9]), .B10(b[10]), .B11(b[11]), .B12(b[12]), .B13(b[13]), .B14(b[14]), .B15(b[15]), .B16(b[16]),
      .B17(b[17]),
      .C0(1'b0), .C1(1'b0), .C2(1'b0), .C3(1'b0), .C4(1'b0), .C5(1'b0), .C6(1'b0), .C7(1'b0), .C8(1'b0),
      .C9(1'b0), .C10(1'b0), .C11(1'b0), .C12(1'b0), .C13(1'b0), .C14(1'b0), .C15(1'b0), .C16(1'b0), .C17(1'b0),
      .P0(y[0]), .P1(y[1]), .P2(y[2]), .P3(y[3]), .P4(y[4]), .P5(y[5]), .P6(y[6]), .P7(y[7]), .P8(y[8]),
      .P9(y[9]), .P10(y[10]), .P11(y[11]), .P12(y[12]), .P13(y[13]), .P14(y[14]), .P15(y[15]), .P16(y[16]),
      .P17(y[17]), .P18(y[18]), .P19(y[19]), .P20(y[20]), .P21(y[21]), .P22(y[22]), .P23(y[23]), .P24(y[24]),
      .P25(y[25]), .P26(y[26]), .P27(y[27]), .P28(y[28]), .P29(y[29]), .P30(y[30]), .P31(y[31]), .P32(y[32]),
      .P33(y[33]), .P34(y[34]), .P35(y[35])
  );
endmodule
