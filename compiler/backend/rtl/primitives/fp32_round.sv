// a as a whole number. MODE 0: toward zero, 1: down, 2: up, 3: to nearest, halves to even, 4: halves away from zero.
module fp32_round #(
    parameter MODE = 0
) (
    input             clk,
    input             ce,
    input      [31:0] a,
    output reg [31:0] y
);
  // 1: which bits lie below the unit; all for numbers below one, none for large ones
  reg [31:0] a1;
  reg [23:0] below1;
  reg        under_one1;
  wire       whole = a[30:23] >= 8'd150;
  always @(posedge clk)
    if (ce) begin
      a1 <= a;
      below1 <= whole ? 24'b0 : 24'h7FFFFF >> (a[27:23] - 5'd31);  // 127 % 32 = 31
      under_one1 <= a[30:23] < 8'd127;
    end

  // 2: what to keep, what a unit is, how the rest compares with a half
  wire [23:0] unit = below1 + 24'd1;
  wire [22:0] half = unit[23:1] & {23{|below1}};
  reg  [30:0] kept2, unit2;
  reg         sign2, fraction2, half2, above_half2, odd2;
  always @(posedge clk)
    if (ce) begin
      kept2 <= under_one1 ? 31'b0 : {a1[30:23], a1[22:0] & ~below1[22:0]};
      unit2 <= under_one1 ? 31'h3F800000 : {7'b0, unit};
      sign2 <= a1[31];
      fraction2 <= under_one1 ? |a1[30:0] : |(a1[22:0] & below1[22:0]);
      half2 <= under_one1 ? a1[30:23] == 8'd126 : |(a1[22:0] & half);
      above_half2 <= under_one1 ? |a1[22:0] : |(a1[22:0] & below1[22:0] & ~half);
      odd2 <= ~under_one1 && |(a1[23:0] & unit);
    end

  // 3: one more where the mode says so
  wire more = MODE == 1 ? sign2 && fraction2
            : MODE == 2 ? ~sign2 && fraction2
            : MODE == 3 ? half2 && (above_half2 || odd2)
            : MODE == 4 ? half2
            : 1'b0;
  always @(posedge clk)
    if (ce) y <= {sign2, kept2 + (unit2 & {31{more}})};
endmodule
