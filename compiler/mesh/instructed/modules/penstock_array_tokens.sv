// How many tiles there are of what one takes and another gives.
module penstock_array_tokens #(
    parameter int BITS = 8
) (
    input  logic        clk,
    input  logic        go,
    input  logic [BITS-1:0] first,
    input  logic        give,
    input  logic        take,
    output logic        some
);
  logic [BITS-1:0] count;
  assign some = count != 0;
  always_ff @(posedge clk)
    if (go) count <= first;
    else if (give != take) count <= give ? count + 1'b1 : count - 1'b1;
endmodule
