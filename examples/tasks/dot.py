"""Dot products of eight numbers. The task's body may be the one that is generated, or one written by hand.

The one by hand, in SystemVerilog, has three stages where the generated one has six.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportCallIssue=false

from penstock.tasks import Stream, collect, feed, inject, int8, int32, program, task

ROWS = 16

DOT = """
// A stage of products, a stage of sums by two, and the rest. It stands while its sum is not taken.
module dot8 (
    input  logic clk, input logic rst,
    input  logic [7:0][7:0] a_tdata, input logic a_tvalid, output logic a_tready,
    input  logic [7:0][7:0] b_tdata, input logic b_tvalid, output logic b_tready,
    output logic [31:0] c_tdata, output logic c_tvalid, input logic c_tready
);
    logic [7:0][15:0] products;
    logic [3:0][16:0] sums;
    logic in_products, in_sums;
    wire go = ~c_tvalid | c_tready;
    wire takes = go & a_tvalid & b_tvalid;
    assign a_tready = takes;
    assign b_tready = takes;
    always_ff @(posedge clk)
        if (rst) {in_products, in_sums} <= 2'b00;
        else if (go) {in_products, in_sums} <= {takes, in_products};
    always_ff @(posedge clk) if (go) begin
        for (int i = 0; i < 8; i++) products[i] <= $signed(a_tdata[i]) * $signed(b_tdata[i]);
        for (int i = 0; i < 4; i++) sums[i] <= $signed(products[2 * i]) + $signed(products[2 * i + 1]);
    end
    assign c_tvalid = in_sums;
    assign c_tdata = 32'($signed(sums[0])) + 32'($signed(sums[1])) + 32'($signed(sums[2])) + 32'($signed(sums[3]));
endmodule
"""


@program
def dots(A: int8[ROWS, 8], B: int8[ROWS, 8], C: int32[ROWS]):
    a, b = Stream[int8, (8,)], Stream[int8, (8,)]
    c = Stream[int32]
    feed(A, a)
    feed(B, b)
    collect(c, C)

    @task
    def dot():
        for _ in range(ROWS):
            c.put(sum(a.get() * b.get(), axis=0))

    inject(
        dot, "by_hand", systemverilog=DOT, module="dot8", reads={"a": ROWS, "b": ROWS}, writes={"c": ROWS},
        ii=1, depth=3, lut=180, ff=200, dsp=8,
    )  # fmt: skip
