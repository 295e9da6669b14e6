/* verilator lint_off WIDTH */
// Results on their way out: a core's own sums, and those of the cores behind it, in the order of its program.
module penstock_array_drain #(
    parameter int WIDTH = 32,
    parameter int ENTRY = 128,
    parameter int SUMS = 64,
    parameter int ROOM = 4
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic                    set,
    input  logic [            15:0] index,
    input  logic [            31:0] value,
    input  logic                    go,
    input  logic                    done,        // there is a tile
    output logic                    taken,
    output logic                    freed,
    output logic [$clog2(SUMS)-1:0] place,
    input  logic [       ENTRY-1:0] entry,       // a cycle later
    input  logic [       WIDTH-1:0] in_tdata,
    input  logic                    in_tvalid,
    output logic                    in_tready,
    output logic [       WIDTH-1:0] out_tdata,
    output logic                    out_tvalid,
    input  logic                    out_tready
);
  localparam int PARTS = ENTRY / WIDTH;
  localparam int P = PARTS > 1 ? $clog2(PARTS) : 1;
  logic running, opens, closes, ready, coming, coming_own;
  logic [1:0] flags;
  logic [15:0] ring;
  logic [P-1:0] part, coming_part;
  logic [WIDTH-1:0] passed;
  logic [$clog2(ROOM+1)-1:0] held;
  wire own = flags[0];
  wire room = running && held != ROOM;
  wire word = room && (own ? (!opens || done) : in_tvalid);
  wire pop = out_tvalid & out_tready;
  penstock_array_body program_ (
      .clk, .rst, .set, .index, .value, .go, .word, .running, .opens, .closes, .flags, .ring
  );
  assign in_tready = room && !own;
  assign taken = word && own && opens;
  assign freed = word && own && closes;
  always_ff @(posedge clk) begin
    if (go) begin
      place <= '0;
      part  <= '0;
    end else if (word && own) begin
      part <= part == PARTS - 1 ? '0 : part + 1'b1;
      if (part == PARTS - 1) place <= place == ring ? '0 : place + 1'b1;
    end
    coming_own <= own;
    coming_part <= part;
    passed <= in_tdata;
    if (rst) begin
      held   <= '0;
      coming <= 1'b0;
    end else begin
      coming <= word;
      if (word != pop) held <= word ? held + 1'b1 : held - 1'b1;
    end
  end
  wire [WIDTH-1:0] data = coming_own ? entry[coming_part*WIDTH+:WIDTH] : passed;
  penstock_fifo #(.WIDTH(WIDTH), .DEPTH(ROOM)) leaving (
      .clk, .rst, .in_tdata(data), .in_tvalid(coming), .in_tready(ready), .out_tdata, .out_tvalid, .out_tready
  );
endmodule
