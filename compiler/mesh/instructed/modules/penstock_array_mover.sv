/* verilator lint_off WIDTH */
// Takes words of a row or column and keeps them, hands them on, or both; what is kept goes round in a ring of tiles.
module penstock_array_mover #(
    parameter int WIDTH = 32,
    parameter int PLACES = 256
) (
    input  logic                      clk,
    input  logic                      rst,
    input  logic                      set,
    input  logic [              15:0] index,
    input  logic [              31:0] value,
    input  logic                      go,
    input  logic                      in_tvalid,
    output logic                      in_tready,
    output logic                      out_tvalid,
    input  logic                      out_tready,
    input  logic                      free,        // there is room for a tile
    output logic                      taken,
    output logic                      filled,
    output logic                      write,
    output logic [$clog2(PLACES)-1:0] place
);
  logic running, opens, closes;
  logic [1:0] flags;
  logic [15:0] ring;
  wire keep = flags[0];
  wire pass = flags[1];
  wire able = running && (!keep || !opens || free) && (!pass || out_tready);
  wire word = able && in_tvalid;
  penstock_array_body program_ (
      .clk, .rst, .set, .index, .value, .go, .word, .running, .opens, .closes, .flags, .ring
  );
  assign in_tready  = able;
  assign out_tvalid = word && pass;
  assign write      = word && keep;
  assign taken      = write && opens;
  assign filled     = write && closes;
  always_ff @(posedge clk)
    if (go) place <= '0;
    else if (write) place <= place == ring ? '0 : place + 1'b1;
endmodule
