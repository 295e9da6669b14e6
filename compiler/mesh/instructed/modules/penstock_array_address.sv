/* verilator lint_off WIDTH */
// The program of a memory port: a body of instructions, each so many words from a place on, fields loops.
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
    output logic [25:0] address
);
  localparam int S = SLOTS > 1 ? $clog2(SLOTS) : 1;
  logic [25:0] base[0:SLOTS-1];
  logic [15:0] length[0:SLOTS-1];
  logic [25:0] more[0:SLOTS*8-1];
  logic [25:0] place[0:SLOTS-1];
  logic [SLOTS-1:0] moved;  // since the run began: a place that has not begins at its base
  logic [S-1:0] slot, top_slot;
  logic [15:0] at;
  logic enabled;
  logic [LEVELS-1:0] first, last;
  logic [2:0] level;
  logic ends;
  wire whole = word && at == length[slot];
  wire turn = whole && slot == top_slot;
  penstock_array_loops #(.LEVELS(LEVELS)) loops (
      .clk, .set, .index, .value, .go, .step(turn), .first, .last, .level, .ends
  );
  wire [25:0] begins = moved[slot] ? place[slot] : base[slot];
  wire [25:0] on = ends ? '0 : more[{slot, level}];
  assign address = begins + at;
  wire [15:0] from = index - 16'd16;
  wire [S-1:0] row = from[3+:S];
  wire fields = set && index >= 16;
  wire [2:0] to = from[2:0] - 3'd2;
  always_ff @(posedge clk) begin
    if (fields && from[2:0] == 0) base[row] <= value[25:0];
    if (fields && from[2:0] == 1) length[row] <= value[15:0];
    if (fields && from[2:0] >= 2) more[{row, to}] <= value[25:0];
    if (set && index == 8) top_slot <= value[S-1:0];
    if (set && index == 9) enabled <= value[0];
  end
  always_ff @(posedge clk) if (whole) place[slot] <= begins + on;
  always_ff @(posedge clk) begin
    if (go) begin
      slot  <= '0;
      at    <= '0;
      moved <= '0;
    end else if (word) begin
      at <= whole ? '0 : at + 1'b1;
      if (whole) begin
        slot <= turn ? '0 : slot + 1'b1;
        moved[slot] <= 1'b1;
      end
    end
    if (rst) running <= 1'b0;
    else if (go) running <= enabled;
    else if (turn && ends) running <= 1'b0;
  end
endmodule
