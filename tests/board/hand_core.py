"""A small core with every kind of memory port, written by hand: y = (x * w) + 1, in two groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.backend.rtl import RtlDesign, RtlPort


def hand_core(words: int = 8, *, stuck: bool = False) -> RtlDesign:
    """Two int8 lanes a word; `x` is the input, `w` a parameter over the link. A stuck core never reports done."""
    bits = max(1, (words - 1).bit_length())
    done = "1'b0" if stuck else "done_now"
    text = _CORE.replace("BITS", str(bits)).replace("LAST", str(words - 1)).replace("DONE", done)
    ports = (
        RtlPort("x_in", "memory_read", 16, words, "i8", "x"),
        RtlPort("w_in", "memory_read", 16, words, "i8", "w"),
        RtlPort("mid_out", "memory_write", 32, words, "i16", "mid"),
        RtlPort("mid_in", "memory_read", 32, words, "i16", "mid"),
        RtlPort("y_out", "memory_write", 32, words, "i16", "y"),
    )
    return RtlDesign("hand_core", {"hand_core.sv": text}, {}, ports)


def reference(x: NDArray[np.int8], w: NDArray[np.int8]) -> NDArray[np.int16]:
    return x.astype(np.int16) * w.astype(np.int16) + np.int16(1)


_CORE = """
module hand_core (
    input  logic clk, rst, start,
    output logic done,
    output logic x_in_re, w_in_re, mid_in_re, mid_out_we, y_out_we,
    output logic [BITS-1:0] x_in_addr, w_in_addr, mid_in_addr, mid_out_addr, y_out_addr,
    input  logic [15:0] x_in_rdata, w_in_rdata,
    input  logic [31:0] mid_in_rdata,
    output logic [31:0] mid_out_wdata, y_out_wdata
);
    logic [BITS-1:0] i, j, i1, j1;
    logic first, second, first1, second1, done_now;
    assign x_in_re = first;
    assign w_in_re = first;
    assign x_in_addr = i;
    assign w_in_addr = i;
    assign mid_in_re = second;
    assign mid_in_addr = j;
    always_ff @(posedge clk) begin
        first1 <= first;
        second1 <= second;
        i1 <= i;
        j1 <= j;
        mid_out_we <= first1;
        mid_out_addr <= i1;
        mid_out_wdata[15:0] <= $signed(x_in_rdata[7:0]) * $signed(w_in_rdata[7:0]);
        mid_out_wdata[31:16] <= $signed(x_in_rdata[15:8]) * $signed(w_in_rdata[15:8]);
        y_out_we <= second1;
        y_out_addr <= j1;
        y_out_wdata[15:0] <= mid_in_rdata[15:0] + 16'd1;
        y_out_wdata[31:16] <= mid_in_rdata[31:16] + 16'd1;
        done_now <= y_out_we && y_out_addr == LAST;
        if (start) begin
            first <= 1'b1;
            i <= '0;
        end else if (first) begin
            i <= i + 1'b1;
            if (i == LAST) first <= 1'b0;
        end
        if (mid_out_we && mid_out_addr == LAST) begin
            second <= 1'b1;
            j <= '0;
        end else if (second) begin
            j <= j + 1'b1;
            if (j == LAST) second <= 1'b0;
        end
        if (rst) begin
            first <= 1'b0;
            second <= 1'b0;
            first1 <= 1'b0;
            second1 <= 1'b0;
            mid_out_we <= 1'b0;
            y_out_we <= 1'b0;
        end
    end
    assign done = DONE;
endmodule
"""
