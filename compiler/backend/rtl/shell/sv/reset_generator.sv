// The reset of everything behind it: from power-up, while the clock is not locked, and while the button is pressed.
module penstock_reset_generator (
    input  logic clk,
    input  logic locked,
    input  logic button,  // active high
    output logic rst
);
    logic [1:0] locked_samples = 2'b00;
    logic [1:0] button_samples = 2'b00;
    logic [4:0] count = 5'd0;

    always_ff @(posedge clk) begin
        locked_samples <= {locked_samples[0], locked};
        button_samples <= {button_samples[0], button};
        if (!locked_samples[1] || button_samples[1]) count <= 5'd0;
        else if (!count[4]) count <= count + 5'd1;
        rst <= !count[4];
    end
endmodule
