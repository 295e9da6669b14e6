"""One task as a module: its nests, one after the other, and the memories that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from xdsl.ir import Operation, SSAValue

from penstock.compiler.analysis.banks import Geometry, accesses_of
from penstock.compiler.analysis.extents import extents_of
from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl.handshake import write_signals
from penstock.compiler.backend.rtl.length_numbers import LengthSignals, met_lengths
from penstock.compiler.backend.rtl.lines import SvLines, clog2, packed
from penstock.compiler.backend.rtl.nest_sv import NestSv
from penstock.compiler.backend.rtl.numbers import type_bits
from penstock.compiler.backend.rtl.ports import External, Signal, stream_pins
from penstock.compiler.backend.rtl.primitives.registry import Primitive
from penstock.compiler.backend.rtl.stages import PipelineStages
from penstock.compiler.backend.rtl.task_memory import TaskMemories
from penstock.compiler.backend.rtl.timing import NestTiming, time_nest
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.stream import BlocksType, StreamType
from penstock.compiler.dialects.types import memref_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.names import Names, c_name
from penstock.compiler.schedule import OperatorLibrary

_WIRES = ("clk", "rst", "start", "ended", "go", "ce", "active", "advance", "slot", "pending")


@dataclass(frozen=True)
class TaskModule:
    """A task's text and how to instantiate it."""

    task: stream.TaskOp
    module: str
    text: str
    pins: tuple[Signal, ...]
    data: Mapping[str, str]
    cores: Mapping[str, Primitive]
    tables: Mapping[str, str]
    """Modules that only this task has, by name."""
    geometries: Mapping[SSAValue, Geometry]
    """Of the block channels that the task meets."""
    starts: bool
    """Whether it waits for `start`, having nothing else to wait for."""
    hands_on: tuple[SSAValue, ...]
    """Channels to which the very last thing that the task does goes, so that their readers end after it."""
    pin_names: Mapping[SSAValue, str]
    """What the pins of each channel and external memory are called after."""


def emit_task(
    task: stream.TaskOp,
    library: OperatorLibrary,
    parameters: Mapping[str, Array],
    names: Mapping[SSAValue, str],
    external: Mapping[SSAValue, External],
    lengths: LengthSignals,
) -> TaskModule:
    """`names` are those of channels and external memories."""
    nests = [op for op in task.body.block.ops if isinstance(op, nest.NestOp)]
    name = task.sym_name.data
    if not nests:
        raise PenstockError(code="unsupported-task", what="a task without a nest", where=name,
                            hint="this is a defect in a pass; please report it")  # fmt: skip
    own = dict(names)
    given = Names({*_WIRES, *names.values(), *lengths.names.values()})
    for op in task.body.block.ops:
        if isinstance(op, stream.BufferOp | stream.RomOp):
            label = c_name((op.parameter if isinstance(op, stream.RomOp) else op.sym_name).data)
            own[op.result] = given.take(label)
    memories = TaskMemories(name, parameters, external, own)
    timings = [time_nest(op, library) for op in nests]
    starts = not _waits(nests[0])
    cores: dict[str, Primitive] = {}
    out = SvLines()
    _head(out, task, nests, timings)
    prefixes = [f"n{i}_" if len(nests) > 1 else "" for i in range(len(nests))]
    sections: list[SvLines] = []
    signals: dict[str, list[str]] = {}
    for position, (op, timing, prefix) in enumerate(zip(nests, timings, prefixes, strict=True)):
        taken = {*_WIRES, *own.values(), *lengths.names.values()}
        stages = PipelineStages(timing.schedule.depth, front_of(op, timing), prefix, taken=taken)
        emitter = NestSv(op, timing, own, stages, lengths, memories=memories, used=cores, signals=signals)
        before = f"{prefixes[position - 1]}ended"
        sections.append(emitter.emit(before, starts=starts and position == 0, begins=position == 0))
    memories.write()
    pins = _pins(task, own, external, memories, lengths, starts=starts)
    module = f"task_{name}"
    with out.block(f"module {module} (", ");"):
        out.add(*(pin.declaration() + ("," if pin is not pins[-1] else "") for pin in pins))
    out.indent += 1
    out.add(*memories.declarations)
    for op, section in zip(nests, sections, strict=True):
        out.add("", f"// {op.sym_name.data}", *section.text)
    told = SvLines()
    write_signals(told, signals)
    out.add("", *told.text, "", *memories.out.text)
    if len(nests) > 1:
        out.add(f"assign ended = {prefixes[-1]}ended;")
    out.indent -= 1
    out.add("endmodule")
    text = "\n".join(line.rstrip() for line in out.text) + "\n"
    blocks = {m: g for m, g in memories.geometries.items() if isinstance(m.type, BlocksType)}
    last = _hands_on(nests[-1], timings[-1])
    return TaskModule(
        task, module, text, tuple(pins), memories.data, cores, memories.tables.modules, blocks, starts, last, names
    )


