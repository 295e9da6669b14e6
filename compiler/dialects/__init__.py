"""The IR: types and operations as data, one verifier each.

itensor: streams with their layout in the type, and scheduled tensor tasks.
stream:  FIFOs, block channels, memories and processes.
nest:    one pipelined loop nest with a straight-line body on lane vectors.
directives: how all that is to be built, as attributes.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from compiler.dialects.directives import Directives
from compiler.dialects.itensor import ITensor
from compiler.dialects.nest import Nest
from compiler.dialects.stream import Stream

OWN_DIALECTS: tuple[Dialect, ...] = (ITensor, Stream, Nest, Directives)
