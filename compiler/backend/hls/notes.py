"""What the C++ says in words: a head over each function, and a table of the tasks at the top of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.backend.hls.lines import word_type
from penstock.compiler.backend.hls.token_cpp import pieces
from penstock.compiler.design import Design
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.directives import pipeline_of
from penstock.compiler.dialects.injected import injected_of
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.plan.names import CHUNK, CONCAT, CONVERT, FORK, PACK, UNPACK
from penstock.compiler.scalars.operations import is_scalar_op

Notes = Mapping[str, tuple[str, ...]]
"""For each layer, lines that say what it computes and how the design walks it."""

_MOVERS = {
    CONVERT: "Reorders {}, as its reader wants it",
    UNPACK: "Cuts the words of {} into slices",
    PACK: "Puts slices of {} together to words",
    FORK: "Copies {} for each of its readers",
    CHUNK: "Cuts {} in parts",
    CONCAT: "Joins {} and others",
}
"""By what the names of parts begin with that only move data."""
_HALVES = {"write": "fills blocks", "fetch": "fills blocks", "read": "empties blocks", "drain": "empties blocks"}

LEGEND = (
    "// Loops: t0, t1 ... step over tiles of a layer's dims d0, d1 ...; p0, p1 ... over points of a tile; l0, l1 ...",
    "// are lanes and run in parallel; w0 ... walk a stream, s0 ... over blocks that two tasks hand over.",
    "// Memories: keep_i holds operand i for its next use, acc holds partial results, line holds one",
    "// word or slice while it is put together or cut up.",
)


def layer_notes(graph: Graph, design: Design) -> dict[str, tuple[str, ...]]:
    """Notes from the model's own operations and the design's decisions."""
    made_by: dict[SSAValue, str] = {a: graph.name(a) for a in graph.arguments}
    made_by |= {operation.result: operation.layer for operation in graph.operations}
    return {o.layer: (_meaning(o, made_by), _walk(o, design)) for o in graph.operations}


def _meaning(operation: TensorOp, made_by: Mapping[SSAValue, str]) -> str:
    operands = [
        f"{made_by.get(value, 'part')}[{_index(layout.results)}]"
        for value, layout in zip(operation.op.inputs, operation.operand_maps, strict=True)
    ]
    steps = [op.name.split(".")[1] for op in operation.op.body.block.ops if is_scalar_op(op)]
    work = ", ".join(dict.fromkeys(step for step in steps if step != "constant")) or "copy"
    over = ", ".join(f"d{d}" for d in operation.reductions)
    reduced = f", accumulated over {over}" if over else ""
    return f"[{_index(operation.result_map.results)}] = {work} of {', '.join(operands)}{reduced}"


def _walk(operation: TensorOp, design: Design) -> str:
    kind, kernel = tensor_type(operation.result), design.kernels[operation.layer]
    dims = ", ".join(f"d{d} = {trip}" for d, trip in enumerate(operation.trips))
    shape = "x".join(str(n) for n in kind.get_shape())
    order = " ".join(f"t{d}" for d in kernel.order)
    return (
        f"{dims}; result {shape}x{kind.element_type}; tile {_times(kernel.tile)}, lanes {_times(kernel.unroll)}, "
        f"tile loops {order}"
    )


def task_head(
    task: stream.TaskOp, used: Sequence[SSAValue], names: Mapping[SSAValue, str], notes: Notes, die: str | None = None
) -> list[str]:
    """The comment over a task's function."""
    layer = task.layer.data
    lines = [f"// {_title(task)}"]
    computes = any(op.sym_name.data == "compute" for op in _nests(task))
    lines += [f"//   {line}" for line in notes.get(layer, ())] if computes else []
    for op in _nests(task):
        lines.append(f"//   {_slots(op)} at II = {pipeline_of(op).ii.data}")
    if (body := injected_of(task.injected)) is not None:
        lines.append(
            f"//   its body {body.name} was written by hand" if body.language == "cpp"
            else f"//   hardware has the module {body.symbol} (body {body.name}, by hand); here what it has to answer"
        )  # fmt: skip
    reads, writes = ends(task, used)
    ways = [
        f"{way} {', '.join(_channel(v, names) for v in some)}"
        for way, some in (("reads", reads), ("writes", writes))
        if some
    ]
    lines += [f"//   {'; '.join(ways)}"] if ways else []
    return [*lines, f"//   stands on die {die}"] if die is not None else lines


