// Bytes onto a serial line (8 data bits, no parity, one stop bit); the bit clock is that of the receiver.
module penstock_uart_transmitter #(
    parameter logic [15:0] STEP = 16'd1  // baud / clock * 2^16
) (
    input  logic       clk,
    input  logic       rst,
    input  logic [7:0] data,
    input  logic       valid,
    output logic       ready,
    output logic       tx
);
    logic [8:0] left = 9'h1ff;  // what is still to be sent, lowest bit first; ones follow it
    logic [3:0] count = 4'd0;   // bits to go, the one on the line included
    logic [15:0] phase = 16'd0;
    logic [16:0] next_phase;
    logic line = 1'b1;

    assign next_phase = {1'b0, phase} + {1'b0, STEP};
    assign ready = count == 4'd0;
    assign tx = line;

    always_ff @(posedge clk) begin
        if (rst) begin
            count <= 4'd0;
            line <= 1'b1;
        end else if (count == 4'd0) begin
            phase <= 16'd0;
            if (valid) begin
                left <= {1'b1, data};
                line <= 1'b0;
                count <= 4'd10;
            end
        end else begin
            phase <= next_phase[15:0];
            if (next_phase[16]) begin
                line <= left[0];
                left <= {1'b1, left[8:1]};
                count <= count - 4'd1;
            end
        end
    end
endmodule
