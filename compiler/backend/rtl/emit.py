"""From a stream-level module to a core in SystemVerilog: which tasks, which channels, which ports."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from penstock.compiler.analysis.banks import accesses_of
from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.backend.rtl.equal_tasks import EqualTasks
from penstock.compiler.backend.rtl.injected_sv import emit_injected
from penstock.compiler.backend.rtl.length_numbers import LengthSignals, met_lengths
from penstock.compiler.backend.rtl.lengths_sv import LENGTH_BITS, lengths_sv
from penstock.compiler.backend.rtl.ports import External, external_of
from penstock.compiler.backend.rtl.primitives.registry import source
from penstock.compiler.backend.rtl.sequencer_sv import LIST_BITS, sequenced_ports, sequencer_sv
from penstock.compiler.backend.rtl.task_sv import TaskModule, emit_task, met_channels
from penstock.compiler.backend.rtl.top_sv import TopEmitter
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.injected import injected_of
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.errors import PenstockError
from penstock.compiler.names import Names, c_name
from penstock.compiler.schedule import OperatorLibrary

_MODULES = files("penstock.compiler.backend.rtl.modules")


def emit_rtl(
    module: ModuleOp,
    library: OperatorLibrary,
    parameters: Mapping[str, Array],
    *,
    top: str = "penstock_core",
    tasks: Collection[str] | None = None,
    depths: Mapping[str, int] | None = None,
    calls: int = 0,
    slots: Mapping[str, int] | None = None,
) -> RtlDesign:
    """The core of a design, or of some of its tasks: what connects these to others becomes stream ports.

    `depths` are FIFO depths that differ from the module's. With `calls` it has a sequencer that runs lists of up to so
    many; `slots` says how many tensors then lie in each memory, by argument. A design whose lengths each call says has
    what reads them in front of the core, and of its sequencer.
    """
    if not library.flushing:
        raise PenstockError(
            code="unsupported-library", what=f"operator library {library.version} is not of the open route",
            limit="its pipelines stall, those of the RTL backend flush", hint="use the library open-ecp5",
        )  # fmt: skip
    whole = next(op for op in module.ops if isinstance(op, stream.TopOp))
    every = [op for op in whole.body.block.ops if isinstance(op, stream.TaskOp)]
    chosen = _with_neighbours(every, tasks) if tasks is not None else every
    names, external, lengths = _names(whole, chosen)
    modules = _modules(chosen, library, parameters, names, external, lengths)
    outside = f"{top}_at_lengths" if lengths.lengths else top
    inside = f"{outside}_one_call" if calls else outside
    emitter = TopEmitter(inside, whole, modules, names, external, dict(depths or {}), lengths)
    text = emitter.emit()
    sources: dict[str, str] = {}
    for one in modules:
        for core in one.cores.values():
            sources |= {name: source(name) for name in core.files}
    for one in modules:
        sources |= {f"{name}.sv": table for name, table in one.tables.items()}
    own = {**{f"{m.module}.sv": m.text for m in modules if m.text}, f"{inside}.sv": text}
    ports = tuple(emitter.ports)
    if calls:
        ports, own[f"{outside}.sv"] = _sequenced(whole, outside, inside, ports, calls, slots or {}, lengths)
    if lengths.lengths:
        ports, own[f"{top}.sv"] = _at_lengths(whole, top, outside, ports, lengths)
    for name in ("penstock_fifo", "penstock_blocks", "penstock_ram", "penstock_rom"):
        if any(f"{name} #" in one for one in own.values()):
            sources[f"{name}.sv"] = _MODULES.joinpath(f"{name}.sv").read_text()
    data = {name: text for one in modules for name, text in one.data.items()}
    return RtlDesign(top, {**sources, **own}, data, ports)


def _sequenced(
    whole: stream.TopOp,
    top: str,
    core: str,
    inner: tuple[RtlPort, ...],
    calls: int,
    slots: Mapping[str, int],
    lengths: LengthSignals,
) -> tuple[tuple[RtlPort, ...], str]:
    """The ports and the text of the sequencer around a core."""
    if whole.calls is None:
        raise PenstockError(
            code="no-call-list", what="the design runs no lists of calls", where=whole.sym_name.data,
            limit="layers that share it, between which the host does nothing", hint="start each call on its own",
        )  # fmt: skip
    names = {value: name.data for value, name in zip(whole.body.block.args, whole.argument_names, strict=True)}
    moved = [names[value] for value in whole.moved]
    outer = sequenced_ports(inner, slots, whole.fed)
    name = Names(port.name for port in inner).take(stream.CALLS)
    listed = RtlPort(name, "memory_read", LIST_BITS, 1 + calls * len(moved), "i32", names[whole.calls])
    return (*outer, listed), sequencer_sv(top, core, inner, outer, moved, listed, lengths.pins())


def _at_lengths(
    whole: stream.TopOp, top: str, core: str, inner: tuple[RtlPort, ...], lengths: LengthSignals
) -> tuple[tuple[RtlPort, ...], str]:
    """The ports and the text of what reads the lengths of a call."""
    label = next(n for a, n in zip(whole.body.block.args, whole.argument_names, strict=True) if a is whole.steps)
    name = Names(port.name for port in inner).take(stream.LENGTHS)
    listed = RtlPort(name, "memory_read", LENGTH_BITS, len(lengths.lengths), "i32", label.data)
    return (*inner, listed), lengths_sv(top, core, inner, lengths, listed)


def _modules(
    tasks: list[stream.TaskOp],
    library: OperatorLibrary,
    parameters: Mapping[str, Array],
    names: Mapping[SSAValue, str],
    external: Mapping[SSAValue, External],
    lengths: LengthSignals,
) -> list[TaskModule]:
    """The module of every task. Equal ones have the first one's, between whose pins their own channels stand."""
    equal, made = EqualTasks(), list[TaskModule]()
    for task in tasks:
        one = equal.module_of(task)
        if one is None:
            body = injected_of(task.injected)
            one = (
                emit_task(task, library, parameters, names, external, lengths) if body is None
                else emit_injected(task, body, names)
            )  # fmt: skip
            equal.add(one)
        made.append(one)
    return made


