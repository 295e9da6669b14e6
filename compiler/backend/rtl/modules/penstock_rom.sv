// One bank of a parameter on the chip; its words come from a file of hexadecimal lines.
/* verilator lint_off WIDTH */
module penstock_rom #(
    parameter int WIDTH = 8,
    parameter int WORDS = 2,
    parameter FILE = "",
    parameter BLOCK = 0,
    localparam int A = $clog2(WORDS)
) (
    input  logic             clk,
    input  logic             re,
    input  logic [A-1:0]     raddr,
    output logic [WIDTH-1:0] rdata
);
  if (BLOCK) begin : block
    (* ram_style = "block", rom_style = "block" *) logic [WIDTH-1:0] words[0:WORDS-1];
    if (FILE != "") initial $readmemh(FILE, words);  // yosys also looks at the module without its parameters
    always_ff @(posedge clk) if (re) rdata <= words[raddr];
  end else begin : lut
    (* ram_style = "logic", rom_style = "logic" *) logic [WIDTH-1:0] words[0:WORDS-1];
    if (FILE != "") initial $readmemh(FILE, words);  // yosys also looks at the module without its parameters
    always_ff @(posedge clk) if (re) rdata <= words[raddr];
  end
endmodule
