"""Which tasks of a top feed each other in a circle: C simulation runs them side by side, the others in turn."""

from __future__ import annotations

from xdsl.ir import SSAValue

from penstock.compiler.dialects import nest, stream
from penstock.compiler.writers_first import circles_in

Circle = tuple[stream.TaskOp, ...]


def circles_of(top: stream.TopOp) -> list[Circle]:
    """Each with its tasks in their order; nests say whether they stand in one."""
    tasks = [op for op in top.body.block.ops if isinstance(op, stream.TaskOp)]
    if not any(isinstance(op, nest.NestOp) and op.in_circle is not None for op in top.walk()):
        return []
    writers, readers = dict[SSAValue, stream.TaskOp](), dict[SSAValue, stream.TaskOp]()
    for task in tasks:
        for op in task.walk():
            if isinstance(op, nest.WriteOp):
                writers[op.stream] = task
            elif isinstance(op, nest.ReadOp):
                readers[op.stream] = task
    return circles_in(tasks, [(writer, readers[value]) for value, writer in writers.items() if value in readers])