def _with_neighbours(every: list[stream.TaskOp], wanted: Collection[str]) -> list[stream.TaskOp]:
    """The tasks of these names, and those that share block channels with them."""
    known = {task.sym_name.data: task for task in every}
    if unknown := sorted(set(wanted) - set(known)):
        raise PenstockError(
            code="unknown-task", what=f"no task {unknown[0]!r}", limit="tasks are " + ", ".join(known),
            hint="name tasks of this design",
        )  # fmt: skip
    found = set(wanted)
    blocks = {
        name: {v for v, _ in met_channels(task) if isinstance(v.type, BlocksType)} for name, task in known.items()
    }
    while more := {n for n in known if n not in found and any(blocks[n] & blocks[m] for m in found)}:
        found |= more
    return [task for task in every if task.sym_name.data in found]


def _names(
    whole: stream.TopOp, tasks: list[stream.TaskOp]
) -> tuple[dict[SSAValue, str], dict[SSAValue, External], LengthSignals]:
    """Signals of channels, memories and lengths, each its own, beside the core's own and those of its tasks."""
    groups = {task.group.data for task in tasks}
    given = Names(["clk", "rst", "start", "done", "waiting", "busy"])
    for name in [f"group{number}_{which}" for number in groups for which in ("start", "done", "done_now")]:
        given.take(name)
    for task in tasks:
        given.take(task.sym_name.data, lambda name: (f"{name}_ended", f"{name}_frames"))
    lengths = LengthSignals()
    if whole.lengths is not None and whole.steps is not None and any(met_lengths(task) for task in tasks):
        found = whole.lengths.data
        lengths = LengthSignals(found, {one.name: given.take(c_name(f"len_{one.name}")) for one in found})
    names: dict[SSAValue, str] = {}

    def give(value: SSAValue, label: str, memory: External | None = None) -> None:
        """With all signals that will be called after it."""
        base = re.sub("__+", "_", c_name(label.replace("__", "_to_")))  # Verilator spells double underscores otherwise
        names[value] = given.take(base, lambda name: _signals_of(value, name, memory))

    met = {value for task in tasks for value, _ in met_channels(task)}
    for op in whole.body.block.ops:
        if isinstance(op, stream.StreamOp | stream.BlocksOp) and op.result in met:
            give(op.result, op.sym_name.data)
    external: dict[SSAValue, External] = {}
    for argument, label in zip(whole.body.block.args, whole.argument_names, strict=True):
        if argument in met:
            external[argument] = external_of(argument, label.data)
            give(argument, label.data, external[argument])
    return names, external, lengths


_CHANNEL = ("tdata", "tvalid", "tready", "free", "full", "claim", "release", "we", "re", "addr", "wdata", "rdata")
_MEMORY = ("we", "re", "addr", "wdata", "rdata")


def _signals_of(value: SSAValue, name: str, memory: External | None) -> Iterator[str]:
    if memory is None:
        yield from (f"{name}_{side}{signal}" for side in ("", "in_", "out_") for signal in _CHANNEL)
        return
    for port in _port_names(value, name, memory):
        yield port
        yield from (f"{port}_{signal}" for signal in _MEMORY)


def _port_names(value: SSAValue, name: str, memory: External) -> set[str]:
    ways = [accesses for writes in (False, True) if (accesses := accesses_of(value, writes=writes))]
    ports = {port for accesses in ways for port in memory.names(name, accesses)}
    return ports | {f"{name}_{way}{port[len(name) :]}" for way in ("read", "write") for port in ports}
