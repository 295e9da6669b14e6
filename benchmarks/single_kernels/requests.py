"""What a request asks to have measured: which tasks of which design, with which data, and what must come out.

A request's text is a whole design. With the attribute `penstock.tasks` on its module only these tasks (and those that
share block channels with them) are built; what connects them to others becomes streams. Data is drawn by a fixed seed,
since a profile is a function of the request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.dialects import nest, stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter import stream as interpreter
from penstock.compiler.interpreter.memory import MemoryCells
from penstock.compiler.platforms import Platform, load_platform
from penstock.compiler.scalars.number_types import number_type
from penstock.compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_nest
from penstock.profiling.model import parse_module
from penstock.profiling.open_rtl.words import lanes_of
from penstock.profiling.protocol import ProfileRequest, ProfilingError

ATTRIBUTE = "penstock.tasks"
MOST_VALUES = 1 << 26


@dataclass(frozen=True)
class CoreRun:
    """A core with data for one frame, and what the interpreter says must come out."""

    name: str
    module: ModuleOp
    platform: Platform
    library: OperatorLibrary
    tasks: tuple[stream.TaskOp, ...]
    design: RtlDesign
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    schedules: Mapping[str, tuple[NestSchedule, ...]]

    @property
    def work(self) -> int:
        """Cycles that no task can exceed while anything moves: all nests, one after the other."""
        return sum(one.latency for nests in self.schedules.values() for one in nests)

    @property
    def bits(self) -> int:
        return sum(port.width for port in self.design.ports)


def part_request(
    name: str, module: ModuleOp, tasks: Collection[str], platform: str, clock_mhz: float
) -> ProfileRequest:
    """A request for some tasks of a design by themselves."""
    marked = module.clone()
    marked.attributes[ATTRIBUTE] = ArrayAttr([StringAttr(task) for task in sorted(tasks)])
    return ProfileRequest(name, str(marked), platform, clock_mhz)


def prepare(request: ProfileRequest, tasks: Collection[str] | None = None) -> CoreRun:
    """Parse, emit and interpret a request; `tasks` narrows it further."""
    try:
        platform = load_platform(request.platform)
        library = load_library(platform.operators, platform.check_clock(request.clock_mhz))
        module = parse_module(request)
        top = next(op for op in module.ops if isinstance(op, stream.TopOp))
        wanted = tasks if tasks is not None else _marked(module)
        chosen = together(top, wanted)
        names = {task.sym_name.data for task in chosen}
        parameters = random_parameters(chosen)
        design = emit_rtl(module, library, parameters, tasks=None if wanted is None else names)
        inputs, outputs = _data(module, top, names, design, parameters)
        schedules = {t.sym_name.data: tuple(schedule_nest(n, library) for n in nests_of(t)) for t in chosen}
    except ProfilingError:
        raise
    except PenstockError as error:
        raise ProfilingError(
            "bad-request", what=error.what, where=error.where or request.name, limit=error.limit,
            hint=error.hint or "profile what the compiler lowered",
        ) from error  # fmt: skip
    return CoreRun(request.name, module, platform, library, chosen, design, inputs, outputs, schedules)


def _marked(module: ModuleOp) -> list[str] | None:
    found = module.attributes.get(ATTRIBUTE)
    if not isinstance(found, ArrayAttr):
        return None
    return [entry.data for entry in found.data if isinstance(entry, StringAttr)]


def together(top: stream.TopOp, wanted: Collection[str] | None) -> tuple[stream.TaskOp, ...]:
    """The tasks of these names and those on the same block channels; all of them without names."""
    tasks = {op.sym_name.data: op for op in top.body.block.ops if isinstance(op, stream.TaskOp)}
    if wanted is None:
        return tuple(tasks.values())
    if unknown := sorted(set(wanted) - set(tasks)):
        raise PenstockError(
            code="unknown-task", what=f"there is no task {unknown[0]!r}", limit="tasks are " + ", ".join(tasks),
            hint="name tasks of the design",
        )  # fmt: skip
    found = set(wanted)
    blocks = [
        {_task_name(use.operation) for use in op.result.uses}
        for op in top.body.block.ops
        if isinstance(op, stream.BlocksOp)
    ]
    while more := [ends for ends in blocks if ends & found and not ends <= found]:
        found = found.union(*more)
    return tuple(task for name, task in tasks.items() if name in found)


def _task_name(op: Any) -> str:
    while not isinstance(op, stream.TaskOp):
        op = op.parent_op()
    return op.sym_name.data


def nests_of(task: stream.TaskOp) -> list[nest.NestOp]:
    return [op for op in task.body.block.ops if isinstance(op, nest.NestOp)]


def random_parameters(tasks: Collection[stream.TaskOp]) -> dict[str, Array]:
    """Contents for the parameters that these tasks keep on the chip."""
    found: dict[str, Array] = {}
    for task in tasks:
        for op in task.body.block.ops:
            if isinstance(op, stream.RomOp) and op.parameter.data not in found:
                found[op.parameter.data] = random_memory(op.result.type, len(found))
    return found


def random_memory(kind: Attribute, seed: int) -> Array:
    shape = MemoryCells.empty(kind).data.shape
    return random_values(shape, kind, seed)


def random_values(shape: tuple[int, ...], kind: Attribute, seed: int) -> Array:
    """Integers of the whole range, floats around zero."""
    if int(np.prod(shape, dtype=np.int64)) > MOST_VALUES:
        raise PenstockError(
            code="too-large", what=f"data of shape {shape} is too large for a simulation",
            limit=f"at most {MOST_VALUES} values a memory", hint="profile its kernels one by one",
        )  # fmt: skip
    rng, number = np.random.default_rng(1000 + seed), number_type(kind)
    if number.is_float:
        return rng.standard_normal(shape).astype(number.dtype)
    if number.bits == 1:
        return rng.integers(0, 2, shape).astype(bool)
    low, high = number.extremes
    return rng.integers(low, high + 1, shape, np.int64).astype(number.dtype)


def channel_of(port: RtlPort) -> str:
    """The channel behind a stream."""
    assert port.channel is not None
    return port.channel


def _data(
    module: ModuleOp, top: stream.TopOp, names: set[str], design: RtlDesign, parameters: Mapping[str, Array]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs by port or argument, and what the interpreter makes of them."""
    kinds = {name.data: value.type for value, name in zip(top.body.block.args, top.argument_names, strict=True)}
    channels = {op.sym_name.data: op for op in top.body.block.ops if isinstance(op, stream.StreamOp)}
    written = {port.argument for port in design.ports if port.kind == "memory_write"}
    memories: dict[str, Array] = {}
    tokens: dict[str, Array] = {}
    inputs: dict[str, Array] = {}
    for seed, port in enumerate(design.ports, 100):
        if port.kind == "stream_in":
            op = channels[channel_of(port)]
            token = op.result.type.token
            drawn = random_values((port.words, *token.get_shape()), token.element_type, seed)
            tokens[op.sym_name.data] = drawn
            inputs[port.name] = drawn.reshape(port.words, -1)
        elif port.kind == "memory_read" and port.argument is not None and port.argument not in {*written, *memories}:
            memories[port.argument] = random_memory(kinds[port.argument], seed)
            inputs[port.argument] = memories[port.argument].reshape(port.words, lanes_of(port))
    stored, sent = interpreter.run_part(module, names, memories, tokens, parameters)
    outputs: dict[str, Array] = {}
    for port in design.ports:
        if port.kind == "stream_out":
            outputs[port.name] = sent[channel_of(port)].reshape(port.words, -1)
        elif port.kind == "memory_write" and port.argument is not None:
            outputs[port.argument] = stored[port.argument].reshape(port.words, lanes_of(port))
    return inputs, outputs
