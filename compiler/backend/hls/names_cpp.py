"""What the memories, channels and parameters of a design are called in C++: no two alike, none hidden by another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from penstock.compiler.dialects import stream
from penstock.compiler.names import Names, c_name

# What functions call their counters, lanes and values; an argument of such a name would be hidden.
_LOCAL = re.compile(r"[a-z]+\d+|acc|keep_\d+|lane|line")


@dataclass(frozen=True)
class CppNames:
    """`values` has channels and the arguments in use, `roms` on-chip parameters, `kernels` a function a group."""

    values: Mapping[SSAValue, str]
    roms: Mapping[SSAValue, str]
    kernels: Mapping[int, str]
    one_call: str
    """The function that does one call, where something is read before it."""
    lengths: Mapping[str, str]
    """What a call's lengths are, in steps."""


def cpp_names(top: stream.TopOp) -> CppNames:
    """Tasks keep the labels that they have: the tools' reports go by these."""
    operations = list(top.body.block.ops)
    tasks = [op for op in operations if isinstance(op, stream.TaskOp)]
    names = Names([top.sym_name.data, *(task.sym_name.data for task in tasks)])
    found: dict[SSAValue, str] = {}
    for op in operations:
        if isinstance(op, stream.StreamOp):
            found[op.result] = names.take(c_name(op.sym_name.data))
        elif isinstance(op, stream.BlocksOp):
            found[op.result] = names.take(c_name(op.sym_name.data), _of_block)
    for argument, name in zip(top.body.block.args, top.argument_names, strict=True):
        if argument.first_use is not None or argument in (top.calls, top.steps):
            safe = c_name(name.data)
            found[argument] = names.take(f"{safe}_arg" if _LOCAL.fullmatch(safe) else safe)
    roms: dict[SSAValue, str] = {}
    for task in tasks:
        for op in task.body.block.ops:
            if isinstance(op, stream.RomOp):  # one array a reader, so that each task can cut it as it needs
                roms[op.result] = names.take(f"{task.sym_name.data}__{c_name(op.parameter.data)}")
    groups = sorted({task.group.data for task in tasks})
    kernels = {group: names.take(f"kernel_{group}") for group in groups}
    lengths = {one.name: names.take(f"steps_{one.name}") for one in (top.lengths.data if top.lengths else ())}
    return CppNames(found, roms, kernels, names.take("one_call"), lengths)


def _of_block(name: str) -> tuple[str, str]:
    """Its type, and what a task calls the block that it holds."""
    return f"{name}_t", f"{name}_now"
