"""The structure of a design without its names and its data: designs of one shape have one area."""

from __future__ import annotations

import re

from penstock.compiler.backend.rtl.design import RtlDesign
from penstock.profiling.cache import content_key

_TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/            # comments
      |"(?:[^"\\]|\\.)*"             # strings
      |`?\$?[A-Za-z_][\w$]*          # names, keywords, directives
      |(?:\d+\s*)?'[sS]?[bodhBODH]?[0-9a-fA-FxXzZ_?]+   # sized numbers
      |\d[\d_]*|\S""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[a-z_][\w$]*\Z")
_KEYWORDS = """
module endmodule input output inout logic wire reg bit int integer genvar parameter localparam signed unsigned assign
always always_ff always_comb initial final begin end if else for generate endgenerate case casez casex endcase default
function endfunction automatic return posedge negedge or and not packed struct typedef enum string real byte shortint
longint void while do break continue unique priority
"""
_KEPT = frozenset(_KEYWORDS.split())


def structural_key(design: RtlDesign) -> str:
    """A hash of the text where every name is a number, in order of appearance, and a data file is its length.

    Names in capitals stay: they are parameters, or cells of the vendor's. So do attributes' and directives' strings,
    except for the names of data files and labels.
    """
    numbers: dict[str, str] = {}
    lengths = {name: f'"{len(text.split())}"' for name, text in design.data.items()}

    def normal(token: str) -> str:
        if token.startswith(("//", "/*")):
            return ""
        if token.startswith('"'):
            return lengths.get(token[1:-1], token if token[1:-1] in _STYLES else '""')
        if _NAME.match(token) and token not in _KEPT:
            return numbers.setdefault(token, f"n{len(numbers)}")
        return token

    used = [[normal(token) for token in _TOKENS.findall(text)] for text in design.files.values()]
    return content_key([[token for token in tokens if token] for tokens in used], numbers.get(design.top))


_STYLES = frozenset({"block", "distributed", "registers", "ultra", "yes", "no", "true", "false", "auto", "soft"})
