"""Simple named linalg operations as linalg.generic, which is all that the passes know."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.hints import isa

_STRUCTURED = (
    linalg.AddOp, linalg.CopyOp, linalg.ExpOp, linalg.LogOp, linalg.MatmulOp, linalg.MaxOp, linalg.MinOp,
    linalg.MulOp, linalg.SelectOp, linalg.SqrtOp, linalg.SubOp, linalg.TransposeOp,
)  # fmt: skip
GENERALISED = (*_STRUCTURED, linalg.BroadcastOp, linalg.ReduceOp)


def generalise(op: Operation) -> None:
    """Replace one of `GENERALISED` by the generic that means the same; its value keeps its name."""
    match op:
        case linalg.BroadcastOp():
            rank, added = _rank(op.init), set(op.dimensions.get_values())
            kept = [d for d in range(rank) if d not in added]
            _replace(op, [op.input], [op.init], [kept, list(range(rank))], set(), op.hidden_region)
        case linalg.ReduceOp():
            rank, summed = _rank(op.input), set(op.dimensions.get_values())
            kept = [d for d in range(rank) if d not in summed]
            _replace(op, [op.input], [op.init], [list(range(rank)), kept], summed, op.region)
        case _:
            assert isinstance(op, _STRUCTURED)
            maps, kinds = op.get_indexing_maps(), op.get_iterator_types()
            _put(op, list(op.inputs), list(op.outputs), maps, kinds, op.body)


def _replace(
    op: Operation, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], dims: list[list[int]], summed: set[int],
    body: Region,
) -> None:  # fmt: skip
    rank = max(map(len, dims))
    maps = ArrayAttr(AffineMapAttr(AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in one))) for one in dims)
    kinds = ArrayAttr(IteratorTypeAttr.reduction() if d in summed else IteratorTypeAttr.parallel() for d in range(rank))
    _put(op, inputs, outputs, maps, kinds, body)


def _put(
    op: Operation, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], maps: ArrayAttr[AffineMapAttr],
    kinds: ArrayAttr[IteratorTypeAttr], body: Region,
) -> None:  # fmt: skip
    generic = linalg.GenericOp(
        inputs, outputs, body.clone(), maps, kinds, result_types=[result.type for result in op.results]
    )
    generic.attributes.update(op.attributes)
    block = op.parent
    assert block is not None
    block.insert_op_before(generic, op)
    for old, new in zip(op.results, generic.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def _rank(value: SSAValue) -> int:
    assert isa(value.type, TensorType)
    return len(value.type.get_shape())
