/* verilator lint_off WIDTH */
// A core's multipliers, and the sums they add up in: tile by tile as its program says, one step a cycle.
// Places of operands are read in cycle 0, multiplied in 1, added up over DEEP in 2, and onto the sum in 3.
module penstock_array_mac #(
    parameter int WIDTH = 32,
    parameter int LEVELS = 5,
    parameter int ROWS = 2,
    parameter int COLUMNS = 2,
    parameter int DEEP = 1,
    parameter int LEFT = 256,
    parameter int RIGHT = 256,
    parameter int SUMS = 64
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic                     set,
    input  logic [             15:0] index,
    input  logic [             31:0] value,
    input  logic                     go,
    input  logic                     left_write,
    input  logic [ $clog2(LEFT)-1:0] left_place,
    input  logic [        WIDTH-1:0] left_data,
    input  logic                     right_write,
    input  logic [$clog2(RIGHT)-1:0] right_place,
    input  logic [        WIDTH-1:0] right_data,
    input  logic                     left_full,
    input  logic                     right_full,
    input  logic                     sums_free,
    output logic                     left_taken,
    output logic                     right_taken,
    output logic                     sums_taken,
    output logic                     left_freed,
    output logic                     right_freed,
    output logic                     sums_filled,
    output logic [$clog2(LEFT+1)-1:0] left_tiles,
    output logic [$clog2(RIGHT+1)-1:0] right_tiles,
    output logic [$clog2(SUMS+1)-1:0] sum_tiles,
    input  logic [ $clog2(SUMS)-1:0] drain_place,
    output logic [ROWS*COLUMNS*32-1:0] drain_data
);
  localparam int LV = ROWS * DEEP * 8;  // bits of what one step takes
  localparam int RV = COLUMNS * DEEP * 8;
  localparam int LW = WIDTH / LV;
  localparam int RW = WIDTH / RV;
  localparam int LS = LW > 1 ? $clog2(LW) : 1;
  localparam int RS = RW > 1 ? $clog2(RW) : 1;
  localparam int LA = $clog2(LEFT);
  localparam int RA = $clog2(RIGHT);
  localparam int SA = $clog2(SUMS);

  logic enabled, running;
  localparam int LP = $clog2(LEFT + 1);
  localparam int RP = $clog2(RIGHT + 1);
  localparam int SP = $clog2(SUMS + 1);
  logic [15:0] top_i, top_j, top_k, i, j, k, i_base, j_base;
  logic [LEVELS-1:0] left_kept, left_set, right_kept, right_set, summed;
  logic [LP-1:0] left_set_size, left_ring, left_at, left_off, left_more[0:7];
  logic [RP-1:0] right_set_size, right_ring, right_at, right_off, right_more[0:7];
  logic [SP-1:0] tile_size, sum_ring, sum_at, entry;

  logic [LEVELS-1:0] first, last;
  logic [2:0] level;
  logic ends;
  wire opens = i == 0 && j == 0 && k == 0;
  wire closes = i == top_i && j == top_j && k == top_k;
  function automatic logic all_of(input logic [LEVELS-1:0] mask, input logic [LEVELS-1:0] found);
    all_of = (mask & ~found) == '0;
  endfunction
  wire new_left = all_of(left_kept, first);
  wire new_right = all_of(right_kept, first);
  wire new_sum = all_of(summed, first);
  wire able = running
      && (!opens || ((!new_left || left_full) && (!new_right || right_full) && (!new_sum || sums_free)));
  wire step = able && closes;
  penstock_array_loops #(.LEVELS(LEVELS)) loops (
      .clk, .set, .index, .value, .go, .step, .first, .last, .level, .ends
  );
  assign left_taken  = able && opens && new_left;
  assign right_taken = able && opens && new_right;
  assign sums_taken  = able && opens && new_sum;
  assign left_freed  = step && all_of(left_kept, last);
  assign right_freed = step && all_of(right_kept, last);

  wire [LP-1:0] left_on = ends ? '0 : left_more[level];
  wire [RP-1:0] right_on = ends ? '0 : right_more[level];
  wire [LP-1:0] left_next = left_at + left_set_size;
  wire [RP-1:0] right_next = right_at + right_set_size;
  wire [SP-1:0] sum_next = sum_at + tile_size;

  always_ff @(posedge clk) begin
    if (set && index[15:3] == 4) left_more[index[2:0]] <= value[LP-1:0];
    if (set && index[15:3] == 5) right_more[index[2:0]] <= value[RP-1:0];
  end
  always_ff @(posedge clk) begin
    if (set) begin
      if (index == 9) enabled <= value[0];
      if (index == 10) top_i <= value[15:0];
      if (index == 11) top_j <= value[15:0];
      if (index == 12) top_k <= value[15:0];
      if (index == 14) left_kept <= value[LEVELS-1:0];
      if (index == 15) left_set <= value[LEVELS-1:0];
      if (index == 16) right_kept <= value[LEVELS-1:0];
      if (index == 17) right_set <= value[LEVELS-1:0];
      if (index == 18) summed <= value[LEVELS-1:0];
      if (index == 19) left_set_size <= value[LP-1:0];
      if (index == 20) left_ring <= value[LP-1:0];
      if (index == 21) right_set_size <= value[RP-1:0];
      if (index == 22) right_ring <= value[RP-1:0];
      if (index == 23) tile_size <= value[SP-1:0];
      if (index == 24) sum_ring <= value[SP-1:0];
      if (index == 25) left_tiles <= value[LP-1:0];
      if (index == 26) right_tiles <= value[RP-1:0];
      if (index == 27) sum_tiles <= value[SP-1:0];
    end
    if (go) begin
      i <= '0;
      j <= '0;
      k <= '0;
      i_base <= '0;
      j_base <= '0;
      entry <= '0;
      left_at <= '0;
      left_off <= '0;
      right_at <= '0;
      right_off <= '0;
      sum_at <= '0;
    end else begin
      if (able) begin
        k <= k == top_k ? '0 : k + 1'b1;
        if (k == top_k) begin
          j <= j == top_j ? '0 : j + 1'b1;
          j_base <= j == top_j ? '0 : j_base + top_k + 1'b1;
          entry <= closes ? '0 : entry + 1'b1;
          if (j == top_j) begin
            i <= i == top_i ? '0 : i + 1'b1;
            i_base <= i == top_i ? '0 : i_base + top_k + 1'b1;
          end
        end
      end
      if (step) begin
        left_off  <= left_off + left_on;
        right_off <= right_off + right_on;
        if (all_of(left_set, last)) left_at <= left_next == left_ring ? '0 : left_next;
        if (all_of(right_set, last)) right_at <= right_next == right_ring ? '0 : right_next;
        if (all_of(summed, last)) sum_at <= sum_next == sum_ring ? '0 : sum_next;
      end
    end
    if (rst) running <= 1'b0;
    else if (go) running <= enabled;
    else if (step && ends) running <= 1'b0;
  end

  // cycle 0: the operands' words
  wire [15:0] left_step = i_base + k;
  wire [15:0] right_step = j_base + k;
  wire [LP-1:0] left_word = left_at + left_off + left_step / LW;
  wire [RP-1:0] right_word = right_at + right_off + right_step / RW;
  logic [WIDTH-1:0] left_cells[0:LEFT-1];
  logic [WIDTH-1:0] right_cells[0:RIGHT-1];
  logic [WIDTH-1:0] left_q, right_q;
  always_ff @(posedge clk) begin
    if (left_write) left_cells[left_place] <= left_data;
    left_q <= left_cells[left_word[LA-1:0]];
    if (left_write && left_place == left_word[LA-1:0]) left_q <= 'x;  // nobody reads what is just written
  end
  always_ff @(posedge clk) begin
    if (right_write) right_cells[right_place] <= right_data;
    right_q <= right_cells[right_word[RA-1:0]];
    if (right_write && right_place == right_word[RA-1:0]) right_q <= 'x;
  end
  typedef struct packed {
    logic valid, opens, fresh, closes, whole;
    logic [SA-1:0] entry;
  } step_t;
  step_t s1, s2, s3;
  logic again;  // the entry is that of the step before: what it comes to is still on its way to the memory
  logic [LS-1:0] left_part;
  logic [RS-1:0] right_part;
  wire [SP-1:0] sum_entry = sum_at + entry;
  always_ff @(posedge clk) begin
    s1.valid <= able && !rst;
    s1.opens <= k == 0;
    s1.fresh <= new_sum;
    s1.closes <= k == top_k;
    s1.whole <= closes && all_of(summed, last);
    s1.entry <= sum_entry[SA-1:0];
    left_part <= LW > 1 ? left_step[LS-1:0] : '0;
    right_part <= RW > 1 ? right_step[RS-1:0] : '0;
    s2 <= s1;
    s2.valid <= s1.valid && !rst;
    s3 <= s2;
    s3.valid <= s2.valid && !rst;
    again <= s3.valid && s3.closes && s3.entry == s2.entry;
  end

  // cycle 1: products; 2: their sums over DEEP, and what they are added to; 3: added up
  wire [LV-1:0] left_now = left_q[left_part*LV+:LV];
  wire [RV-1:0] right_now = right_q[right_part*RV+:RV];
  logic [ROWS*COLUMNS*32-1:0] sum, next, kept, cells[0:SUMS-1], copies[0:SUMS-1];
  for (genvar r = 0; r < ROWS; r++) begin : row
    for (genvar c = 0; c < COLUMNS; c++) begin : column
      logic signed [15:0] product[0:DEEP-1];
      logic signed [31:0] added, over;
      for (genvar d = 0; d < DEEP; d++) begin : deep
        wire signed [7:0] x = left_now[(r*DEEP+d)*8+:8];
        wire signed [7:0] y = right_now[(c*DEEP+d)*8+:8];
        always_ff @(posedge clk) product[d] <= x * y;
      end
      always_comb begin
        over = '0;
        for (int d = 0; d < DEEP; d++) over = over + 32'(product[d]);
      end
      always_ff @(posedge clk) added <= over;
      localparam int B = (r * COLUMNS + c) * 32;
      assign next[B+:32] = (s3.opens ? (s3.fresh ? 32'd0 : again ? sum[B+:32] : kept[B+:32]) : sum[B+:32]) + added;
    end
  end
  assign sums_filled = s3.valid && s3.whole;
  wire keep = s3.valid && s3.closes;
  always_ff @(posedge clk) if (s3.valid) sum <= next;
  // a memory is read at one place a cycle, so there are two; where one is written that is read, `sum` has it too
  always_ff @(posedge clk) begin
    if (keep) cells[s3.entry] <= next;
    kept <= cells[s2.entry];
    if (keep && s3.entry == s2.entry) kept <= 'x;
  end
  always_ff @(posedge clk) begin
    if (keep) copies[s3.entry] <= next;
    drain_data <= copies[drain_place];
    if (keep && s3.entry == drain_place) drain_data <= 'x;
  end
endmodule
