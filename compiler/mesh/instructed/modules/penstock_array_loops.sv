/* verilator lint_off WIDTH */
// The counters of loops around a body: which of them stand at their first and last turn, and which goes on next.
module penstock_array_loops #(
    parameter int LEVELS = 5
) (
    input  logic              clk,
    input  logic              set,    // the last turn of loop `index` is `value`
    input  logic [      15:0] index,
    input  logic [      31:0] value,
    input  logic              go,
    input  logic              step,
    output logic [LEVELS-1:0] first,
    output logic [LEVELS-1:0] last,
    output logic [       2:0] level,  // the innermost that is not at its last turn
    output logic              ends    // none is
);
  logic [15:0] top[0:LEVELS-1];
  logic [15:0] at[0:LEVELS-1];
  logic [LEVELS-1:0] goes, reset;
  always_comb begin
    goes  = '0;
    level = '0;
    reset = '1;
    for (int l = LEVELS - 1; l >= 0; l--) begin
      first[l] = at[l] == 0;
      last[l]  = at[l] == top[l];
      if (goes == '0) begin
        if (!last[l]) begin
          goes[l]  = 1'b1;
          reset[l] = 1'b0;
          level    = l;
        end
      end else reset[l] = 1'b0;
    end
  end
  assign ends = goes == '0;
  always_ff @(posedge clk)
    for (int l = 0; l < LEVELS; l++) begin
      if (set && index == l) top[l] <= value[15:0];
      if (go) at[l] <= '0;
      else if (step) at[l] <= reset[l] ? '0 : at[l] + goes[l];
    end
endmodule
