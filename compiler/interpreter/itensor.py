"""Executes an itensor kernel: every stream is an array of slices, every task runs in its scheduled order.

A task takes each operand's slices off its stream by the stream's type, accumulates in the order of its
reduction loops (lanes as a tree), and cuts its result into slices by the result's type. Floats come out
exactly as in the levels below.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from penstock.compiler.analysis.loops import LoopPlan
from penstock.compiler.analysis.tasks import split_reduction, starts_neutral, task_plan
from penstock.compiler.arrays import Array
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.affine import projected_dims
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.dialects.itensor_types import unpack as numbers
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.interpreter.lanes import run_body, spread, tree
from penstock.compiler.interpreter.slices import cut, join
from penstock.compiler.interpreter.windows import slide
from penstock.compiler.layout import pack, unpack
from penstock.compiler.scalars.number_types import numpy_dtype

Observer = Callable[[str, Array], None]


def run(module: ModuleOp, arguments: Sequence[Array], observe: Observer | None = None) -> list[Array]:
    """Run @main of an itensor module on all its arguments, inputs and parameters alike, as they lie in memory.

    `observe` is called with the name of every task and the whole tensor that it computes.
    """
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    tensors: dict[SSAValue, Array] = dict(zip(function.body.block.args, arguments, strict=True))
    for op in function.body.block.ops:
        if isinstance(op, itensor.KernelOp):
            results = _run_kernel(op, [tensors[v] for v in op.sources], observe)
            tensors |= dict(zip(op.outputs, results, strict=True))
    terminator = function.body.block.last_op
    assert terminator is not None
    return [tensors[v] for v in terminator.operands]


def _run_kernel(kernel: itensor.KernelOp, sources: Sequence[Array], observe: Observer | None) -> list[Array]:
    tensors: dict[SSAValue, Array] = dict(zip(kernel.body.block.args, sources, strict=True))
    streams: dict[SSAValue, Array] = {}
    for op in kernel.body.block.ops:
        _step(op, tensors, streams, observe)
    terminator = kernel.body.block.last_op
    assert terminator is not None
    return [tensors[v] for v in terminator.operands]


def _step(
    op: Operation, tensors: dict[SSAValue, Array], streams: dict[SSAValue, Array], observe: Observer | None
) -> None:
    match op:
        case itensor.LoadOp():
            kind, source = _kind(op.result), tensors[op.source]
            streams[op.result] = cut(unpack(source, op.layout.layout, kind.data_shape()) if op.layout else source, kind)
        case itensor.StoreOp():
            whole = join(streams.pop(op.source), _kind(op.source), op.sym_name.data)
            tensors[op.result] = pack(whole, op.layout.layout) if op.layout else whole
        case itensor.ConverterOp():
            whole = join(streams.pop(op.source), _kind(op.source), op.sym_name.data)
            streams[op.result] = cut(whole, _kind(op.result))
        case itensor.ForkOp():
            slices = streams.pop(op.source)
            for copy in op.copies:
                streams[copy] = slices
        case itensor.ChunkOp():
            whole = join(streams.pop(op.source), _kind(op.source), op.sym_name.data)
            for start, part in zip(numbers(op.starts), op.parts, strict=True):
                size = _kind(part).data_shape()[op.dim.data]
                window = [slice(None)] * whole.ndim
                window[op.dim.data] = slice(start, start + size)
                streams[part] = cut(whole[tuple(window)], _kind(part))
        case itensor.ConcatOp():
            parts = [join(streams.pop(s), _kind(s), op.sym_name.data) for s in op.sources]
            streams[op.result] = cut(np.concatenate(parts, axis=op.dim.data), _kind(op.result))
        case itensor.ReassociateOp():
            slices = streams.pop(op.source)
            streams[op.result] = slices.reshape(len(slices), *_kind(op.result).element_shape)
        case SlideOp():
            whole = join(streams.pop(op.source), _kind(op.source), str(op.sym_name))
            streams[op.result] = cut(slide(whole, op), _kind(op.result))
        case itensor.TaskOp():
            operands = [
                tensors[v] if isinstance(v.type, TensorType) else join(streams.pop(v), _kind(v), op.sym_name.data)
                for v in op.operands_
            ]
            whole = _task(op, operands)
            if observe is not None:
                observe(op.sym_name.data, whole)
            streams[op.result] = cut(whole, _kind(op.result))
        case _:
            pass


def _task(task: itensor.TaskOp, operands: list[Array]) -> Array:
    plan, maps = task_plan(task), task.maps
    shape = [plan.trips[d] if d is not None else 1 for d in projected_dims(maps[-1])]
    ranks = len(plan.trips)
    places = {d: np.arange(t).reshape([t if at == d else 1 for at in range(ranks)]) for d, t in enumerate(plan.trips)}
    if task.init is None:
        spaced = [spread(v, m) for v, m in zip(operands, maps[:-1], strict=True)]
        value = np.broadcast_to(run_body(task.body.block, spaced, places), plan.trips)
        return _gather(value, plan, maps[-1], shape)
    combine, partial = (region.block for region in split_reduction(task.body.block, task.sym_name.data))
    init = task.init
    start = cast(Any, init).value.data
    total = np.full([1 if d in plan.reductions else t for d, t in enumerate(plan.trips)], start, _result_dtype(task))
    spaced = [spread(v, m) for v, m in zip(operands, maps[:-1], strict=True)]
    windows = _reduction_windows(plan)
    for window in windows:
        here = {d: _narrow(place, window) for d, place in places.items()}
        products = run_body(partial, [_narrow(v, window) for v in spaced], here)
        products = np.broadcast_to(products, [_extent(plan, d, window) for d in range(len(plan.trips))])
        for axis in sorted(plan.reductions):
            products = tree(combine, products, axis)
        first = len(windows) == 1 and starts_neutral(combine, init)
        total = products if first else run_body(combine, [total, products])
    return _gather(total, plan, maps[-1], shape)


def _reduction_windows(plan: LoopPlan) -> list[dict[int, slice]]:
    """For every step of the reduction loops, in order: which part of each reduction dim it covers."""
    steps = [s for s in plan.steps if s.dim in plan.reductions]
    windows: list[dict[int, slice]] = []
    for counters in itertools.product(*(range(s.trip) for s in steps)):
        start = dict.fromkeys(plan.reductions, 0)
        for counter, step in zip(counters, steps, strict=True):
            start[step.dim] += counter * step.stride
        windows.append({d: slice(at, at + plan.unroll[d]) for d, at in start.items()})
    return windows


def _narrow(value: Array, window: dict[int, slice]) -> Array:
    index = [window.get(d, slice(None)) if extent > 1 else slice(None) for d, extent in enumerate(value.shape)]
    return value[tuple(index)]


def _extent(plan: LoopPlan, dim: int, window: dict[int, slice]) -> int:
    return window[dim].stop - window[dim].start if dim in window else plan.trips[dim]


def _gather(value: Array, plan: LoopPlan, result_map: Any, shape: list[int]) -> Array:
    """From the iteration space (reductions at extent 1) to the result's own dims."""
    dims = [d for d in projected_dims(result_map) if d is not None]
    others = tuple(d for d in range(len(plan.trips)) if d not in dims)
    kept = np.squeeze(value, axis=others) if others else value
    order = np.argsort(np.argsort(dims))
    return np.transpose(kept, order).reshape(shape)


def _kind(value: SSAValue) -> ITensorType:
    assert isinstance(value.type, ITensorType)
    return value.type


def _result_dtype(task: itensor.TaskOp) -> Any:
    return numpy_dtype(_kind(task.result).dtype)
