// Whether a and b compare as PREDICATE says (0 to 15, as arith.cmpf numbers them); subnormals keep their value.
module fp32_compare #(
    parameter PREDICATE = 1
) (
    input             clk,
    input             ce,
    input      [31:0] a,
    input      [31:0] b,
    output reg        y
);
  wire unordered = (&a[30:23] && |a[22:0]) || (&b[30:23] && |b[22:0]);
  wire both_zero = ~|a[30:0] && ~|b[30:0];
  wire equal = a == b || both_zero;
  // as integers of sign and magnitude; the order of negative ones is reversed
  wire magnitude_less = a[30:0] < b[30:0];
  wire less = ~both_zero && (a[31] != b[31] ? a[31] : (a[31] ? ~magnitude_less && ~equal : magnitude_less));
  wire greater = ~less && ~equal;
  wire holds = PREDICATE % 8 == 0 ? PREDICATE == 8 && equal
             : PREDICATE < 7 ? (PREDICATE == 1 && equal) || (PREDICATE == 2 && greater)
                 || (PREDICATE == 3 && ~less) || (PREDICATE == 4 && less) || (PREDICATE == 5 && ~greater)
                 || (PREDICATE == 6 && ~equal)
             : (PREDICATE == 9 && greater) || (PREDICATE == 10 && ~less) || (PREDICATE == 11 && less)
                 || (PREDICATE == 12 && ~greater) || (PREDICATE == 13 && ~equal);
  always @(posedge clk)
    if (ce) y <= PREDICATE < 8 ? (holds || PREDICATE == 7) && ~unordered : holds || unordered || PREDICATE == 15;
endmodule
