"""Which parts of a scalar body become tables: functions of one small integer that would need cores otherwise."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from penstock.compiler.backend.rtl.primitives import Rom, is_tabulated, tabulate
from penstock.compiler.backend.rtl.scalar_sv import SPELLINGS
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.types import integer_width
from penstock.compiler.scalars.operations import is_constant


@dataclass(frozen=True)
class ResultTable:
    """The result of an operation as a function of one argument of its body."""

    argument: SSAValue
    rom: Rom


@dataclass
class Tables:
    """The modules of a task's tables; equal tables are one module."""

    task: str
    modules: dict[str, str] = field(default_factory=dict[str, str])
    known: dict[Rom, str] = field(default_factory=dict[Rom, str])

    def module(self, rom: Rom) -> str:
        if rom not in self.known:
            name = self.known[rom] = f"table_{self.task}_{len(self.known)}"
            self.modules[name] = rom.module(name)
        return self.known[rom]


def find_tables(block: Block, timed: Container[Operation]) -> tuple[dict[Operation, ResultTable], set[Operation]]:
    """The operations that tables replace, and what need not be computed because of them.

    `timed` are the operations that take a step; the others are wires, which no table ends in.
    """
    chains: dict[SSAValue, list[Operation]] = {}
    roots: dict[SSAValue, SSAValue] = {a: a for a in block.args if (integer_width(a.type) or 99) <= 8}
    for op in block.ops:
        if not op.results or any(o not in roots and not is_constant(o) for o in op.operands):
            continue
        found = {roots[o] for o in op.operands if o in roots}
        if len(found) == 1:
            roots[op.results[0]] = found.pop()
            chains[op.results[0]] = [op]
    tables: dict[Operation, ResultTable] = {}
    last: set[Operation] = set()
    for value, (op,) in reversed(chains.items()):
        users = [use.operation for use in value.uses]
        if any(not u.results or u.results[0] not in chains or (u in last and u not in timed) for u in users):
            last.add(op)
        chain = _behind(op, chains)
        if op in last and op in timed and any(one.name not in SPELLINGS for one in chain):
            copy = _copied(block, chain, value)
            if is_tabulated(copy):
                tables[op] = ResultTable(roots[value], tabulate(copy))
    needed: set[Operation] = set()
    waiting = [block.last_op] if block.last_op is not None else []
    while waiting:
        op = waiting.pop()
        if op in needed:
            continue
        needed.add(op)
        if op not in tables:
            waiting += [o.owner for o in op.operands if isinstance(o.owner, Operation)]
    return tables, {op for op in block.ops if op not in needed}


def _behind(op: Operation, chains: dict[SSAValue, list[Operation]]) -> list[Operation]:
    """All operations that a value is made of, constants apart."""
    found: dict[Operation, None] = {}
    waiting = [op]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = None
            waiting += [o.owner for o in one.operands if o in chains and isinstance(o.owner, Operation)]
    return list(found)


def _copied(block: Block, chain: list[Operation], value: SSAValue) -> Block:
    """A body of these operations alone."""
    copy = Block(arg_types=[a.type for a in block.args])
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, copy.args, strict=True))
    wanted = set(chain) | {o.owner for op in chain for o in op.operands if is_constant(o)}
    for op in block.ops:
        if op in wanted:
            copy.add_op(op.clone(mapping))
    copy.add_op(nest.YieldOp(mapping[value]))
    return copy
