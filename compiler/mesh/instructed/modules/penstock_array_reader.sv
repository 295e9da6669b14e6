// Words of a memory channel for one row or column of cores: asked for as long as there is room for the answers.
module penstock_array_reader #(
    parameter int WIDTH = 32,
    parameter int LEVELS = 5,
    parameter int SLOTS = 8,
    parameter int ROOM = 4
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             set,
    input  logic [     15:0] index,
    input  logic [     31:0] value,
    input  logic             go,
    output logic             want,
    output logic [     25:0] address,
    input  logic             granted,
    input  logic [WIDTH-1:0] rdata,     // a cycle after it was granted
    output logic [WIDTH-1:0] out_tdata,
    output logic             out_tvalid,
    input  logic             out_tready
);
  logic running, coming, ready;
  logic [$clog2(ROOM+1)-1:0] held;
  wire pop = out_tvalid & out_tready;
  assign want = running && held != ROOM;
  penstock_array_address #(.LEVELS(LEVELS), .SLOTS(SLOTS)) program_ (
      .clk, .rst, .set, .index, .value, .go, .word(granted), .running, .address
  );
  // `held` has what is on its way too
  always_ff @(posedge clk)
    if (rst) begin
      held   <= '0;
      coming <= 1'b0;
    end else begin
      coming <= granted;
      if (granted != pop) held <= granted ? held + 1'b1 : held - 1'b1;
    end
  penstock_fifo #(.WIDTH(WIDTH), .DEPTH(ROOM)) answers (
      .clk, .rst, .in_tdata(rdata), .in_tvalid(coming), .in_tready(ready), .out_tdata, .out_tvalid, .out_tready
  );
endmodule
