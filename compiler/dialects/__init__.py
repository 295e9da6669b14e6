"""The IR: types and operations as data, one verifier each.

itensor: streams with their layout in the type, and scheduled tensor tasks.
stream:  FIFOs, block channels, memories and processes.
nest:    one pipelined loop nest with a straight-line body on lane vectors.
window:  the windows along a dim of a tensor or stream.
table:   a function of one small integer, as the list of its results.
tasks:   a task program, by its text.
directives: how all that is to be built, as attributes.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from penstock.compiler.dialects.directives import Directives
from penstock.compiler.dialects.itensor import ITensor
from penstock.compiler.dialects.nest import NestDialect
from penstock.compiler.dialects.stream import StreamDialect
from penstock.compiler.dialects.table import TableDialect
from penstock.compiler.dialects.tasks import TasksDialect
from penstock.compiler.dialects.window import WindowDialect

OWN_DIALECTS: tuple[Dialect, ...] = (
    ITensor, StreamDialect, NestDialect, WindowDialect, TableDialect, TasksDialect, Directives,
)  # fmt: skip
