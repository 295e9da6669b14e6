// What the cells of a synthesised ECP5 netlist do, for simulation: the cells and modes that yosys' synth_ecp5 and our
// primitives use. The PLL is a wire: the simulation drives the oscillator's pin with the clock that it would make.

module LUT4 #(parameter [15:0] INIT = 16'h0000) (input A, B, C, D, output Z);
    assign Z = INIT[{D, C, B, A}];
endmodule

module PFUMX (input ALUT, BLUT, C0, output Z);
    assign Z = C0 ? ALUT : BLUT;
endmodule

module L6MUX21 (input D0, D1, SD, output Z);
    assign Z = SD ? D1 : D0;
endmodule

module CCU2C #(
    parameter [15:0] INIT0 = 16'h0000, parameter [15:0] INIT1 = 16'h0000,
    parameter INJECT1_0 = "YES", parameter INJECT1_1 = "YES"
) (
    input CIN, A0, B0, C0, D0, A1, B1, C1, D1, output S0, S1, COUT
);
    // Half by half: a 4-input table propagates the carry, the table of the lower two inputs generates it.
    wire propagate0 = INIT0[{D0, C0, B0, A0}];
    wire propagate1 = INIT1[{D1, C1, B1, A1}];
    wire generate0 = INJECT1_0 == "YES" ? 1'b0 : INIT0[{2'b00, B0, A0}];
    wire generate1 = INJECT1_1 == "YES" ? 1'b0 : INIT1[{2'b00, B1, A1}];
    wire carry = propagate0 ? CIN : generate0;
    assign S0 = propagate0 ^ (INJECT1_0 == "YES" ? 1'b0 : CIN);
    assign S1 = propagate1 ^ (INJECT1_1 == "YES" ? 1'b0 : carry);
    assign COUT = propagate1 ? carry : generate1;
endmodule

module TRELLIS_FF #(
    parameter GSR = "ENABLED", parameter [127:0] CEMUX = "1", parameter CLKMUX = "CLK", parameter LSRMUX = "LSR",
    parameter SRMODE = "LSR_OVER_CE", parameter REGSET = "RESET", parameter [127:0] LSRMODE = "LSR"
) (
    input CLK, LSR, CE, DI, M, output reg Q
);
    wire enable = CEMUX == "1" ? 1'b1 : CEMUX == "0" ? 1'b0 : CEMUX == "INV" ? !CE : CE;
    wire set = LSRMUX == "INV" ? !LSR : LSR;
    wire clock = CLKMUX == "INV" ? !CLK : CLK;
    wire value = LSRMODE == "PRLD" ? M : REGSET == "SET";
    initial Q = REGSET == "SET";
    generate
        if (SRMODE == "ASYNC") begin : asynchronous
            always @(posedge clock or posedge set) if (set) Q <= value; else if (enable) Q <= DI;
        end else begin : synchronous
            always @(posedge clock) if (set) Q <= value; else if (enable) Q <= DI;
        end
    endgenerate
endmodule

module TRELLIS_DPR16X4 #(
    parameter WCKMUX = "WCK", parameter WREMUX = "WRE", parameter [63:0] INITVAL = 64'd0
) (
    input [3:0] DI, WAD, input WRE, WCK, input [3:0] RAD, output [3:0] DO
);
    reg [63:0] memory = INITVAL;
    wire clock = WCKMUX == "INV" ? !WCK : WCK;
    wire enable = WREMUX == "1" ? 1'b1 : WREMUX == "0" ? 1'b0 : WREMUX == "INV" ? !WRE : WRE;
    always @(posedge clock) if (enable) memory[4*WAD+:4] <= DI;
    assign DO = memory[4*RAD+:4];
endmodule

module EHXPLLL #(
    parameter PLLRST_ENA = "DISABLED", parameter INTFB_WAKE = "DISABLED", parameter STDBY_ENABLE = "DISABLED",
    parameter DPHASE_SOURCE = "DISABLED", parameter OUTDIVIDER_MUXA = "DIVA", parameter OUTDIVIDER_MUXB = "DIVB",
    parameter OUTDIVIDER_MUXC = "DIVC", parameter OUTDIVIDER_MUXD = "DIVD", parameter FEEDBK_PATH = "CLKOP",
    parameter CLKI_DIV = 1, parameter CLKFB_DIV = 1, parameter CLKOP_ENABLE = "ENABLED", parameter CLKOP_DIV = 8,
    parameter CLKOP_CPHASE = 0, parameter CLKOP_FPHASE = 0, parameter CLKOS_ENABLE = "ENABLED",
    parameter CLKOS_DIV = 8, parameter CLKOS_CPHASE = 0, parameter CLKOS_FPHASE = 0
) (
    input RST, STDBY, CLKI, CLKFB, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG, PLLWAKESYNC,
    input ENCLKOP, ENCLKOS, output CLKOP, CLKOS, CLKINTFB, LOCK
);
    assign CLKOP = CLKI;
    assign CLKOS = CLKI;
    assign CLKINTFB = CLKI;
    assign LOCK = 1'b1;
