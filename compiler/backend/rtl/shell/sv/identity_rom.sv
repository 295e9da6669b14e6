// What the board says of itself: the identity block, one byte an address.
module penstock_identity_rom #(
    parameter int BYTES = 2,
    parameter FILE = "penstock_identity.hex"
) (
    input  logic       clk,
    input  logic [9:0] addr,
    output logic [7:0] data
);
    logic [7:0] memory[0:BYTES-1];

    initial $readmemh(FILE, memory);

    always_ff @(posedge clk) data <= memory[addr[$clog2(BYTES)-1:0]];
endmodule
