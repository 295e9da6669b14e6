"""The type of a stream whose order is known, and how a task walks its dims."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntAttr, TensorType, VectorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.affine import coefficients, evaluate_map
from penstock.compiler.layout import Layout


def ints(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    return _ints(tuple(values))


@lru_cache(maxsize=1 << 14)
def _ints(values: tuple[int, ...]) -> ArrayAttr[IntAttr]:
    return ArrayAttr([IntAttr(v) for v in values])


@lru_cache(maxsize=1 << 14)
def _slice(shape: tuple[int, ...], dtype: Attribute) -> TensorType:
    return TensorType(dtype, list(shape))


def expect_itensor(value: SSAValue) -> ITensorType:
    """The type of a stream; whatever else the value is, is named."""
    if not isinstance(value.type, ITensorType):
        raise VerifyException(f"{value.type} is not an itensor")
    return value.type


def unpack(array: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    return tuple(i.data for i in array)


@lru_cache(maxsize=1 << 14)
def _made(
    shape: tuple[int, ...], dtype: Attribute, trips: tuple[int, ...], steps: tuple[int, ...], iter_map: AffineMap
) -> ITensorType:
    """A search over designs asks for the same types again and again; one that exists is verified already."""
    return ITensorType(_slice(shape, dtype), ints(trips), ints(steps), AffineMapAttr(iter_map))


@irdl_attr_definition
class ITensorType(ParametrizedAttribute, TypeAttribute):
    """A stream of slices: `element` is the slice, `trips`*`steps` the iteration space, `iter_map` where it lies.

    A loop that no data dimension uses reads the slices below it again. Steps smaller than the
    element overlap: a sliding window.
    """

    name = "itensor.itensor"
    element: TensorType
    trips: ArrayAttr[IntAttr]
    steps: ArrayAttr[IntAttr]
    iter_map: AffineMapAttr

    @staticmethod
    def of(
        shape: Sequence[int],
        dtype: Attribute,
        trips: Sequence[int],
        steps: Sequence[int],
        iter_map: AffineMap,
    ) -> ITensorType:
        return _made(tuple(shape), dtype, tuple(trips), tuple(steps), iter_map)

    @property
    def element_shape(self) -> tuple[int, ...]:
        return tuple(self.element.get_shape())

    @property
    def dtype(self) -> Attribute:
        return self.element.element_type

    @property
    def trip_counts(self) -> tuple[int, ...]:
        return unpack(self.trips)

    @property
    def step_sizes(self) -> tuple[int, ...]:
        return unpack(self.steps)

    @property
    def token_count(self) -> int:
        """How many slices the whole stream carries."""
        count = 1
        for trip in self.trip_counts:
            count *= trip
        return count

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """Where each slice starts in the tensor, in the order of the stream."""
        for index in itertools.product(*(range(t) for t in self.trip_counts)):
            scaled = [i * s for i, s in zip(index, self.step_sizes, strict=True)]
            yield evaluate_map(self.iter_map.data, scaled)

    def corners(self) -> NDArray[np.int64]:
        """The same as an array, one row a slice."""
        rows = np.indices(self.trip_counts, np.int64).reshape(len(self.trip_counts), self.token_count)
        at = np.zeros((self.token_count, len(self.element_shape)), np.int64)
        for dim, expression in enumerate(self.iter_map.data.results):
            at[:, dim] = expression.eval([0] * len(rows), [])
            for loop, factor in enumerate(coefficients(expression, len(rows))):
                at[:, dim] += rows[loop] * (self.step_sizes[loop] * factor)
        return at

    def places(self) -> NDArray[np.int64]:
        """Where each element of each slice lies in the tensor's C order: a row a slice."""
        shape = self.data_shape()
        inside = np.indices(self.element_shape, np.int64).reshape(len(shape), prod(self.element_shape))
        at = self.corners()[:, :, None] + inside[None]
        weights = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]
        return (at * weights[None, : len(shape), None]).sum(axis=1)

    def data_shape(self) -> tuple[int, ...]:
        """The shape of the tensor that the stream covers."""
        last = [(t - 1) * s for t, s in zip(self.trip_counts, self.step_sizes, strict=True)]
        corner = evaluate_map(self.iter_map.data, last)
        return tuple(c + e for c, e in zip(corner, self.element_shape, strict=True))

    def verify(self) -> None:
        trips, steps, iter_map = self.trip_counts, self.step_sizes, self.iter_map.data
        if len(trips) != len(steps):
            raise VerifyException(f"itensor: {len(trips)} trip counts but {len(steps)} steps; give one step a loop")
        if any(t < 1 for t in trips) or any(s < 1 for s in steps):
            raise VerifyException(f"itensor: trips {list(trips)} and steps {list(steps)} must all be at least 1")
        if iter_map.num_dims != len(trips) or iter_map.num_symbols:
            raise VerifyException(
                f"itensor: iter_map {iter_map} has {iter_map.num_dims} dims, the iteration space {len(trips)}"
            )
        if len(iter_map.results) != len(self.element_shape):
            raise VerifyException(
                f"itensor: iter_map {iter_map} gives {len(iter_map.results)} coordinates for an element of rank "
                f"{len(self.element_shape)}"
            )
        if any(d < 1 for d in self.element_shape):
            raise VerifyException(f"itensor: element shape {list(self.element_shape)} must be static and positive")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            for dim in self.element_shape:
                printer.print_string(f"{dim}x")
            printer.print_attribute(self.dtype)
            trips, steps = list(self.trip_counts), list(self.step_sizes)
            printer.print_string(f", iter_space: {trips}*{steps}, iter_map: {self.iter_map.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            shape, dtype = parser.parse_ranked_shape()
            _expect(parser, "iter_space")
            trips = _numbers(parser)
            parser.parse_punctuation("*")
            steps = _numbers(parser)
            _expect(parser, "iter_map")
            iter_map = parser.parse_affine_map()
        return [TensorType(dtype, shape), ints(trips), ints(steps), AffineMapAttr(iter_map)]


def _numbers(parser: AttrParser) -> list[int]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def _expect(parser: AttrParser, keyword: str) -> None:
    parser.parse_punctuation(",")
    parser.parse_keyword(keyword)
    parser.parse_punctuation(":")


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """How a task walks its iteration dims: tile and unroll size of each dim, and the order of the tile loops."""

    name = "itensor.schedule"
    tile: ArrayAttr[IntAttr]
    unroll: ArrayAttr[IntAttr]
    order: ArrayAttr[IntAttr]

    @staticmethod
    def of(tile: Sequence[int], unroll: Sequence[int], order: Sequence[int]) -> ScheduleAttr:
        return ScheduleAttr(ints(tile), ints(unroll), ints(order))

    def print_parameters(self, printer: Printer) -> None:
        fields = (("tile", self.tile), ("unroll", self.unroll), ("order", self.order))
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{name}: {list(unpack(values))}" for name, values in fields))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("tile")
            parser.parse_punctuation(":")
            fields = [ints(_numbers(parser))]
            for name in ("unroll", "order"):
                _expect(parser, name)
                fields.append(ints(_numbers(parser)))
        return list(fields)

    def verify(self) -> None:
        tile, unroll, order = unpack(self.tile), unpack(self.unroll), unpack(self.order)
        if not len(tile) == len(unroll) == len(order):
            raise VerifyException(f"schedule: tile {tile}, unroll {unroll} and order {order} differ in length")
        if sorted(order) != list(range(len(order))):
            raise VerifyException(f"schedule: order {order} is not a permutation of the {len(order)} dims")
        for dim, (t, u) in enumerate(zip(tile, unroll, strict=True)):
            if t < 1 or u < 1 or t % u:
                raise VerifyException(f"schedule: cannot unroll tile {t} of dim {dim} by {u}: {t} % {max(u, 1)} != 0")


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """How a tensor lies in external memory: `#itensor.layout<tile: [16, 16], word: [4, 16]>`.

    `, stripes: 8` behind it shares every word out to so many banks; `, stripes: 8, stripe: 2` is the share of one. With
    `, room: 64` a word has room for so many elements, zeros behind its own.
    """

    name = "itensor.layout"
    tile: ArrayAttr[IntAttr]
    word: ArrayAttr[IntAttr]
    stripes: IntAttr
    stripe: ArrayAttr[IntAttr]
    """Which of the stripes; empty for all of them."""
    room: IntAttr

    @staticmethod
    def of(layout: Layout) -> LayoutAttr:
        which = () if layout.stripe is None else (layout.stripe,)
        stripes, room = IntAttr(layout.stripes), IntAttr(layout.room)
        return LayoutAttr(ints(layout.tile), ints(layout.word), stripes, ints(which), room)

    @property
    def layout(self) -> Layout:
        which = next(iter(unpack(self.stripe)), None)
        return Layout(unpack(self.tile), unpack(self.word), self.stripes.data, which, self.room.data)

    def packed(self, kind: ITensorType) -> TensorType:
        """The type in external memory of the tensor that a stream covers."""
        layout, shape = self.layout, kind.data_shape()
        words = layout.words(shape)
        return TensorType(VectorType(kind.dtype, layout.packed(shape)[len(words) :]), words)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"tile: {list(unpack(self.tile))}, word: {list(unpack(self.word))}")
            if self.stripes.data > 1:
                printer.print_string(f", stripes: {self.stripes.data}")
            for stripe in unpack(self.stripe):
                printer.print_string(f", stripe: {stripe}")
            if self.room.data:
                printer.print_string(f", room: {self.room.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("tile")
            parser.parse_punctuation(":")
            tile = ints(_numbers(parser))
            _expect(parser, "word")
            word, stripes, stripe, room = ints(_numbers(parser)), 1, list[int](), 0
            while parser.parse_optional_punctuation(","):
                if parser.parse_optional_keyword("stripes"):
                    parser.parse_punctuation(":")
                    stripes = parser.parse_integer()
                elif parser.parse_optional_keyword("room"):
                    parser.parse_punctuation(":")
                    room = parser.parse_integer()
                else:
                    parser.parse_keyword("stripe")
                    parser.parse_punctuation(":")
                    stripe.append(parser.parse_integer())
            return [tile, word, IntAttr(stripes), ints(stripe), IntAttr(room)]

    def verify(self) -> None:
        tile, word = unpack(self.tile), unpack(self.word)
        if len(tile) != len(word):
            raise VerifyException(f"layout: tile {tile} and word {word} differ in rank")
        if any(w < 1 or t % w for t, w in zip(tile, word, strict=True)):
            raise VerifyException(f"layout: word {word} does not divide tile {tile}; each size of a word must")
        stripes, which = self.stripes.data, unpack(self.stripe)
        if 0 < self.room.data <= prod(word) or self.room.data < 0:
            raise VerifyException(f"layout: room for {self.room.data} elements in a word of {prod(word)}")
        if stripes < 1 or self.layout.lanes % stripes or len(which) > 1 or any(not 0 <= one < stripes for one in which):
            raise VerifyException(f"layout: stripe {list(which)} of {stripes} stripes of a word {word}")