endmodule

// 18 x 18 bits; the registers that a parameter names NONE are not there. All of them are clocked by CLK0.
module MULT18X18D #(
    parameter REG_INPUTA_CLK = "NONE", parameter REG_INPUTA_CE = "CE0", parameter REG_INPUTA_RST = "RST0",
    parameter REG_INPUTB_CLK = "NONE", parameter REG_INPUTB_CE = "CE0", parameter REG_INPUTB_RST = "RST0",
    parameter REG_INPUTC_CLK = "NONE", parameter REG_INPUTC_CE = "CE0", parameter REG_INPUTC_RST = "RST0",
    parameter REG_PIPELINE_CLK = "NONE", parameter REG_PIPELINE_CE = "CE0", parameter REG_PIPELINE_RST = "RST0",
    parameter REG_OUTPUT_CLK = "NONE", parameter REG_OUTPUT_CE = "CE0", parameter REG_OUTPUT_RST = "RST0",
    parameter CLK0_DIV = "ENABLED", parameter CLK1_DIV = "ENABLED", parameter CLK2_DIV = "ENABLED",
    parameter CLK3_DIV = "ENABLED", parameter HIGHSPEED_CLK = "NONE", parameter GSR = "ENABLED",
    parameter SOURCEB_MODE = "B_SHIFT", parameter MULT_BYPASS = "DISABLED", parameter RESETMODE = "SYNC"
) (
    input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
    input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
    input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CLK1, CLK2, CLK3, CE0, CE1, CE2, CE3, RST0, RST1, RST2, RST3,
    output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
    P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
    wire [17:0] a_in = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
    wire [17:0] b_in = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
    reg [17:0] a_held, b_held;
    reg signed_a, signed_b;
    reg [37:0] pipeline_held;
    reg [35:0] output_held;
    wire [17:0] a = REG_INPUTA_CLK == "NONE" ? a_in : a_held;
    wire [17:0] b = REG_INPUTB_CLK == "NONE" ? b_in : b_held;
    wire signed [18:0] a_wide = {a[17] & (REG_INPUTA_CLK == "NONE" ? SIGNEDA : signed_a), a};
    wire signed [18:0] b_wide = {b[17] & (REG_INPUTB_CLK == "NONE" ? SIGNEDB : signed_b), b};
    wire signed [37:0] product = a_wide * b_wide;
    always @(posedge CLK0)
        if (RST0) begin
            {a_held, b_held, signed_a, signed_b} <= 38'd0;
            pipeline_held <= 38'd0;
            output_held <= 36'd0;
        end else if (CE0) begin
            {a_held, b_held, signed_a, signed_b} <= {a_in, b_in, SIGNEDA, SIGNEDB};
            pipeline_held <= product;
            output_held <= REG_PIPELINE_CLK == "NONE" ? product[35:0] : pipeline_held[35:0];
        end
    wire [35:0] piped = REG_PIPELINE_CLK == "NONE" ? product[35:0] : pipeline_held[35:0];
    assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
            P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} =
        REG_OUTPUT_CLK == "NONE" ? piped : output_held;
endmodule