def _slots(op: nest.NestOp) -> str:
    """What one run of a task has; every block begins anew, once the pipeline is empty."""
    blocks = prod(op.trips[: op.block_loops.data])
    count = op.iterations // blocks
    slots = f"{count} slots" if count > 1 else "1 slot"
    return f"{blocks} blocks of {slots}" if blocks > 1 else slots


def _title(task: stream.TaskOp) -> str:
    """What kind of task it is: those that move data have the name of what they move behind what they do."""
    layer, kinds = task.layer.data, {op.sym_name.data for op in _nests(task)}
    mover = next((start for start in _MOVERS if layer.startswith(start)), None)
    if "compute" not in kinds and mover is not None:
        what = layer.removeprefix(mover)
        half = next((f" ({text})" for kind, text in _HALVES.items() if kind in kinds), "")
        named = f"output {what}" if what.isdigit() else what
        return f"{_MOVERS[mover].format(named)}{half}"
    if "load" in kinds or "store" in kinds:
        return f"{'Loads' if 'load' in kinds else 'Stores'} {layer}"
    own = any(kind.startswith("run") for kind in kinds)  # of a program that says its tasks itself
    return f"{'Task' if own else 'Layer'} {layer}"


def task_table(
    tasks: Sequence[stream.TaskOp], used: Mapping[stream.TaskOp, Sequence[SSAValue]], names: Mapping[SSAValue, str]
) -> list[str]:
    """Every task: its function, its layer, how long it takes if it never waits, and what it reads and writes."""
    rows = [("task", "layer", "slots", "II", "reads", "writes")]
    for task in tasks:
        reads, writes = ends(task, used[task])
        slots = sum(op.iterations for op in _nests(task))
        ii = max((pipeline_of(op).ii.data for op in _nests(task)), default=1)
        rows.append((
            task.sym_name.data, task.layer.data, str(slots), str(ii),
            " ".join(names[v] for v in reads) or "-", " ".join(names[v] for v in writes) or "-",
        ))  # fmt: skip
    widths = [min(40, max(len(row[column]) for row in rows)) for column in range(5)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, [*widths, 0], strict=True)).rstrip() for row in rows]
    return [f"//   {line}" for line in lines]


def ends(task: stream.TaskOp, used: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
    """Of the channels and memories that a task touches, what it reads and what it writes."""
    writing = {
        operand
        for op in task.walk() if isinstance(op, nest.WriteOp | nest.StoreOp)
        for operand in (op.stream if isinstance(op, nest.WriteOp) else op.memory,)
    }  # fmt: skip
    return [v for v in used if v not in writing], [v for v in used if v in writing]


def _channel(value: SSAValue, names: Mapping[SSAValue, str]) -> str:
    if isinstance(value.type, stream.StreamType):
        lanes = prod(value.type.token.get_shape())
        scalar = word_type(value.type.token).removeprefix("hls::vector<").split(",")[0]
        cut = pieces(value.type.token)
        side_by_side = f" in {cut.count} pieces" if cut.count > 1 else ""
        return f"{names[value]} ({lanes} x {scalar}{side_by_side})" if lanes > 1 else f"{names[value]} ({scalar})"
    return names[value]


def _nests(task: stream.TaskOp) -> list[nest.NestOp]:
    return [op for op in task.body.block.ops if isinstance(op, nest.NestOp)]


def _index(results: Sequence[object]) -> str:
    return ", ".join(str(e) for e in results)


def _times(shape: Sequence[int]) -> str:
    return " x ".join(str(n) for n in shape) or "1"
