"""Lays out the windows that operations read, so that convolutions and poolings become contractions and reductions.

An operand that is indexed by two loops at once, `row * 2 + place`, becomes one of all its windows, which has a dim for
each of the two. `window.slide` makes it, one dim after the other, and takes over the padding of a `tensor.pad` before
it: no padded tensor is ever stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.utils.hints import isa

from penstock.compiler.dialects.affine import linear_form
from penstock.compiler.dialects.window import Slide, SlideOp
from penstock.compiler.transforms.editor import LAYER, Editor, shape_of, tensor_of
from penstock.compiler.transforms.generics import REDUCTION, constant, iterators_of, maps_of, rebuild
from penstock.compiler.transforms.reshapes import reshape
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class RaiseWindows(Rewrite):
    """What is indexed otherwise than by windows is left as it is: another pass refuses it by name."""

    name: ClassVar[str] = "raise-windows"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            if any(not _is_plain(expr) for layout in maps_of(op) for expr in layout.results):
                _raise(op)


@dataclass(frozen=True)
class _Frame:
    """A tensor and what lies around it."""

    source: SSAValue
    low: tuple[int, ...]
    high: tuple[int, ...]
    fill: Attribute | None

    @staticmethod
    def of(value: SSAValue, *, zero: Attribute) -> _Frame:
        """What is padded comes with its padding apart, also where dims are split that have none: those of groups."""
        if isinstance(value.owner, tensor.ExpandShapeOp):
            inner = _Frame.of(value.owner.src, zero=zero)
            return _expanded(value, inner) or _Frame.plain(value, zero)
        pad = value.owner
        if isinstance(pad, tensor.PadOp) and not pad.low and not pad.high:
            inside: Any = pad.region.block.last_op
            constant = inside.operands[0].owner
            amounts = tuple(pad.static_low.get_values()), tuple(pad.static_high.get_values())
            if isinstance(constant, arith.ConstantOp) and min(*amounts[0], *amounts[1]) >= 0:
                return _Frame(pad.source, *amounts, constant.value)
        return _Frame.plain(value, zero)

    @staticmethod
    def plain(value: SSAValue, zero: Attribute) -> _Frame:
        rank = len(shape_of(value))
        return _Frame(value, (0,) * rank, (0,) * rank, zero)


def _expanded(value: SSAValue, inner: _Frame) -> _Frame | None:
    """A frame whose dims are split as those of its padded form were."""
    op = value.owner
    assert isinstance(op, tensor.ExpandShapeOp)
    if inner.source is op.src:
        return None
    shape, low, high = list(shape_of(value)), [0] * len(shape_of(value)), [0] * len(shape_of(value))
    groups: Any = op.reassociation
    for dim, group in enumerate(groups):
        places = [place.value.data for place in group]
        if inner.low[dim] or inner.high[dim]:
            if len(places) > 1:
                return None
            low[places[0]], high[places[0]] = inner.low[dim], inner.high[dim]
            shape[places[0]] = shape_of(inner.source)[dim]
    split = reshape(inner.source, tuple(shape))
    block = op.parent
    assert block is not None
    block.insert_op_before(split, op)
    return _Frame(split.results[0], tuple(low), tuple(high), inner.fill)


def _raise(op: linalg.GenericOp) -> None:
    maps, trips = maps_of(op), _trips(op)
    inputs, layouts = list(op.inputs), maps[: len(op.inputs)]
    for index, (value, layout) in enumerate(zip(op.inputs, layouts, strict=True)):
        if all(_is_plain(expr) for expr in layout.results):
            continue
        found = _windows(op, value, layout, trips)
        if found is None:
            return
        inputs[index], layouts[index] = found
    rebuild(op, inputs=inputs, maps=[*layouts, *maps[len(op.inputs) :]])


def _windows(
    op: linalg.GenericOp, value: SSAValue, layout: AffineMap, trips: Sequence[int | None]
) -> tuple[SSAValue, AffineMap] | None:
    """The windows that an operand's index takes from it, and their index: plain dims."""
    element: Any = value.type
    frame = _Frame.of(value, zero=_zero(element.element_type))
    source, plain, places = frame.source, list[AffineExpr](), list[AffineExpr]()
    new: list[SlideOp] = []
    for dim, expr in enumerate(layout.results):
        terms = _terms(expr, layout.num_dims, trips, op)
        if terms is None or frame.fill is None:
            return None
        (outer, step), (inner, apart) = terms
        count, size = trips[outer] if outer is not None else 1, trips[inner] if inner is not None else 1
        assert count is not None
        assert size is not None
        extent = shape_of(source)[dim]
        by = Slide(dim, count, size, step, apart, frame.low[dim])
        loops = [AffineConstantExpr(0) if loop is None else AffineDimExpr(loop) for loop in (outer, inner)]
        padded = bool(frame.low[dim] or frame.high[dim])
        if not padded and size == 1 and (step == 1 or count == 1) and count == extent:
            plain.append(loops[0])
        elif not padded and count == 1 and apart == 1 and size == extent:
            plain.append(loops[1])
        else:
            new.append(SlideOp(source, by, frame.fill, tensor_of(by.shape(shape_of(source)), element.element_type)))
            source = new[-1].result
            plain.append(loops[0])
            places += loops[1:] if size > 1 else []
    for one in new:
        one.attributes.update({LAYER: op.attributes[LAYER]} if LAYER in op.attributes else {})
    assert op.parent is not None
    op.parent.insert_ops_before(new, op)
    return source, AffineMap(layout.num_dims, 0, (*plain, *places))


Driven = tuple[int | None, int]
"""A loop, or none, and by how many elements a trip of it moves."""


def _terms(
    expr: AffineExpr, loops: int, trips: Sequence[int | None], op: linalg.GenericOp
) -> tuple[Driven, Driven] | None:
    """The loop that goes from window to window, and the one that goes through a window."""
    factors, offset = linear_form(expr, loops)
    moving = [(loop, factor) for loop, factor in enumerate(factors) if factor and trips[loop] != 1]
    if offset or len(moving) > 2 or any(f < 0 or trips[loop] is None for loop, f in moving):
        return None
    reduced = [loop for loop, kind in enumerate(iterators_of(op)) if kind == REDUCTION]
    across = [one for one in moving if one[0] not in reduced]
    inside = [one for one in moving if one[0] in reduced]
    if len(across) == 2 and not inside:
        across, inside = across[:1], across[1:]
    if len(across) > 1 or len(inside) > 1:
        return None
    none: Driven = (None, 1)
    if not across and not inside:  # one trip: its loop stays, since something must count the dim
        used = sorted(expr.used_dims())
        return ((used[0], 1) if used else none), none
    if not across and inside and not any(factors[loop] for loop in range(loops) if loop not in reduced):
        return inside[0], none
    return (across[0] if across else none), (inside[0] if inside else none)


def _trips(op: linalg.GenericOp) -> list[int | None]:
    """Of the loops that some operand or the result is indexed by alone."""
    trips: list[int | None] = [None] * len(op.iterator_types)
    for value, layout in zip(op.operands, maps_of(op), strict=True):
        if isa(value.type, TensorType):
            for size, expr in zip(shape_of(value), layout.results, strict=True):
                if isinstance(expr, AffineDimExpr):
                    trips[expr.position] = size
    return trips


def _is_plain(expr: AffineExpr) -> bool:
    return isinstance(expr, AffineDimExpr) or expr == AffineConstantExpr(0)


def _zero(kind: Attribute) -> Attribute:
    """Of a type: what padding is that nobody reads."""
    return constant(0, kind).value
