"""Executes the stream level: processes on unbounded FIFOs and blocks, many iterations of a nest at once.

What a nest computes is what its iterations compute one after the other. How long it takes is the schedule's and the
simulator's business. Tasks of a group take turns, so that what is on its way between them stays small; the order
in which they do changes nothing, since every channel has one writer and one reader.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.arrays import Array
from penstock.compiler.dialects import nest, stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.memory import MemoryCells
from penstock.compiler.interpreter.nest_run import Environment, NestRun


def run(
    module: ModuleOp,
    memories: Mapping[str, Array],
    parameters: Mapping[str, Array],
    *,
    strict: bool = True,
    whole: bool = True,
) -> dict[str, Array]:
    """Run a top: `memories` holds inputs and streamed parameters by name; outputs come back by name.

    An output that `memories` has too holds that before the run, as an array that is read and written does.

    With `strict`, a value that was never defined (loaded where nobody stored, or where a guard does not hold) must
    not leave its task, and every element of an output must be written, unless outputs are larger than what is computed.
    """
    top = next(op for op in module.ops if isinstance(op, stream.TopOp))
    environment = Environment(external=set(top.body.block.args), strict=strict)
    outputs: dict[str, MemoryCells] = {}
    for argument, name, kind in zip(top.body.block.args, top.argument_names, top.argument_kinds, strict=True):
        if kind.data == "output" and name.data in memories:
            environment.memories[argument] = MemoryCells.holding(argument.type, memories[name.data].copy())
        elif kind.data in ("output", "buffer"):
            environment.memories[argument] = MemoryCells.empty(argument.type)
        elif kind.data not in (stream.CALLS, stream.LENGTHS):
            environment.memories[argument] = MemoryCells.holding(argument.type, memories[name.data])
        if kind.data == "output":
            outputs[name.data] = environment.memories[argument]
    tasks = [op for op in top.body.block.ops if isinstance(op, stream.TaskOp)]
    for _, group in itertools.groupby(tasks, lambda task: task.group.data):
        _run_together([_TaskRun(environment, task, parameters) for task in group])
    _check_drained(environment)
    if strict and whole:
        _check_written(outputs)
    return {name: memory.data for name, memory in outputs.items()}


def run_part(
    module: ModuleOp,
    names: Collection[str],
    memories: Mapping[str, Array],
    tokens: Mapping[str, Array],
    parameters: Mapping[str, Array],
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Run some tasks of a top by themselves: `tokens` are what the channels from other tasks bring, by name.

    Returns what is in the external memories that they write, and the tokens on the channels to other tasks.
    """
    top = next(op for op in module.ops if isinstance(op, stream.TopOp))
    environment = Environment(external=set(top.body.block.args))
    for argument, name in zip(top.body.block.args, top.argument_names, strict=True):
        given = memories.get(name.data)
        kind = argument.type
        environment.memories[argument] = MemoryCells.empty(kind) if given is None else MemoryCells.holding(kind, given)
    channels = {op.sym_name.data: op.result for op in top.body.block.ops if isinstance(op, stream.StreamOp)}
    for name, array in tokens.items():
        environment.fifo(channels[name]).put(array)
    tasks = [op for op in top.body.block.ops if isinstance(op, stream.TaskOp) and op.sym_name.data in names]
    for _, group in itertools.groupby(tasks, lambda task: task.group.data):
        _run_together([_TaskRun(environment, task, parameters) for task in group])
    left = {name: environment.fifo(value) for name, value in channels.items() if value in environment.fifos}
    written = {
        name.data: environment.memories[argument].data
        for argument, name in zip(top.body.block.args, top.argument_names, strict=True)
        if name.data not in memories
    }
    return written, {name: fifo.take(fifo.count) for name, fifo in left.items() if fifo.count}


class _TaskRun:
    """A task's nests, one after the other."""

    def __init__(self, environment: Environment, task: stream.TaskOp, parameters: Mapping[str, Array]) -> None:
        self.environment, self.name = environment, task.sym_name.data
        self.nests: list[nest.NestOp] = []
        for op in task.body.block.ops:
            match op:
                case stream.BufferOp():
                    environment.memories[op.result] = MemoryCells.empty(op.result.type)
                case stream.RomOp():
                    environment.memories[op.result] = MemoryCells.holding(op.result.type, parameters[op.parameter.data])
                case nest.NestOp():
                    self.nests.append(op)
                case _:
                    raise PenstockError(code="broken-ir", what=f"{op.name} inside a task", where=self.name)
        self.nests.reverse()
        self.current: NestRun | None = None
        self.advance()

    @property
    def running(self) -> NestRun:
        assert self.current is not None
        return self.current

    @property
    def finished(self) -> bool:
        return self.current is None

    def advance(self) -> None:
        """Turn to the next nest when one has ended."""
        if self.current is None or self.current.finished:
            self.current = NestRun(self.environment, self.nests.pop(), self.name) if self.nests else None

    def step(self) -> None:
        self.running.step()
        self.advance()


def _run_together(tasks: Sequence[_TaskRun]) -> None:
    """Each task in turn, as far as its inputs reach and until it is far ahead of its readers."""
    while waiting := [task for task in tasks if not task.finished]:
        moved = False
        for task in waiting:
            while not task.finished and task.running.ready and not task.running.crowded:
                task.step()
                moved = True
        if moved:
            continue
        # In a circle a task may have tokens for some iterations only. Else nobody can go on within bounds: a reader
        # needs more tokens than these allow, so they must give way.
        shortened = [task.running.shorten() for task in waiting if not task.running.ready]
        if any(shortened):
            continue
        ahead = next((task for task in waiting if task.running.ready), None)
        if ahead is None:
            raise waiting[0].running.explain()
        ahead.step()


def _check_drained(environment: Environment) -> None:
    channels = [
        *((channel, fifo.count, "tokens") for channel, fifo in environment.fifos.items()),
        *((channel, blocks.count, "blocks") for channel, blocks in environment.blocks.items()),
    ]
    for channel, count, unit in channels:
        if count:
            raise PenstockError(
                code="broken-stream", what=f"{count} {unit} were written but never read",
                where=channel.name_hint or str(channel), hint="this is a defect in a pass; please report it",
            )  # fmt: skip


def _check_written(outputs: Mapping[str, MemoryCells]) -> None:
    for name, memory in outputs.items():
        if memory.written is not None and not memory.written.all():
            raise PenstockError(
                code="undefined-value", what=f"{int((~memory.written).sum())} of {memory.written.size} elements of "
                "the output are never written", where=name, hint="this is a defect in a pass; please report it",
            )  # fmt: skip
