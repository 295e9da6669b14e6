"""Names that are safe in C++, Verilog and file systems and still lead back to the model's layer."""

from __future__ import annotations

import re

# Words of C++ and Verilog, and names that the generated code has for itself, of which a layer may have one too.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto
    if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq always assign begin edge end endcase endfunction endmodule endtask event force fork function generate genvar
    initial inout input integer join localparam logic module nand negedge nor output parameter posedge reg release
    repeat supply task time tri wait wand wire wor
    ap_int ap_uint hls main pk penstock_csim penstock_top std
"""
_RESERVED = frozenset(_WORDS.split())


def c_name(name: str) -> str:
    """`encoder.0/fc1.weight` -> `encoder_0_fc1_weight`; digits first and reserved words get an underscore."""
    safe = re.sub(r"\W+", "_", name).strip("_") or "value"
    if safe in _RESERVED:
        return f"{safe}_"
    return f"_{safe}" if safe[0].isdigit() else safe
