"""The nests of a part: what it becomes one level below, between the FIFOs and memories that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from penstock.compiler.analysis.nests import NestFacts, Place, PlaceKind
from penstock.compiler.plan.compute_nest import Source, build_compute_nest
from penstock.compiler.plan.converter_nests import PartNests, Process, build_converter
from penstock.compiler.plan.dma_nests import build_load, build_store
from penstock.compiler.plan.part_nests import Range, build_chunk, build_concat
from penstock.compiler.plan.parts import (
    Chunking,
    Computing,
    Concatenating,
    Converting,
    Does,
    Forking,
    Loading,
    Order,
    Reshaping,
    Sliding,
    Storing,
)
from penstock.compiler.plan.slide_nests import build_slide


def build_part(
    name: str, does: Does, inputs: Sequence[Place], outputs: Sequence[Sequence[Place]], memories: Sequence[Place]
) -> PartNests:
    """From the FIFOs of its inputs, and of the readers of each output. `memories` are those of its tensors."""
    match does:
        case Loading(transfer):
            return build_load(name, transfer, memories, outputs[0])
        case Storing(transfer):
            return build_store(name, transfer, memories[0], inputs[0])
        case Converting(source, target):
            return build_converter(name, (source.kind, target.kind), inputs[0], outputs[0])
        case Chunking():
            sizes = _sizes(does.makes, does.dim)
            parts = [Range(*one) for one in zip(does.starts, sizes, outputs, strict=True)]
            return _alone(build_chunk(does.whole.kind, does.dim, inputs[0], parts))
        case Concatenating():
            sizes = _sizes(does.parts, does.dim)
            starts = accumulate(sizes[:-1], initial=0)
            parts = [Range(start, size, [fifo]) for start, size, fifo in zip(starts, sizes, inputs, strict=True)]
            return _alone(build_concat(does.whole.kind, does.dim, parts, outputs[0]))
        case Sliding(by, fill, source, target):
            return _alone(build_slide((source.kind, target.kind), by, fill, inputs[0], outputs[0]))
        case Computing():
            fifos, roms = iter(inputs), iter(memories)
            sources = [
                Source(next(roms)) if order is None else Source(next(fifos), reread)
                for order, reread in zip(does.operands, does.reread, strict=True)
            ]
            bindings = dict(does.bindings)
            nest = build_compute_nest(does.computation, does.plan, sources, outputs[0], bindings, does.interval)
            return _alone(nest)
        case Forking() | Reshaping():
            return PartNests(())


def fifo(name: str, order: Order) -> Place:
    """The FIFO that a stream of that order becomes."""
    return Place(name, "stream", order.kind.element_shape, order.kind.dtype)


def memory(name: str, kind: PlaceKind, tensor: TensorType[Attribute]) -> Place:
    """Where a tensor lies."""
    return Place(name, kind, tensor.get_shape(), tensor.element_type)


def roms(does: Computing, parameters: Sequence[str] = ()) -> list[Place]:
    """The memories of the parameters that lie on the chip, after the places of these among the operands."""
    positions = [index for index, order in enumerate(does.operands) if order is None]
    names = parameters or [""] * len(positions)
    return [
        Place(f"rom_{index}", "rom", tensor.get_shape(), tensor.element_type, name)
        for index, tensor, name in zip(positions, does.tensors, names, strict=True)
    ]


def _sizes(orders: Sequence[Order], dim: int) -> list[int]:
    return [order.kind.data_shape()[dim] for order in orders]


def _alone(facts: NestFacts) -> PartNests:
    return PartNests((Process("", facts),))
