"""The nest dialect: a perfect loop nest that is one pipeline, the unit that has an II, a depth and a latency.

    nest.nest "compute" <k: 4, j: 8> {
      %x = nest.read %xs when <d1 eq 0> : !stream.stream<vector<1x16xi8>, depth: 2> -> vector<1x16xi8>
      ...
    }

One iteration of the loops is one slot of the pipeline. The body is straight-line code on lane vectors:
what runs in parallel is in the vectors' shapes. Reads, writes and stores happen only where their guard
holds; guards compare loop counters with constants. Addresses are affine in the loop counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.bindings import bindings_of
from penstock.compiler.dialects.counts import LengthsAttr, SizesAttr
from penstock.compiler.dialects.formats import MapFormat, Maps, NumberFormat, NumbersFormat, OneType
from penstock.compiler.dialects.nest_attributes import ALWAYS, GuardAttr, Loop, LoopsAttr, Term, ends_of
from penstock.compiler.dialects.nest_pick import PickOp
from penstock.compiler.dialects.nest_stack import StackingAttr, StackOp
from penstock.compiler.dialects.nest_within import WithinOp
from penstock.compiler.dialects.stream import BlocksType, StreamType
from penstock.compiler.dialects.types import lane_shape, memref_type, vector_type

__all__ = [
    "MemoryOp", "ALWAYS", "ConstantOp", "GuardAttr", "LoadOp", "Loop", "LoopsAttr", "MapOp",
    "NestDialect", "NestOp", "PickOp", "ReadOp", "ReduceOp", "SelectOp", "StackOp", "StoreOp", "Term", "WithinOp",
    "WriteOp", "YieldOp", "memory_shape", "memory_word",
]  # fmt: skip


@irdl_op_definition
class NestOp(IRDLOperation):
    """The loop nest. `block_loops` leading loops hand over a block on every block channel once an iteration.

    `bindings` says what operators are built of where a library has a choice: {"arith.addf" = "fabric"}. Of a nest that
    stands `in_circle`, an iteration may wait for tokens that come of those that an earlier one writes. A pipeline that
    stops as a whole begins iterations at least `interval` cycles apart, or when the one before has ended.
    """

    name = "nest.nest"
    sym_name = prop_def(StringAttr)
    loops = prop_def(LoopsAttr)
    block_loops = prop_def(IntAttr, default_value=IntAttr(0))
    bindings = opt_prop_def(DictionaryAttr)
    in_circle = opt_prop_def(UnitAttr)
    interval = prop_def(IntAttr, default_value=IntAttr(1))
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    custom_directives = (NumberFormat,)
    assembly_format = (
        "$sym_name $loops (`block_loops` custom<NumberFormat>($block_loops)^)? (`bindings` $bindings^)? "
        "(`in_circle` $in_circle^)? (`interval` custom<NumberFormat>($interval)^)? attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        name: str,
        loops: Sequence[Loop],
        body: Region,
        block_loops: int = 0,
        bindings: DictionaryAttr | None = None,
        *,
        in_circle: bool = False,
        interval: int = 1,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "in_circle": UnitAttr() if in_circle else None,
                "loops": LoopsAttr(tuple(loops)),
                "block_loops": IntAttr(block_loops),
                "bindings": bindings,
                "interval": IntAttr(interval),
            },
            regions=[body],
        )

    @property
    def trips(self) -> tuple[int, ...]:
        return tuple(loop.trip for loop in self.loops.data)

    @property
    def iterations(self) -> int:
        """How many pipeline slots one run of the nest takes."""
        count = 1
        for trip in self.trips:
            count *= trip
        return count

    def verify_(self) -> None:
        name, trips = self.sym_name.data, self.trips
        if any(t < 1 for t in trips):
            raise VerifyException(f"nest {name}: trip counts {trips} must all be at least 1")
        if not 0 <= self.block_loops.data <= len(trips):
            raise VerifyException(f"nest {name}: {self.block_loops.data} block loops of {len(trips)} loops")
        if self.interval.data < 1:
            raise VerifyException(f"nest {name}: interval {self.interval.data} must be at least 1")
        bindings_of(self)
        for op in self.body.block.ops:
            guard = op.properties.get("when")
            if isinstance(guard, GuardAttr):
                for term in guard.terms:
                    if not (term.loop < len(trips) and term.varies(trips[term.loop])):
                        raise VerifyException(f"nest {name}: guard {term} never varies within trips {trips}")
            if isinstance(op, WithinOp) and op.place.data.num_dims != len(trips):
                raise VerifyException(f"nest {name}: place {op.place.data} does not fit {len(trips)} loops")
            address = op.properties.get("address")
            if isinstance(address, AffineMapAttr):
                _verify_address(name, op, address.data, trips)


@irdl_op_definition
class ReadOp(IRDLOperation):
    """Pops one token where the guard holds; elsewhere the result is undefined."""

    name = "nest.read"
    stream = operand_def(StreamType)
    when = prop_def(GuardAttr, default_value=ALWAYS)
    result = result_def(VectorType)
    assembly_format = "$stream (`when` $when^)? attr-dict `:` type($stream) `->` type($result)"

    def __init__(self, stream: SSAValue, when: GuardAttr) -> None:
        assert isinstance(stream.type, StreamType)
        super().__init__(operands=[stream], result_types=[stream.type.token], properties={"when": when})

    def verify_(self) -> None:
        if isinstance(self.stream.type, StreamType) and self.stream.type.token != self.result.type:
            raise VerifyException(f"read: {self.stream.type} does not carry {self.result.type}")


@irdl_op_definition
class WriteOp(IRDLOperation):
    """Pushes one token where the guard holds. A token is flat: its reader gives it the shape."""

    name = "nest.write"
    value = operand_def(VectorType)
    stream = operand_def(StreamType)
    when = prop_def(GuardAttr, default_value=ALWAYS)
    assembly_format = "$value `to` $stream (`when` $when^)? attr-dict `:` type($value) `to` type($stream)"

    def __init__(self, value: SSAValue, stream: SSAValue, when: GuardAttr) -> None:
        super().__init__(operands=[value, stream], properties={"when": when})

    def verify_(self) -> None:
        given = vector_type(self.value)
        if isinstance(self.stream.type, StreamType):
            token = self.stream.type.token
            same = token.element_type == given.element_type and prod(token.get_shape()) == prod(given.get_shape())
            if not same:
                raise VerifyException(f"write: {self.stream.type} does not carry {given}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Reads a lane vector from a memory or block: its corner is at `address`, its shape the vector's.

    A memory of words is read a word at a time. Where the guard does not hold the result is undefined.
    """

    name = "nest.load"
    memory = operand_def(MemRefType | BlocksType)
    address = prop_def(AffineMapAttr)
    when = prop_def(GuardAttr, default_value=ALWAYS)
    result = result_def(VectorType)
    custom_directives = (MapFormat,)
    assembly_format = (
        "$memory `at` custom<MapFormat>($address) (`when` $when^)? attr-dict `:` type($memory) `->` type($result)"
    )

    def __init__(self, memory: SSAValue, address: AffineMap, when: GuardAttr, result: VectorType) -> None:
        super().__init__(
            operands=[memory],
            result_types=[result],
            properties={"address": AffineMapAttr(address), "when": when},
        )


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes a lane vector to a memory or block where the guard holds."""

    name = "nest.store"
    value = operand_def(VectorType)
    memory = operand_def(MemRefType | BlocksType)
    address = prop_def(AffineMapAttr)
    when = prop_def(GuardAttr, default_value=ALWAYS)
    custom_directives = (MapFormat,)
    assembly_format = (
        "$value `to` $memory `at` custom<MapFormat>($address) (`when` $when^)? attr-dict "
        "`:` type($value) `to` type($memory)"
    )

    def __init__(self, value: SSAValue, memory: SSAValue, address: AffineMap, when: GuardAttr) -> None:
        super().__init__(operands=[value, memory], properties={"address": AffineMapAttr(address), "when": when})


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`inside` where the guard holds, `outside` elsewhere."""

    name = "nest.select"
    inside = operand_def(VectorType)
    outside = operand_def(VectorType)
    when = prop_def(GuardAttr, default_value=ALWAYS)
    result = result_def(VectorType)
    custom_directives = (OneType,)
    assembly_format = (
        "$inside `else` $outside (`when` $when^)? attr-dict `:` "
        "custom<OneType>(type($inside), type($outside), type($result))"
    )

    def __init__(self, inside: SSAValue, outside: SSAValue, when: GuardAttr) -> None:
        super().__init__(operands=[inside, outside], result_types=[inside.type], properties={"when": when})

    def verify_(self) -> None:
        if not self.inside.type == self.outside.type == self.result.type:
            raise VerifyException(f"select: {self.inside.type} and {self.outside.type} give {self.result.type}")


