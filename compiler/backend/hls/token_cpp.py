"""Tokens of streams in C++: a scalar, one hls::vector, or equal vectors side by side where one would be too wide.

A stream of wide tokens is an array of streams. What is sent or received whole is a plain array of lanes then, and
each piece of it an hls::vector: all pieces are read, or written, in the same iteration of an unrolled loop.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.ir import Attribute

from penstock.compiler.backend.hls import pragmas
from penstock.compiler.backend.hls.lines import CppLines, lanes_word, word_type
from penstock.compiler.backend.hls.scalar_cpp import cpp_type
from penstock.compiler.dialects.directives import element_bits
from penstock.compiler.dialects.types import vector_type
from penstock.compiler.pieces import Pieces, pieces_of
from penstock.compiler.scalars.index_text import times, total

Fresh = Callable[[str], str]


def pieces(token: Attribute) -> Pieces:
    """How a token is sent."""
    kind = vector_type(token)
    return pieces_of(prod(kind.get_shape()), element_bits(kind.element_type))


def stream_declaration(token: Attribute, name: str) -> str:
    """A channel of a DATAFLOW region."""
    one = f"hls::stream<{_piece_type(token)}>"
    return f'{one} {name}("{name}");' if pieces(token).count == 1 else f"{one} {name}[{pieces(token).count}];"


def stream_parameter(token: Attribute, name: str) -> str:
    """How a task takes a channel."""
    one = f"hls::stream<{_piece_type(token)}>"
    return f"{one} &{name}" if pieces(token).count == 1 else f"{one} {name}[{pieces(token).count}]"


def whole_declaration(token: Attribute, name: str, start: str = "") -> list[str]:
    """A variable that holds all lanes of a token, from the first to the last."""
    if pieces(token).count == 1:
        return [f"{word_type(token)} {name}{start};"]
    kind = vector_type(token)
    declaration = f"{cpp_type(kind.element_type)} {name}[{prod(kind.get_shape())}]{start};"
    return [declaration, pragmas.lanes_in_parallel(name)]


def read_pieces(out: CppLines, token: Attribute, stream: str, name: str, fresh: Fresh) -> None:
    """`name` is an array of lanes."""
    _each_piece(out, token, stream, name, fresh, reads=True)


def write_pieces(out: CppLines, token: Attribute, stream: str, name: str, fresh: Fresh) -> None:
    _each_piece(out, token, stream, name, fresh, reads=False)


def _each_piece(out: CppLines, token: Attribute, stream: str, name: str, fresh: Fresh, *, reads: bool) -> None:
    cut, lanes, word = pieces(token), prod(vector_type(token).get_shape()), _piece_type(token)
    index, part = fresh("piece"), fresh("part")
    with out.block(f"for (int {index} = 0; {index} < {cut.count}; ++{index})"):
        out.add(pragmas.UNROLL)
        out.add(f"const {word} {part} = {stream}[{index}].read();" if reads else f"{word} {part};")
        with out.lanes((cut.lanes,)) as (lane,):
            here, there = f"{part}[{lane}]" if cut.lanes > 1 else part, total([times(index, cut.lanes), lane])
            if cut.count * cut.lanes == lanes:
                out.add(f"{name}[{there}] = {here};" if reads else f"{here} = {name}[{there}];")
            elif reads:
                out.add(f"if ({there} < {lanes}) {name}[{there}] = {here};")
            else:  # what lies behind the last lane is read by nobody
                out.add(f"{here} = {there} < {lanes} ? {name}[{there}] : {name}[0];")
        if not reads:
            out.add(f"{stream}[{index}].write({part});")


def _piece_type(token: Attribute) -> str:
    return lanes_word(vector_type(token).element_type, pieces(token).lanes)
