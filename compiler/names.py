"""Names that are safe in C++, SystemVerilog and file systems and still lead back to the model's layer, each once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

# Words of C++, and macros and types of its headers that stand in no namespace.
_CPP = """
    alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const consteval constexpr constinit const_cast continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile
    wchar_t while xor xor_eq
    errno linux stderr stdin stdout unix
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t ptrdiff_t size_t
"""
# Words of SystemVerilog (IEEE 1800) that are none of C++.
_VERILOG = """
    accept_on alias always always_comb always_ff always_latch assign assume automatic before begin bind bins binsof bit
    buf bufif0 bufif1 byte casex casez cell chandle checker clocking cmos config constraint context cover covergroup
    coverpoint cross deassign defparam design disable dist edge end endcase endchecker endclass endclocking endconfig
    endfunction endgenerate endgroup endinterface endmodule endpackage endprimitive endprogram endproperty endsequence
    endspecify endtable endtask event eventually expect extends final first_match force foreach forever fork forkjoin
    function generate genvar global highz0 highz1 iff ifnone ignore_bins illegal_bins implements implies import incdir
    include initial inout input inside instance integer interconnect interface intersect join join_any join_none large
    let liblist library local localparam logic longint macromodule matches medium modport module nand negedge nettype
    nexttime nmos nor noshowcancelled notif0 notif1 null output package packed parameter pmos posedge primitive priority
    program property pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
    randsequence rcmos real realtime ref reg reject_on release repeat restrict rnmos rpmos rtran rtranif0 rtranif1
    s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled small soft
    solve specify specparam string strong strong0 strong1 super supply0 supply1 sync_accept_on sync_reject_on table
    tagged task throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type
    unique unique0 unsigned until until_with untyped use uwire var vectored wait wait_order wand weak weak0 weak1
    wildcard wire with within wor xnor
"""
# What the generated code and the headers that it includes have for themselves.
_OWN = """
    ap_int ap_slong ap_uint ap_ulong bfloat16 busy clk done ended half hls inputs main outputs parameters penstock_core
    penstock_csim penstock_top pk rst start std supply waiting
"""
RESERVED = frozenset(f"{_CPP} {_VERILOG} {_OWN}".split())
_MACRO = re.compile(r"[A-Z0-9_]{3,}|group\d+_(start|done|done_now)")
"""Of capitals alone: headers of every tool may have a macro of that name. And signals of a core's groups."""
_NUMBERED = re.compile(r"(_\d+)+$", re.ASCII)
LONGEST_IDENTIFIER = 120
"""Of an identifier, whose middle is left out beyond: modules are files, whose names have 255 bytes in most systems."""


def hint_of(name: str) -> str:
    """Of a value in printed IR: without numbers at the end, which it gets anew whenever it is read back and printed."""
    return _NUMBERED.sub("", name) or "value"


def c_name(name: str) -> str:
    """`encoder.0/fc1.weight` -> `encoder_0_fc1_weight`; digits first and reserved words get an underscore.

    A letter of another script is spelt by its number, so that names in it stay apart. Two long names may become one:
    who needs them apart takes them from `Names`.
    """
    spelt = "".join(_in_ascii(c) for c in unicodedata.normalize("NFC", name))
    safe = re.sub(r"\W+", "_", spelt, flags=re.ASCII).strip("_") or "value"
    if len(safe) > LONGEST_IDENTIFIER:
        half = LONGEST_IDENTIFIER // 2
        safe = f"{safe[:half].rstrip('_')}_{safe[-half + 1 :].lstrip('_')}"
    if safe in RESERVED or _MACRO.fullmatch(safe):
        return f"_{safe}_" if safe[0].isdigit() else f"{safe}_"
    return f"_{safe}" if safe[0].isdigit() else safe


def _in_ascii(letter: str) -> str:
    """Without accents, if that leaves one of ours; the accents of other scripts make letters of their own."""
    parts = unicodedata.normalize("NFKD", letter)
    plain = "".join(part for part in parts if not unicodedata.combining(part))
    return plain if plain.isascii() or not letter.isalnum() else f"u{ord(letter):x}"


def _nothing(name: str) -> Iterable[str]:
    return ()


class Names:
    """Gives every name of a scope once: the wanted one, or the first that is free with a number behind it."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def take(self, wanted: str, also: Callable[[str], Iterable[str]] = _nothing) -> str:
        """`also` is what is spelt after the name besides, and must be free too."""
        name, number = wanted, self._next.get(wanted, 2)
        while not self._taken.isdisjoint(every := {name, *also(name)}):
            name, number = f"{wanted}_{number}", number + 1
        if name != wanted:
            self._next[wanted] = number
        self._taken |= every
        return name
