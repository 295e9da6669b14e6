// The program of what moves words within a core: a body of at most two instructions, so many words each, repeated.
module penstock_array_body (
    input  logic        clk,
    input  logic        rst,
    input  logic        set,
    input  logic [15:0] index,
    input  logic [31:0] value,
    input  logic        go,
    input  logic        word,
    output logic        running,
    output logic        opens,    // the next word is the first of its instruction
    output logic        closes,   // and the last one
    output logic [ 1:0] flags,
    output logic [15:0] ring      // the last place of what its own words go round in
);
  logic [15:0] length[0:1];
  logic [1:0] what[0:1];
  logic [23:0] turns, turn;
  logic [15:0] at;
  logic slot, top_slot, enabled;
  assign opens  = at == 0;
  assign closes = at == length[slot];
  assign flags  = what[slot];
  wire whole = word && closes;
  wire round = whole && slot == top_slot;
  always_ff @(posedge clk) begin
    if (set) begin
      if (index == 0) turns <= value[23:0];
      if (index == 8) top_slot <= value[0];
      if (index == 9) enabled <= value[0];
      if (index == 10) ring <= value[15:0];
      if (index == 16) length[0] <= value[15:0];
      if (index == 17) what[0] <= value[1:0];
      if (index == 24) length[1] <= value[15:0];
      if (index == 25) what[1] <= value[1:0];
    end
    if (go) begin
      slot <= 1'b0;
      at   <= '0;
      turn <= '0;
    end else if (word) begin
      at <= whole ? '0 : at + 1'b1;
      if (whole) slot <= round ? 1'b0 : 1'b1;
      if (round) turn <= turn + 1'b1;
    end
    if (rst) running <= 1'b0;
    else if (go) running <= enabled;
    else if (round && turn == turns) running <= 1'b0;
  end
endmodule
