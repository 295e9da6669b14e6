// The program of a memory port: a body of instructions, each so many words from a place on, within loops.
// A place goes on by what its instruction says for the loop that goes on, so that nothing is multiplied.
module penstock_array_address #(
    parameter int LEVELS = 5,
    parameter int SLOTS = 8
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        set,
    input  logic [15:0] index,
    input  logic [31:0] value,
    input  logic        go,
    input  logic        word,     // one passes
    output logic        running,
    output logic [31:0] address
);
  localparam int S = SLOTS > 1 ? $clog2(SLOTS) : 1;
  logic [31:0] base[0:SLOTS-1];
  logic [31:0] length[0:SLOTS-1];
  logic [31:0] more[0:SLOTS-1][0:LEVELS-1];
  logic [31:0] place[0:SLOTS-1];
  logic [S-1:0] slot, top_slot;
  logic [31:0] at;
  logic enabled;
  logic [LEVELS-1:0] first, last, goes;
  logic ends;
  wire whole = word && at == length[slot];
  wire turn = whole && slot == top_slot;
  penstock_array_loops #(.LEVELS(LEVELS)) loops (
      .clk, .set, .index, .value, .go, .step(turn), .first, .last, .goes, .ends
  );
  logic [31:0] on;
  always_comb begin
    on = '0;
    for (int l = 0; l < LEVELS; l++) if (goes[l]) on = more[slot][l];
  end
  assign address = place[slot] + at;
  wire [S-1:0] row = index[3+:S];
  always_ff @(posedge clk) begin
    if (set) begin
      if (index == 8) top_slot <= value[S-1:0];
      if (index == 9) enabled <= value[0];
      if (index >= 16 && index[2:0] == 0) base[row-S'(2)] <= value;
      if (index >= 16 && index[2:0] == 1) length[row-S'(2)] <= value;
      for (int l = 0; l < LEVELS; l++) if (index >= 16 && index[2:0] == 3'(l + 2)) more[row-S'(2)][l] <= value;
    end
    if (go) begin
      slot <= '0;
      at   <= '0;
      for (int s = 0; s < SLOTS; s++) place[s] <= base[s];
    end else if (word) begin
      at <= whole ? '0 : at + 1;
      if (whole) begin
        slot <= turn ? '0 : slot + 1'b1;
        place[slot] <= place[slot] + on;
      end
    end
    if (rst) running <= 1'b0;
    else if (go) running <= enabled;
    else if (turn && ends) running <= 1'b0;
  end
endmodule