def front_of(op: nest.NestOp, timing: NestTiming) -> int:
    """The last stage that takes from a channel."""
    return max((timing.start(one) for one in op.body.block.ops if _takes(one)), default=0)


def _waits(op: nest.NestOp) -> bool:
    """Whether its first iteration takes from a channel: else only the accelerator's start says that a frame begins."""
    extents = extents_of(op)
    return any(_takes(one) and extents.always_first(one.when) for one in op.body.block.ops)


def _takes(op: Operation) -> TypeGuard[nest.ReadOp | nest.LoadOp]:
    if isinstance(op, nest.ReadOp):
        return True
    return isinstance(op, nest.LoadOp) and isinstance(op.memory.type, BlocksType)


def _hands_on(op: nest.NestOp, timing: NestTiming) -> tuple[SSAValue, ...]:
    """Channels that the last iteration fills in its last stage."""
    extents = extents_of(op)
    found: list[SSAValue] = []
    for one in op.body.block.ops:
        if isinstance(one, nest.WriteOp) and extents.always_last(one.when):
            channel = one.stream
        elif isinstance(one, nest.StoreOp) and isinstance(one.memory.type, BlocksType):
            channel = one.memory
        else:
            continue
        if timing.start(one) == timing.schedule.depth - 1:
            found.append(channel)
    return tuple(found)


def _head(out: SvLines, task: stream.TaskOp, nests: list[nest.NestOp], timings: list[NestTiming]) -> None:
    out.add(f"// Layer {task.layer.data}.")
    for op, timing in zip(nests, timings, strict=True):
        schedule = timing.schedule
        loops = " x ".join(str(loop) for loop in op.loops.data) or "no loops"
        out.add(
            f"// {op.sym_name.data}: {loops}; {schedule.iterations} slots, {schedule.depth} stages. "
            f"{schedule.ii_reason}."
        )
    out.add("/* verilator lint_off WIDTH */")


def _pins(
    task: stream.TaskOp, names: Mapping[SSAValue, str], external: Mapping[SSAValue, External], memories: TaskMemories,
    lengths: LengthSignals, *, starts: bool,
) -> list[Signal]:  # fmt: skip
    pins = [Signal("clk", False), Signal("rst", False), *([Signal("start", False)] if starts else []),
            *lengths.pins(met_lengths(task))]  # fmt: skip
    for value, writes in met_channels(task):
        name = names[value]
        match value.type:
            case StreamType():
                pins += stream_pins(name, value.type.token, writes=writes)
            case BlocksType():
                bits = type_bits(memref_type(value.type.block).element_type)
                pins += block_pins(name, memories.geometry(value), bits, writes=writes)
            case _:
                ways = accesses_of(value, task, writes=writes)
                everyone = accesses_of(value, writes=writes)
                ports = external[value].names(name, everyone)[: max(len(external[value].steps(a)) for a in ways)]
                pins += [pin for port in ports for pin in external[value].pins(port, writes=writes)]
    return [*pins, Signal("ended", True)]


def block_pins(name: str, geometry: Geometry, element_bits: int, *, writes: bool) -> list[Signal]:
    banks = geometry.banks
    address = Signal(f"{name}_addr", True, packed(banks, clog2(geometry.words)) + " ")
    words = packed(banks, geometry.lanes * element_bits) + " "
    enables = f"[{banks - 1}:0] " if banks > 1 else ""
    common = [Signal(f"{name}_{'free' if writes else 'full'}", False), Signal(f"{name}_claim", True),
              Signal(f"{name}_release", True)]  # fmt: skip
    if writes:
        return [*common, Signal(f"{name}_we", True, enables), address, Signal(f"{name}_wdata", True, words)]
    return [*common, Signal(f"{name}_re", True), address, Signal(f"{name}_rdata", False, words)]


def met_channels(task: stream.TaskOp) -> list[tuple[SSAValue, bool]]:
    """Streams, block channels and external memories of a task, and whether it writes them; in order of first use."""
    found: dict[tuple[SSAValue, bool], None] = {}
    for op in task.walk():
        match op:
            case nest.ReadOp():
                found[op.stream, False] = None
            case nest.WriteOp():
                found[op.stream, True] = None
            case nest.LoadOp() | nest.StoreOp() if not isinstance(op.memory.owner, stream.BufferOp | stream.RomOp):
                found[op.memory, isinstance(op, nest.StoreOp)] = None
            case _:
                pass
    return list(found)
