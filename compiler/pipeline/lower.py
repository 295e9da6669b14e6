"""From a canonical program and a design to the stream level, verified after every pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph, read_graph
from penstock.compiler.analysis.lengths import SizedGraph
from penstock.compiler.analysis.packing import layout_of
from penstock.compiler.arrays import Array
from penstock.compiler.design import Design
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.interpreter import itensor as itensor_interpreter
from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.layout import Layout, crop, pack, pad, unpack
from penstock.compiler.lengths import Length
from penstock.compiler.pipeline.stages import itensor_passes, last_stage, stream_passes, task_passes
from penstock.compiler.plan.names import striped_tensor
from penstock.compiler.program import Program
from penstock.compiler.scalars.number_types import NumberType, number_type
from penstock.compiler.transforms.merge_lengths import at_steps, compared_steps, merge_lengths
from penstock.compiler.transforms.pad_dims import PadDims
from penstock.compiler.transforms.passes import level_of
from penstock.compiler.transforms.resize_dims import mark_sizes, resized

RunMemories = Callable[[dict[str, Array]], Mapping[str, Array]]
"""Runs one frame: what lies in external memory before it, by argument, and what it leaves there."""

_REMEMBERED = 4
"""Answers of the itensor level."""


@dataclass(frozen=True)
class Lowered:
    """One design of one program at every level."""

    program: Program
    design: Design
    itensor: ModuleOp
    stream: ModuleOp
    padded: Program
    """The program as it was tiled: dims that the design's tiles do not divide are padded, parameters with them."""
    largest: Lowered | None = None
    """The accelerator that does this at these lengths: its memories are as large as at the largest."""
    _answers: dict[str, list[Array]] = field(
        default_factory=dict[str, list[Array]], init=False, repr=False, compare=False
    )
    """What the itensor level answered lately, by its inputs: every other level is held against it, one by one."""

    @cached_property
    def is_tasks(self) -> bool:
        """Whether it is a task program, whose own level takes the itensor level's place."""
        return level_of(self.program.module) == "tasks"

    @property
    def linalg(self) -> ModuleOp:
        return self.program.module

    @property
    def top(self) -> stream.TopOp:
        return next(op for op in self.stream.ops if isinstance(op, stream.TopOp))

    @property
    def tasks(self) -> tuple[stream.TaskOp, ...]:
        return tuple(op for op in self.top.body.block.ops if isinstance(op, stream.TaskOp))

    @property
    def channels(self) -> tuple[stream.StreamOp | stream.BlocksOp, ...]:
        return tuple(op for op in self.top.body.block.ops if isinstance(op, stream.StreamOp | stream.BlocksOp))

    @property
    def nests(self) -> Iterator[tuple[stream.TaskOp, nest.NestOp]]:
        for task in self.tasks:
            for op in task.body.block.ops:
                if isinstance(op, nest.NestOp):
                    yield task, op

    @cached_property
    def graph(self) -> Graph:
        """What was tiled."""
        return read_graph(self.padded.module)

    @cached_property
    def _own_graph(self) -> Graph:
        """What the model says."""
        return self.graph if self.padded is self.program else read_graph(self.program.module)

    def run_itensor(self, inputs: Sequence[Array], observe: itensor_interpreter.Observer | None = None) -> list[Array]:
        """Run the itensor level on inputs at the ports' dtypes; what it answered lately is not worked out again."""
        if observe is not None:
            return self._run_itensor(inputs, observe)
        key = _content(inputs)
        if key not in self._answers:
            if len(self._answers) >= _REMEMBERED:
                del self._answers[next(iter(self._answers))]
            self._answers[key] = self._run_itensor(inputs, None)
        return [answer.copy() for answer in self._answers[key]]

    def _run_itensor(self, inputs: Sequence[Array], observe: itensor_interpreter.Observer | None) -> list[Array]:
        if self.is_tasks:
            return linalg_interpreter.run(self.program, inputs)
        function = next(op for op in self.itensor.ops if isinstance(op, func.FuncOp))
        waiting = iter(self._shaped(inputs))
        arguments: list[Array] = []
        for index, argument in enumerate(self.graph.arguments):
            is_param = self.graph.is_param(argument)
            value = self.padded.params[self.graph.name(argument)] if is_param else next(waiting)
            layout = layout_of(function.arg_attrs, index)
            arguments.append(pack(value, layout.layout) if layout else value)
        outputs = itensor_interpreter.run(self.itensor, arguments, observe)
        layouts = [layout_of(function.res_attrs, i) for i in range(len(outputs))]
        return self._unpacked(outputs, [one.layout if one else None for one in layouts])

    def run_stream(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the stream level on inputs at the ports' dtypes."""
        whole = self.largest or self
        return self.run_memories(
            lambda held: stream_interpreter.run(self.stream, held, whole.padded.params, whole=whole is self), inputs
        )

    def run_memories(self, run: RunMemories, inputs: Sequence[Array]) -> list[Array]:
        """Run whatever has the design's external memories: they come in and go out packed, by argument."""
        outputs = {
            name.data: self.top.layout(index)
            for index, (name, kind) in enumerate(zip(self.top.argument_names, self.top.argument_kinds, strict=True))
            if kind.data == "output"
        }
        found = run(self.memories(inputs))
        memories = self.largest.graph if self.largest else None
        return self._unpacked([found[name] for name in outputs], list(outputs.values()), memories)

    def memories(self, inputs: Sequence[Array]) -> dict[str, Array]:
        """What the host puts into external memory: inputs, and parameters that are streamed from there."""
        values = dict(zip((p.name for p in self.program.signature.inputs), self._shaped(inputs), strict=True))
        params = (self.largest or self).padded.params
        memories: dict[str, Array] = {}
        for index, (name, kind) in enumerate(zip(self.top.argument_names, self.top.argument_kinds, strict=True)):
            if kind.data not in ("output", "buffer", stream.CALLS, stream.LENGTHS):
                layout = self.top.layout(index)
                whole = striped_tensor(name.data) if layout and layout.stripe is not None else name.data
                value = self._as_large(whole, values[whole]) if kind.data == "input" else params[whole]
                memories[name.data] = pack(value, layout) if layout else value
        return memories

    def _as_large(self, name: str, value: Array) -> Array:
        """An input as large as the memory that it lies in."""
        if self.largest is None:
            return value
        graph = self.largest.graph
        return pad(value, next(_shape(a) for a in graph.arguments if graph.name(a) == name))

    def _unpacked(
        self, outputs: Sequence[Array], layouts: Sequence[Layout | None], memories: Graph | None = None
    ) -> list[Array]:
        """Results as the model's @main has them, from where the accelerator left them."""
        found: list[Array] = []
        inside = (memories or self.graph).returned
        for value, layout, inner, own in zip(outputs, layouts, inside, self._own_graph.returned, strict=True):
            shape = _shape(inner)
            whole = unpack(value, layout, shape) if layout else value.reshape(shape)
            found.append(crop(whole, _shape(own)))
        return found

    def border_shapes(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Inputs and outputs as the model has them: what of the accelerator's, which may be padded, means something."""
        inputs = [_shape(a) for a in self._own_graph.arguments if not self._own_graph.is_param(a)]
        return inputs, [_shape(v) for v in self._own_graph.returned]

    @property
    def input_numbers(self) -> list[NumberType]:
        """What the inputs hold, which may have less room than the numpy type that stores it."""
        return [number_type(a.type) for a in self._own_graph.arguments if not self._own_graph.is_param(a)]

    def _shaped(self, inputs: Sequence[Array]) -> list[Array]:
        """The caller's arrays in the shapes of what was tiled: unit dims are gone, and some dims may be padded."""
        shapes = [_shape(a) for a in self.graph.arguments if not self.graph.is_param(a)]
        return [
            pad(np.asarray(x).reshape(own), shape)
            for x, own, shape in zip(inputs, self.border_shapes()[0], shapes, strict=True)
        ]


def lower(program: Program, design: Design) -> Lowered:
    """Apply the design. Each level verifies; a design that does not fit the model is named by layer.

    A model whose sizes each call says is lowered at several, and becomes one accelerator for all of them.
    """
    if program.lengths is None or not program.lengths.lengths:
        return _lower(program, design)
    marked, lengths = mark_sizes(program), program.lengths.lengths
    steps = compared_steps(lengths)
    streams, directives = stream_passes(design)[:1], stream_passes(design)[1:]
    found = [_tiled(*_at(marked, design, lengths, one)) for one in steps]
    merged = merge_lengths([last_stage(itensor, streams) for _, itensor in found], steps, lengths, program.name)
    padded, itensor = found[0]
    return Lowered(marked, design, itensor, last_stage(merged, directives), padded)


def at_lengths(lowered: Lowered, sizes: Mapping[str, int]) -> Lowered:
    """The accelerator as it works at some lengths, with the model as it is there beside it."""
    known = lowered.program.lengths
    assert known is not None, "the accelerator does one size"
    steps = {length.name: sizes[length.name] // length.step for length in known.lengths}
    program, design = _at(lowered.program, lowered.design, known.lengths, steps)
    padded, itensor = _tiled(program, design)
    return Lowered(program, design, itensor, at_steps(lowered.stream, steps), padded, lowered)


def _at(
    program: Program, design: Design, lengths: Sequence[Length], steps: Mapping[str, int]
) -> tuple[Program, Design]:
    """What a design for the largest lengths is at others: a tile that is a whole dim stays one."""
    sizes = {length.name: steps[length.name] * length.step for length in lengths}
    sized = SizedGraph(read_graph(program.module))
    kernels = dict(design.kernels)
    for operation in sized.graph.operations:
        if (kernel := kernels.get(operation.layer)) is not None:
            whole = zip(kernel.tile, operation.trips, sized.of_loops(operation), strict=True)
            tile = tuple(count.at(sizes) if count and n == trip else n for n, trip, count in whole)
            kernels[operation.layer] = replace(kernel, tile=tile)
    return resized(program, sizes), replace(design, kernels=kernels)


def _lower(program: Program, design: Design) -> Lowered:
    if level_of(program.module) == "tasks":
        streams = last_stage(program.module, task_passes(design))
        return Lowered(program, design, program.module, streams, program)
    padded, itensor = _tiled(program, design)
    return Lowered(program, design, itensor, last_stage(itensor, stream_passes(design)), padded)


def _tiled(program: Program, design: Design) -> tuple[Program, ModuleOp]:
    """The program as it is tiled, and its itensor level."""
    padded = PadDims(design).run(program)
    return padded, last_stage(padded.module, itensor_passes(design))


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(tensor_type(value).get_shape())


def _content(arrays: Sequence[Array]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
