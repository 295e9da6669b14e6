/* verilator lint_off WIDTH */
// One core: what takes words for it and hands words on, its multipliers, and what sends its sums away.
module penstock_array_core #(
    parameter int WIDTH = 32,
    parameter int LEVELS = 5,
    parameter int ROWS = 2,
    parameter int COLUMNS = 2,
    parameter int DEEP = 1,
    parameter int LEFT = 256,
    parameter int RIGHT = 256,
    parameter int SUMS = 64,
    parameter int LINK = 2,
    parameter int ROOM = 4
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [      3:0] set,             // of the left mover, the right mover, the multipliers, the drain
    input  logic [     15:0] index,
    input  logic [     31:0] value,
    input  logic             go,
    input  logic [WIDTH-1:0] left_tdata,
    input  logic             left_tvalid,
    output logic             left_tready,
    output logic [WIDTH-1:0] left_on_tdata,
    output logic             left_on_tvalid,
    input  logic             left_on_tready,
    input  logic [WIDTH-1:0] right_tdata,
    input  logic             right_tvalid,
    output logic             right_tready,
    output logic [WIDTH-1:0] right_on_tdata,
    output logic             right_on_tvalid,
    input  logic             right_on_tready,
    input  logic [WIDTH-1:0] above_tdata,
    input  logic             above_tvalid,
    output logic             above_tready,
    output logic [WIDTH-1:0] out_tdata,
    output logic             out_tvalid,
    input  logic             out_tready
);
  localparam int ENTRY = ROWS * COLUMNS * 32;
  localparam int LP = $clog2(LEFT + 1);
  localparam int RP = $clog2(RIGHT + 1);
  localparam int SP = $clog2(SUMS + 1);
  localparam logic [15:0] NONE = '0;
  logic left_pass, left_room, left_write, left_kept, left_filled, left_taken, left_freed, left_free, left_full;
  logic right_pass, right_room, right_write, right_kept, right_filled, right_taken, right_freed, right_free, right_full;
  logic sums_taken, sums_filled, sums_drained, sums_freed, sums_free, sums_full;
  logic [$clog2(LEFT)-1:0] left_place;
  logic [$clog2(RIGHT)-1:0] right_place;
  logic [$clog2(SUMS)-1:0] drain_place;
  logic [ENTRY-1:0] drain_data;
  logic [LP-1:0] left_tiles;
  logic [RP-1:0] right_tiles;
  logic [SP-1:0] sum_tiles;

  penstock_array_mover #(.WIDTH(WIDTH), .PLACES(LEFT)) left_mover (
      .clk, .rst, .set(set[0]), .index, .value, .go, .in_tvalid(left_tvalid), .in_tready(left_tready),
      .out_tvalid(left_pass), .out_tready(left_room), .free(left_free), .taken(left_kept), .filled(left_filled),
      .write(left_write), .place(left_place)
  );
  penstock_array_mover #(.WIDTH(WIDTH), .PLACES(RIGHT)) right_mover (
      .clk, .rst, .set(set[1]), .index, .value, .go, .in_tvalid(right_tvalid), .in_tready(right_tready),
      .out_tvalid(right_pass), .out_tready(right_room), .free(right_free), .taken(right_kept), .filled(right_filled),
      .write(right_write), .place(right_place)
  );
  penstock_fifo #(.WIDTH(WIDTH), .DEPTH(LINK)) left_link (
      .clk, .rst, .in_tdata(left_tdata), .in_tvalid(left_pass), .in_tready(left_room), .out_tdata(left_on_tdata),
      .out_tvalid(left_on_tvalid), .out_tready(left_on_tready)
  );
  penstock_fifo #(.WIDTH(WIDTH), .DEPTH(LINK)) right_link (
      .clk, .rst, .in_tdata(right_tdata), .in_tvalid(right_pass), .in_tready(right_room), .out_tdata(right_on_tdata),
      .out_tvalid(right_on_tvalid), .out_tready(right_on_tready)
  );

  // tiles: room for them, and those that are there
  penstock_array_tokens #(.BITS(LP)) left_room_for (
      .clk, .go, .first(left_tiles), .give(left_freed), .take(left_kept), .some(left_free)
  );
  penstock_array_tokens #(.BITS(LP)) left_there (
      .clk, .go, .first(NONE[LP-1:0]), .give(left_filled), .take(left_taken), .some(left_full)
  );
  penstock_array_tokens #(.BITS(RP)) right_room_for (
      .clk, .go, .first(right_tiles), .give(right_freed), .take(right_kept), .some(right_free)
  );
  penstock_array_tokens #(.BITS(RP)) right_there (
      .clk, .go, .first(NONE[RP-1:0]), .give(right_filled), .take(right_taken), .some(right_full)
  );
  penstock_array_tokens #(.BITS(SP)) sums_room_for (
      .clk, .go, .first(sum_tiles), .give(sums_freed), .take(sums_taken), .some(sums_free)
  );
  penstock_array_tokens #(.BITS(SP)) sums_there (
      .clk, .go, .first(NONE[SP-1:0]), .give(sums_filled), .take(sums_drained), .some(sums_full)
  );

  penstock_array_mac #(
      .WIDTH(WIDTH), .LEVELS(LEVELS), .ROWS(ROWS), .COLUMNS(COLUMNS), .DEEP(DEEP), .LEFT(LEFT), .RIGHT(RIGHT),
      .SUMS(SUMS)
  ) mac (
      .clk, .rst, .set(set[2]), .index, .value, .go, .left_write, .left_place, .left_data(left_tdata), .right_write,
      .right_place, .right_data(right_tdata), .left_full, .right_full, .sums_free, .left_taken, .right_taken,
      .sums_taken, .left_freed, .right_freed, .sums_filled, .left_tiles, .right_tiles, .sum_tiles, .drain_place,
      .drain_data
  );
  penstock_array_drain #(.WIDTH(WIDTH), .ENTRY(ENTRY), .SUMS(SUMS), .ROOM(ROOM)) drain (
      .clk, .rst, .set(set[3]), .index, .value, .go, .done(sums_full), .taken(sums_drained), .freed(sums_freed),
      .place(drain_place), .entry(drain_data), .in_tdata(above_tdata), .in_tvalid(above_tvalid),
      .in_tready(above_tready), .out_tdata, .out_tvalid, .out_tready
  );
endmodule
