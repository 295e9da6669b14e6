// An integer of W bits, rounded to nearest even. Latency 4 up to 32 bits, 5 up to 64.
module int_to_fp32 #(
    parameter W = 32,
    parameter SIGNED = 1
) (
    input              clk,
    input              ce,
    input      [W-1:0] a,
    output reg [31:0]  y
);
  // 1: magnitude
  wire        negative = SIGNED != 0 && a[W-1];
  reg [W-1:0] magnitude1;
  reg         sign1;
  always @(posedge clk)
    if (ce) begin
      magnitude1 <= negative ? -a : a;
      sign1 <= negative;
    end

  // 2, or 2 and 3: skip all zeros but seven; what can no longer matter is one sticky bit
  wire [31:0] by8;
  wire        sign_by8, sticky_by8;
  wire [2:0]  skipped;  // 32, 16, 8
  generate
    if (W <= 32) begin : short_word
      wire [31:0] whole = {32'b0, magnitude1};
      wire        skip16 = ~|whole[31:16];
      wire [31:0] by16 = skip16 ? {whole[15:0], 16'b0} : whole;
      wire        skip8 = ~|by16[31:24];
      reg  [31:0] by8_2;
      reg         sign2;
      reg  [1:0]  skipped2;
      always @(posedge clk)
        if (ce) begin
          by8_2 <= skip8 ? {by16[23:0], 8'b0} : by16;
          {sign2, skipped2} <= {sign1, skip16, skip8};
        end
      assign {by8, sign_by8, sticky_by8, skipped} = {by8_2, sign2, 1'b0, 1'b1, skipped2};
    end else begin : long_word
      wire [63:0] whole = {64'b0, magnitude1};
      wire        skip32 = ~|whole[63:32];
      wire [63:0] by32 = skip32 ? {whole[31:0], 32'b0} : whole;
      wire        skip16 = ~|by32[63:48];
      reg  [63:0] by16_2;
      reg         sign2;
      reg  [1:0]  skipped2;
      always @(posedge clk)
        if (ce) begin
          by16_2 <= skip16 ? {by32[47:0], 16'b0} : by32;
          {sign2, skipped2} <= {sign1, skip32, skip16};
        end
      wire        skip8 = ~|by16_2[63:56];
      reg  [31:0] by8_3;
      reg         sign3, sticky3;
      reg  [2:0]  skipped3;
      always @(posedge clk)
        if (ce) begin
          by8_3 <= skip8 ? by16_2[55:24] : by16_2[63:32];
          sticky3 <= |by16_2[23:0] || (~skip8 && |by16_2[31:24]);
          {sign3, skipped3} <= {sign2, skipped2, skip8};
        end
      assign {by8, sign_by8, sticky_by8, skipped} = {by8_3, sign3, sticky3, skipped3};
    end
  endgenerate

  // last but one: skip the other zeros
  wire        skip4 = ~|by8[31:28];
  wire [31:0] by4 = skip4 ? {by8[27:0], 4'b0} : by8;
  wire        skip2 = ~|by4[31:30];
  wire [31:0] by2 = skip2 ? {by4[29:0], 2'b0} : by4;
  wire [31:0] by1 = by2[31] ? by2 : {by2[30:0], 1'b0};
  reg  [24:0] normal;  // a significand and the bit below it
  reg  [7:0]  exponent;
  reg         sign, sticky;
  always @(posedge clk)
    if (ce) begin
      normal <= by1[31:7];
      exponent <= 8'd190 - {2'b0, skipped, skip4, skip2, ~by2[31]};  // a short word counts as having skipped 32
      {sign, sticky} <= {sign_by8, sticky_by8 || |by1[6:0]};
    end

  // last: round
  wire up = normal[0] && (normal[1] || sticky);
  always @(posedge clk)
    if (ce) y <= {sign, normal[24] ? {exponent, normal[23:1]} + {30'b0, up} : 31'b0};
endmodule
