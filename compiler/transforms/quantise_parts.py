"""What only moves data, after quantisation: whatever is cut from, joined to or reshaped to each other has one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.transforms.editor import Editor, shape_of, tensor_of
from penstock.compiler.transforms.parts import bounds, concat_along, cut_dims, dim_behind, moves_data, slice_along
from penstock.compiler.transforms.quantise_reductions import I8
from penstock.compiler.transforms.quantiser import Code, Quantiser
from penstock.compiler.transforms.reshapes import reshape


def share_ranges(editor: Editor, ranges: dict[SSAValue, float]) -> None:
    """Give tensors that are linked by slices, concatenations and reshapes the largest range among them.

    So their integers can be cut and joined as they are: the scales are made equal where the values are computed.
    """
    linked: nx.Graph[SSAValue] = nx.Graph()
    for op in editor.block.ops:
        if moves_data(op):
            linked.add_edges_from((source, op.results[0]) for source in op.operands)
    for family in nx.connected_components(linked):
        largest = max(ranges.get(value, 0.0) for value in family)
        ranges.update(dict.fromkeys(family, largest))


def quantise_parts(state: Quantiser, op: Operation) -> None:
    sources = [state.values[source] for source in op.operands]
    codes = [code for code in (state.codes[source] for source in sources) if code is not None]
    assert len(codes) == len(sources), "what is cut or joined is narrowed first: insert_requantise"
    scale = _scale_behind(op, codes)
    code = Code(scale, max(code.bound for code in codes), 8, codes[0].left_out)
    if isinstance(op, tensor.ExtractSliceOp):
        (dim,) = cut_dims(op)
        new: Operation = slice_along(sources[0], dim, bounds(op)[0][dim], bounds(op)[1][dim], op)
    elif isinstance(op, tensor.ConcatOp):
        new = concat_along(sources, op.dim.value.data, op)
    elif isinstance(op, SlideOp):
        fill: Any = op.fill
        lowest = np.clip(np.rint(fill.value.data / float(np.min(codes[0].scale))), -code.bound, code.bound)
        kind = tensor_of(shape_of(op.result), I8)
        new = SlideOp(sources[0], op.by.data, IntegerAttr(int(lowest), I8), kind)
        new.attributes.update(op.attributes)
    else:
        new = reshape(sources[0], shape_of(op.results[0]))
        new.attributes.update(op.attributes)
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    state.values[op.results[0]] = new.results[0]
    state.codes[new.results[0]] = code


def _scale_behind(op: Operation, codes: Sequence[Code]) -> Array:
    shape = [1] * len(shape_of(op.results[0]))
    whole = codes[0].scale
    if (own := codes[0].channel_dim) is not None:
        dim = dim_behind(op, own)
        assert len(codes) == 1, "even_channels sees to it"
        assert dim is not None, "even_channels sees to it"
        shape[dim] = whole.size
        return whole.reshape(shape)
    assert len({float(scale) for code in codes for scale in code.scale.flat}) == 1, "one scale: share_ranges"
    return whole.flat[0].reshape(shape)  # a reshape has other dimensions
