// Bytes from a serial line (8 data bits, no parity, one stop bit). The bit clock is a phase accumulator, so any baud
// rate up to a quarter of the clock works, whether or not it divides the clock. A byte with a bad stop bit is dropped:
// the checksum of its packet then fails.
module penstock_uart_receiver #(
    parameter logic [15:0] STEP = 16'd1  // baud / clock * 2^16
) (
    input  logic       clk,
    input  logic       rst,
    input  logic       rx,
    output logic [7:0] data,
    output logic       valid
);
    logic [2:0] samples = 3'b111;  // two registers against metastability, one more for the value
    logic active;
    logic [3:0] position;
    logic [15:0] phase;
    logic [16:0] next_phase;
    logic line;

    assign line = samples[2];
    assign next_phase = {1'b0, phase} + {1'b0, STEP};

    always_ff @(posedge clk) begin
        samples <= {samples[1:0], rx};
        valid <= 1'b0;
        if (rst) begin
            active <= 1'b0;
        end else if (!active) begin
            active <= !line;
            position <= 4'd0;
            phase <= 16'h8000;  // half a bit: every sample is taken in the middle
        end else begin
            phase <= next_phase[15:0];
            if (next_phase[16]) begin
                position <= position + 4'd1;
                if (position == 4'd0) begin
                    active <= !line;  // a start bit that is gone by its middle was noise
                end else if (position == 4'd9) begin
                    active <= 1'b0;
                    valid <= line;
                end else begin
                    data <= {line, data[7:1]};
                end
            end
        end
    end
endmodule
