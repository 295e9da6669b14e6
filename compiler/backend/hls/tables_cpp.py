"""Tables of `table.look_up` as functions: one for every distinct table of a task, inlined where it is used.

Each use reads a ROM in LUTs of its own (`rom_np` has as many ports as are read at once), so that no lane waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap

from xdsl.ir import Attribute, Operation

from penstock.compiler.backend.hls.scalar_cpp import TableKey, cpp_type, literal, table_key
from penstock.compiler.dialects import stream
from penstock.compiler.scalars.look_up import LookUpOp, numbers_of

_WIDTH = 112


def table_functions(task: stream.TaskOp) -> tuple[list[str], Mapping[TableKey, str]]:
    """The functions' text, and what each is called."""
    first: dict[TableKey, LookUpOp] = {}
    for op in _look_ups(task):
        first.setdefault(table_key(op), op)
    names = {key: f"{task.sym_name.data}_table{number}" for number, key in enumerate(first)}
    return [line for key, op in first.items() for line in _function(names[key], op)], names


def _look_ups(task: Operation) -> Iterator[LookUpOp]:
    return (op for op in task.walk() if isinstance(op, LookUpOp))


def _function(name: str, op: LookUpOp) -> list[str]:
    kind: Attribute = op.result.type
    numbers = wrap(", ".join(literal(value, kind) for value in numbers_of(op).tolist()), _WIDTH)
    given, made = cpp_type(op.index.type), cpp_type(kind)
    return [
        "// A function of one small integer, in the order of its bit patterns.",
        f"static {made} {name}({given} x) {{",
        "#pragma HLS INLINE",
        f"    static const {made} entries[{len(op.entries.data)}] = {{",
        *(f"        {line}" for line in numbers),
        "    };",
        "#pragma HLS BIND_STORAGE variable=entries type=rom_np impl=lutram",
        "    return entries[pk::raw(x)];",
        "}",
    ]