// 2048 units of 9 bits, seen through each port at its own width: 1, 2 and 4 bits leave the ninth bit out, 18 and 36
// take several units. A 36-bit word has its lower half on the pins of port A, its upper half on those of port B.
module DP16KD #(
    parameter DATA_WIDTH_A = 18, parameter DATA_WIDTH_B = 18,
    parameter REGMODE_A = "NOREG", parameter REGMODE_B = "NOREG", parameter RESETMODE = "SYNC",
    parameter ASYNC_RESET_RELEASE = "SYNC", parameter CSDECODE_A = "0b000", parameter CSDECODE_B = "0b000",
    parameter WRITEMODE_A = "NORMAL", parameter WRITEMODE_B = "NORMAL", parameter CLKAMUX = "CLKA",
    parameter CLKBMUX = "CLKB", parameter GSR = "ENABLED", parameter WID = 0, parameter INIT_DATA = "STATIC",
    parameter [319:0] INITVAL_00 = 320'd0, parameter [319:0] INITVAL_01 = 320'd0,
    parameter [319:0] INITVAL_02 = 320'd0, parameter [319:0] INITVAL_03 = 320'd0,
    parameter [319:0] INITVAL_04 = 320'd0, parameter [319:0] INITVAL_05 = 320'd0,
    parameter [319:0] INITVAL_06 = 320'd0, parameter [319:0] INITVAL_07 = 320'd0,
    parameter [319:0] INITVAL_08 = 320'd0, parameter [319:0] INITVAL_09 = 320'd0,
    parameter [319:0] INITVAL_0A = 320'd0, parameter [319:0] INITVAL_0B = 320'd0,
    parameter [319:0] INITVAL_0C = 320'd0, parameter [319:0] INITVAL_0D = 320'd0,
    parameter [319:0] INITVAL_0E = 320'd0, parameter [319:0] INITVAL_0F = 320'd0,
    parameter [319:0] INITVAL_10 = 320'd0, parameter [319:0] INITVAL_11 = 320'd0,
    parameter [319:0] INITVAL_12 = 320'd0, parameter [319:0] INITVAL_13 = 320'd0,
    parameter [319:0] INITVAL_14 = 320'd0, parameter [319:0] INITVAL_15 = 320'd0,
    parameter [319:0] INITVAL_16 = 320'd0, parameter [319:0] INITVAL_17 = 320'd0,
    parameter [319:0] INITVAL_18 = 320'd0, parameter [319:0] INITVAL_19 = 320'd0,
    parameter [319:0] INITVAL_1A = 320'd0, parameter [319:0] INITVAL_1B = 320'd0,
    parameter [319:0] INITVAL_1C = 320'd0, parameter [319:0] INITVAL_1D = 320'd0,
    parameter [319:0] INITVAL_1E = 320'd0, parameter [319:0] INITVAL_1F = 320'd0,
    parameter [319:0] INITVAL_20 = 320'd0, parameter [319:0] INITVAL_21 = 320'd0,
    parameter [319:0] INITVAL_22 = 320'd0, parameter [319:0] INITVAL_23 = 320'd0,
    parameter [319:0] INITVAL_24 = 320'd0, parameter [319:0] INITVAL_25 = 320'd0,
    parameter [319:0] INITVAL_26 = 320'd0, parameter [319:0] INITVAL_27 = 320'd0,
    parameter [319:0] INITVAL_28 = 320'd0, parameter [319:0] INITVAL_29 = 320'd0,
    parameter [319:0] INITVAL_2A = 320'd0, parameter [319:0] INITVAL_2B = 320'd0,
    parameter [319:0] INITVAL_2C = 320'd0, parameter [319:0] INITVAL_2D = 320'd0,
    parameter [319:0] INITVAL_2E = 320'd0, parameter [319:0] INITVAL_2F = 320'd0,
    parameter [319:0] INITVAL_30 = 320'd0, parameter [319:0] INITVAL_31 = 320'd0,
    parameter [319:0] INITVAL_32 = 320'd0, parameter [319:0] INITVAL_33 = 320'd0,
    parameter [319:0] INITVAL_34 = 320'd0, parameter [319:0] INITVAL_35 = 320'd0,
    parameter [319:0] INITVAL_36 = 320'd0, parameter [319:0] INITVAL_37 = 320'd0,
    parameter [319:0] INITVAL_38 = 320'd0, parameter [319:0] INITVAL_39 = 320'd0,
    parameter [319:0] INITVAL_3A = 320'd0, parameter [319:0] INITVAL_3B = 320'd0,
    parameter [319:0] INITVAL_3C = 320'd0, parameter [319:0] INITVAL_3D = 320'd0,
    parameter [319:0] INITVAL_3E = 320'd0, parameter [319:0] INITVAL_3F = 320'd0
) (
    input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3,
        DIA2, DIA1, DIA0,
    input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
    input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9,
    DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0,
    input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3,
        DIB2, DIB1, DIB0,
    input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
    input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9,
    DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
);
    localparam [64*320-1:0] INITVAL = {
        INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38,
        INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30,
        INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28,
        INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20,
        INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
        INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10,
        INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
        INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00
    };
    reg [8:0] memory[0:2047];
    integer i;
    initial for (i = 0; i < 2048; i = i + 1) memory[i] = INITVAL[20*(i/2)+9*(i%2)+:9];

    wire [35:0] data_a = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5,
        DIB4, DIB3, DIB2, DIB1, DIB0,
        DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2,
        DIA1, DIA0};
    wire [35:0] data_b = data_a >> 18;
    wire [13:0] address_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
    wire [13:0] address_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
    reg [35:0] held_a = 36'd0, held_b = 36'd0;

    function [35:0] word_at(input [13:0] address, input integer width);
        case (width)
            36: word_at = {memory[{address[13:5], 2'd3}], memory[{address[13:5], 2'd2}],
                    memory[{address[13:5], 2'd1}], memory[{address[13:5], 2'd0}]};
            18: word_at = {18'd0, memory[{address[13:4], 1'b1}], memory[{address[13:4], 1'b0}]};
            9: word_at = {27'd0, memory[address[13:3]]};
            4: word_at = {32'd0, memory[address[13:3]][4*address[2]+:4]};
            2: word_at = {34'd0, memory[address[13:3]][2*address[2:1]+:2]};
            default: word_at = {35'd0, memory[address[13:3]][address[2:0]]};
        endcase
    endfunction

    wire clock_a = CLKAMUX == "INV" ? !CLKA : CLKA;
    always @(posedge clock_a)
        if (RSTA) begin
            held_a <= 36'd0;
        end else if (CEA) begin
            if (!WEA || WRITEMODE_A == "READBEFOREWRITE") held_a <= word_at(address_a, DATA_WIDTH_A);
            else if (WRITEMODE_A == "WRITETHROUGH") held_a <= data_a;
            if (WEA)
                case (DATA_WIDTH_A)
                    36: begin
                        if (address_a[0]) memory[{address_a[13:5], 2'd0}] <= data_a[8:0];
                        if (address_a[1]) memory[{address_a[13:5], 2'd1}] <= data_a[17:9];
                        if (address_a[2]) memory[{address_a[13:5], 2'd2}] <= data_a[26:18];
                        if (address_a[3]) memory[{address_a[13:5], 2'd3}] <= data_a[35:27];
                    end
                    18: begin
                        if (address_a[0]) memory[{address_a[13:4], 1'b0}] <= data_a[8:0];
                        if (address_a[1]) memory[{address_a[13:4], 1'b1}] <= data_a[17:9];
                    end
                    9: memory[address_a[13:3]] <= data_a[8:0];
                    4: memory[address_a[13:3]][4*address_a[2]+:4] <= data_a[3:0];
                    2: memory[address_a[13:3]][2*address_a[2:1]+:2] <= data_a[1:0];
                    default: memory[address_a[13:3]][address_a[2:0]] <= data_a[0];
                endcase
        end

    wire clock_b = CLKBMUX == "INV" ? !CLKB : CLKB;
    always @(posedge clock_b)
        if (RSTB) begin
            held_b <= 36'd0;
        end else if (CEB) begin
            if (!WEB || WRITEMODE_B == "READBEFOREWRITE") held_b <= word_at(address_b, DATA_WIDTH_B);
            else if (WRITEMODE_B == "WRITETHROUGH") held_b <= data_b;
            if (WEB)
                case (DATA_WIDTH_B)
                    36: begin
                        if (address_b[0]) memory[{address_b[13:5], 2'd0}] <= data_b[8:0];
                        if (address_b[1]) memory[{address_b[13:5], 2'd1}] <= data_b[17:9];
                        if (address_b[2]) memory[{address_b[13:5], 2'd2}] <= data_b[26:18];
                        if (address_b[3]) memory[{address_b[13:5], 2'd3}] <= data_b[35:27];
                    end
                    18: begin
                        if (address_b[0]) memory[{address_b[13:4], 1'b0}] <= data_b[8:0];
                        if (address_b[1]) memory[{address_b[13:4], 1'b1}] <= data_b[17:9];
                    end
                    9: memory[address_b[13:3]] <= data_b[8:0];
                    4: memory[address_b[13:3]][4*address_b[2]+:4] <= data_b[3:0];
                    2: memory[address_b[13:3]][2*address_b[2:1]+:2] <= data_b[1:0];
                    default: memory[address_b[13:3]][address_b[2:0]] <= data_b[0];
                endcase
        end

    wire [35:0] wide = DATA_WIDTH_B == 36 ? held_b : {held_b[17:0], held_a[17:0]};
    assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9,
            DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = wide[17:0];
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9,
            DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = wide[35:18];
endmodule