@irdl_op_definition
class MapOp(IRDLOperation):
    """A scalar body run for every lane; `lanes` gives each operand's vector as a projection of the lane space."""

    name = "nest.map"
    inputs = var_operand_def(VectorType)
    lanes = prop_def(ArrayAttr[AffineMapAttr])
    result = result_def(VectorType)
    body = region_def("single_block")
    custom_directives = (Maps,)
    assembly_format = (
        "$inputs `lanes` custom<Maps>($lanes) attr-dict-with-keyword `:` type($inputs) `->` type($result) $body"
    )

    def __init__(
        self, inputs: Sequence[SSAValue], lanes: Sequence[AffineMap], result: VectorType, body: Region
    ) -> None:
        super().__init__(
            operands=[list(inputs)],
            result_types=[result],
            properties={"lanes": ArrayAttr([AffineMapAttr(m) for m in lanes])},
            regions=[body],
        )

    def verify_(self) -> None:
        shape = lane_shape(self.result)
        if len(self.lanes) != len(self.inputs):
            raise VerifyException(f"map: {len(self.lanes)} lane maps for {len(self.inputs)} operands")
        for value, lane_map in zip(self.inputs, self.lanes, strict=True):
            corner = lane_map.data.eval([s - 1 for s in shape], [])
            if tuple(c + 1 for c in corner) != lane_shape(value):
                raise VerifyException(f"map: {value.type} is not the {lane_map.data} projection of lanes {shape}")
        terminator = self.body.block.last_op
        if not isinstance(terminator, YieldOp) or terminator.value.type != _element(self.result):
            raise VerifyException(f"map: body must yield one {_element(self.result)}")
        if [a.type for a in self.body.block.args] != [_element(v) for v in self.inputs]:
            raise VerifyException("map: body takes other scalars than the operands' elements")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a map's body with its scalar."""

    name = "nest.yield"
    value = operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Combines lanes along `dims` (ascending) to extent 1 as a balanced tree of neighbours: ((0+1)+(2+3))+4.

    The tree's shape is part of the meaning: floats come out the same at every level.
    """

    name = "nest.reduce"
    value = operand_def(VectorType)
    dims = prop_def(ArrayAttr[IntAttr])
    result = result_def(VectorType)
    body = region_def("single_block")
    custom_directives = (NumbersFormat,)
    assembly_format = (
        "$value `along` custom<NumbersFormat>($dims) attr-dict-with-keyword `:` type($value) `->` type($result) $body"
    )

    def __init__(self, value: SSAValue, dims: Sequence[int], body: Region) -> None:
        kind = vector_type(value)
        shape = [1 if d in dims else s for d, s in enumerate(kind.get_shape())]
        super().__init__(
            operands=[value],
            result_types=[VectorType(kind.element_type, shape)],
            properties={"dims": ArrayAttr([IntAttr(d) for d in dims])},
            regions=[body],
        )

    def verify_(self) -> None:
        dims = [d.data for d in self.dims]
        wanted = tuple(1 if d in dims else s for d, s in enumerate(lane_shape(self.value)))
        if lane_shape(self.result) != wanted:
            raise VerifyException(f"reduce: {self.value.type} along {dims} has shape {wanted}, not {self.result.type}")


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A lane vector with one value in every lane."""

    name = "nest.constant"
    value = prop_def(Attribute)
    result = result_def(VectorType)
    assembly_format = "$value attr-dict `->` type($result)"

    def __init__(self, value: Attribute, result: VectorType) -> None:
        super().__init__(result_types=[result], properties={"value": value})


