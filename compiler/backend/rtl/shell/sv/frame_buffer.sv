// One frame of a memory argument: written through one port, read through the other. Reading takes one cycle and the
// word stays until the next one is read. A frame is written before it is read, never at the same time.
module penstock_frame_buffer #(
    parameter int WIDTH = 8,
    parameter int WORDS = 2,
    parameter int ADDRESS_BITS = 1
) (
    input  logic                    clk,
    input  logic                    we,
    input  logic [ADDRESS_BITS-1:0] waddr,
    input  logic [WIDTH-1:0]        wdata,
    input  logic                    re,
    input  logic [ADDRESS_BITS-1:0] raddr,
    output logic [WIDTH-1:0]        rdata
);
    (* no_rw_check *) logic [WIDTH-1:0] memory[0:WORDS-1];

    always_ff @(posedge clk) begin
        if (we) memory[waddr] <= wdata;
    end

    always_ff @(posedge clk) begin
        if (re) rdata <= memory[raddr];
    end
endmodule
