"""Joins chains of elementwise operations into one, where nothing is computed twice by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr, AffineMap

from penstock.compiler.interpreter.linalg import trip_counts
from penstock.compiler.transforms.drop_unused_operands import drop_unused_operands
from penstock.compiler.transforms.editor import LAYER, Editor, layer_of
from penstock.compiler.transforms.generics import (
    PARALLEL,
    body_ops,
    build_generic,
    is_elementwise,
    iterators_of,
    maps_of,
    replace,
    yielded,
)
from penstock.compiler.transforms.rewrite import Rewrite
from penstock.compiler.transforms.simplify_bodies import simplify_body


@dataclass(frozen=True)
class FuseElementwise(Rewrite):
    """The cost rule: a producer is fused if it has one reader, an elementwise one that reads each of its elements
    exactly once. So no work is repeated, nothing enters a reduction's loop, and no stream gets longer.
    """

    name: ClassVar[str] = "fuse-elementwise"

    max_operands: int = 8
    """Streams that one task reads; more make placing and FIFO sizing hard for no gain."""

    def rewrite(self, editor: Editor) -> None:
        changed = True
        while changed:
            changed = False
            for consumer in editor.generics():
                changed |= self._fuse_into(editor, consumer)

    def _fuse_into(self, editor: Editor, consumer: linalg.GenericOp) -> bool:
        for index, value in enumerate(consumer.inputs):
            producer = value.owner
            if isinstance(producer, linalg.GenericOp) and self._may_fuse(producer, consumer, index):
                fused = _fuse(editor, producer, consumer, index)
                simplify_body(fused)
                drop_unused_operands(fused)
                return True
        return False

    def _may_fuse(self, producer: linalg.GenericOp, consumer: linalg.GenericOp, index: int) -> bool:
        if not is_elementwise(producer) or not is_elementwise(consumer):
            return False
        if producer.results[0].uses.get_length() != 1:
            return False
        if len(producer.inputs) + len(consumer.inputs) - 1 > self.max_operands:
            return False
        loops = {d for d, trip in enumerate(trip_counts(consumer)) if trip > 1}
        return loops <= maps_of(consumer)[index].used_dims() and _visits_once(producer)


def _visits_once(op: linalg.GenericOp) -> bool:
    """Whether each loop of more than one turn is a dimension of the result."""
    written = maps_of(op)[-1]
    dims = [result.position for result in written.results if isinstance(result, AffineDimExpr)]
    alone = len(set(dims)) == len(dims) == len(written.results)
    return alone and all(trip == 1 for loop, trip in enumerate(trip_counts(op)) if loop not in dims)


def _fuse(editor: Editor, producer: linalg.GenericOp, consumer: linalg.GenericOp, index: int) -> linalg.GenericOp:
    producer_maps, consumer_maps = maps_of(producer), maps_of(consumer)
    loops, own = consumer_maps[index].num_dims, len(trip_counts(producer))
    written = {r.position: p for p, r in enumerate(producer_maps[-1].results) if isinstance(r, AffineDimExpr)}
    single = [loop for loop in range(own) if loop not in written]  # of one turn, which the consumer takes over
    consumer_maps = [AffineMap(loops + len(single), 0, layout.results) for layout in consumer_maps]
    read = consumer_maps[index].results
    turns = [
        read[written[loop]] if loop in written else AffineDimExpr(loops + single.index(loop)) for loop in range(own)
    ]
    to_producer = AffineMap(loops + len(single), 0, tuple(turns))
    inputs = [*consumer.inputs[:index], *producer.inputs, *consumer.inputs[index + 1 :]]
    maps = [
        *consumer_maps[:index],
        *(layout.compose(to_producer) for layout in producer_maps[:-1]),
        *consumer_maps[index + 1 :],
    ]
    layer = _fused_name(editor, producer, consumer)
    editor.say_joined(layer, (layer_of(producer), layer_of(consumer)))
    block = consumer.body.detach_block(0)
    replaced = block.args[index]
    arguments = [
        block.insert_arg(argument.type, index + 1 + offset)
        for offset, argument in enumerate(producer.body.block.args[:-1])
    ]
    for own, argument in zip(producer.body.block.args, arguments, strict=False):
        own.replace_all_uses_with(argument)
    first = block.first_op
    assert first is not None
    for op in body_ops(producer):  # moved: nobody else reads the producer
        op.detach()
        block.insert_op_before(op, first)
    replaced.replace_all_uses_with(yielded(producer))
    block.erase_arg(replaced)
    iterators = [*iterators_of(consumer), *[PARALLEL] * len(single)]
    fused = build_generic(inputs, consumer.outputs[0], maps, iterators, block, layer)
    fused.attributes[LAYER] = StringAttr(layer)
    replace(consumer, [fused])
    editor.remove_unread(producer)
    return fused


def _fused_name(editor: Editor, producer: linalg.GenericOp, consumer: linalg.GenericOp) -> str:
    """The place of the first operation with the name of the last: fc1.bias and 1.relu give fc1.relu."""
    first, last = layer_of(producer), layer_of(consumer)
    place, dot, _ = first.rpartition(".")
    kind = re.sub(r"_\d+$", "", last.rpartition(".")[2])
    name = f"{place if dot else first}.{kind}"
    return editor.free_layer(name, leaving={first, last})