def _element(value: SSAValue) -> Attribute:
    return vector_type(value).element_type


def memory_shape(memory: SSAValue) -> tuple[int, ...]:
    """The shape of a memory, or of one block of a block channel."""
    return tuple(memref_type(memory.type.block if isinstance(memory.type, BlocksType) else memory).get_shape())


def memory_word(memory: SSAValue) -> VectorType | None:
    """The word that a memory is accessed in, for external memory that is wider than one element."""
    if not isinstance(memory.type, MemRefType):
        return None
    try:  # isinstance would tell the type checker less than it knows
        return vector_type(memref_type(memory).element_type)
    except VerifyException:
        return None


def _verify_address(nest: str, op: Operation, address: AffineMap, trips: Sequence[int]) -> None:
    """Every access lies inside its memory wherever its guard holds."""
    if not isinstance(op, LoadOp | StoreOp):
        return
    shape = memory_shape(op.memory)
    value = op.result if isinstance(op, LoadOp) else op.value
    lanes = lane_shape(value)
    if (word := memory_word(op.memory)) is not None:
        if value.type != word:
            raise VerifyException(f"nest {nest}: {op.name} moves {value.type}, a word of its memory is {word}")
        lanes = (1,) * len(shape)
    if address.num_dims != len(trips) or not len(address.results) == len(shape) == len(lanes):
        raise VerifyException(f"nest {nest}: address {address} does not fit {len(trips)} loops and memory {shape}")
    low, high = op.when.ends(trips)
    first, corner = ends_of(address, low, high)
    if min(first, default=0) < 0:
        raise VerifyException(f"nest {nest}: {op.name} begins at {min(first)} of memory {shape}; address {address}")
    for dim, (start, lane, size) in enumerate(zip(corner, lanes, shape, strict=True)):
        if start + lane > size:
            raise VerifyException(
                f"nest {nest}: {op.name} reaches {start + lane} in dim {dim} of memory {shape}; address {address}"
            )


MemoryOp = LoadOp | StoreOp
"""What reaches a memory at an address."""

_OPERATIONS = (
    NestOp, ReadOp, WriteOp, LoadOp, StoreOp, SelectOp, WithinOp, StackOp, PickOp, MapOp, YieldOp, ReduceOp, ConstantOp,
)  # fmt: skip
NestDialect = Dialect("nest", list(_OPERATIONS), [GuardAttr, LengthsAttr, LoopsAttr, SizesAttr, StackingAttr])
