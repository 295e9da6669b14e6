// Bytes that arrive while the link is busy wait here, in one block RAM. What does not fit is dropped and reported;
// the host keeps fewer bytes under way than fit.
module penstock_byte_fifo #(
    parameter int ADDRESS_BITS = 11
) (
    input  logic       clk,
    input  logic       rst,
    input  logic [7:0] in_data,
    input  logic       in_valid,
    output logic [7:0] out_data,
    output logic       out_valid,
    input  logic       out_ready,
    output logic       overflow
);
    (* no_rw_check *) logic [7:0] memory[0:(1 << ADDRESS_BITS) - 1];
    logic [ADDRESS_BITS:0] written, fetched;
    logic full, empty, fetch;

    assign empty = written == fetched;
    assign full = written[ADDRESS_BITS] != fetched[ADDRESS_BITS]
        && written[ADDRESS_BITS-1:0] == fetched[ADDRESS_BITS-1:0];
    assign fetch = !empty && (!out_valid || out_ready);

    always_ff @(posedge clk) begin
        if (in_valid && !full) memory[written[ADDRESS_BITS-1:0]] <= in_data;
    end

    always_ff @(posedge clk) begin
        if (fetch) out_data <= memory[fetched[ADDRESS_BITS-1:0]];
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            written <= '0;
            fetched <= '0;
            out_valid <= 1'b0;
            overflow <= 1'b0;
        end else begin
            if (in_valid && !full) written <= written + 1'b1;
            if (fetch) fetched <= fetched + 1'b1;
            if (fetch) out_valid <= 1'b1;
            else if (out_ready) out_valid <= 1'b0;
            overflow <= in_valid && full;
        end
    end
endmodule
