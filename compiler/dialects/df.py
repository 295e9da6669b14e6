"""The df dialect: an array of cores as data - dims, cores with their units, memories, networks.

    %noc = "df.interconnects"(%l1, %l1) <{label = "noc", map = affine_map<(d0) -> ((d0 + 1) mod 8)>, ...}>

Bandwidths are bytes a cycle. A unit says `cycles`, how long one of its intrinsics takes: what the TL paper prints as
`throughput = 98` for 32 x 32 x 32 is that. `start` is what an operation or a transfer costs before its first element.
Here each operation is checked alone; `compiler/mesh/machine.py` checks what they make together.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

NUMBERS = ("int8", "int16", "int32", "float16", "bfloat16", "float32")


@irdl_attr_definition
class DimType(ParametrizedAttribute, TypeAttribute):
    """A dim of space, along which parts are repeated."""

    name = "df.dim"


@irdl_attr_definition
class UnitType(ParametrizedAttribute, TypeAttribute):
    """What computes within a core."""

    name = "df.unit"


@irdl_attr_definition
class PartsType(ParametrizedAttribute, TypeAttribute):
    """Cores or memories, one at every place of their dims."""

    name = "df.parts"


def number(value: float) -> FloatAttr[AnyFloat]:
    return FloatAttr(float(value), f64)


def whole(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i64)


def _positive(where: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise VerifyException(f"{where}: {name} is {value:g}; it must be more than 0")


def _not_negative(where: str, start: float) -> None:
    if not 0 <= start < float("inf"):
        raise VerifyException(f"{where}: start is {start:g}; it must be 0 or more cycles")


@irdl_op_definition
class SpatialDimOp(IRDLOperation):
    """A dim of so many places."""

    name = "df.spatial_dim"
    label = prop_def(StringAttr)
    size = prop_def(IntegerAttr[IntegerType])
    dim = result_def(DimType)

    def __init__(self, label: str, size: int) -> None:
        super().__init__(properties={"label": StringAttr(label), "size": whole(size)}, result_types=[DimType()])

    def verify_(self) -> None:
        _positive(f"dim {self.label.data}", size=self.size.value.data)


class _UnitOp(IRDLOperation):
    """A unit takes operands of its shape, and so many cycles for them; `types`, if there are any, are all it takes."""

    label = prop_def(StringAttr)
    shape = prop_def(DenseArrayBase[IntegerType])
    cycles = prop_def(FloatAttr[AnyFloat])
    start = prop_def(FloatAttr[AnyFloat])
    types = opt_prop_def(ArrayAttr[StringAttr])
    unit = result_def(UnitType)

    def __init__(
        self, label: str, shape: tuple[int, ...], cycles: float, start: float, types: tuple[str, ...] = ()
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "label": StringAttr(label),
            "shape": DenseArrayBase.from_list(i64, list(shape)),
            "cycles": number(cycles),
            "start": number(start),
            "types": ArrayAttr([StringAttr(name) for name in types]) if types else None,
        }
        super().__init__(properties=properties, result_types=[UnitType()])

    def dims(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.shape.get_values())

    def number_types(self) -> tuple[str, ...]:
        return () if self.types is None else tuple(name.data for name in self.types)

    def verify_(self) -> None:
        where, wanted = f"unit {self.label.data}", {"df.mat": 3, "df.vec": 1, "df.scalar": 0}[self.name]
        if len(self.dims()) != wanted:
            raise VerifyException(f"{where}: its shape has {len(self.dims())} dims; {self.name} has {wanted}")
        _positive(where, cycles=self.cycles.value.data, **{f"shape[{i}]": size for i, size in enumerate(self.dims())})
        _not_negative(where, self.start.value.data)
        unknown = [name for name in self.number_types() if name not in NUMBERS]
        if unknown:
            raise VerifyException(f"{where}: {unknown[0]!r} is no number type; known are {', '.join(NUMBERS)}")


@irdl_op_definition
class MatOp(_UnitOp):
    """Multiplies matrices: `start` cycles for every element of the result besides, once for a sum of products."""

    name = "df.mat"


@irdl_op_definition
class VecOp(_UnitOp):
    """Does one operation for every element of a vector."""

    name = "df.vec"


@irdl_op_definition
class ScalarOp(_UnitOp):
    """Does one operation."""

    name = "df.scalar"


@irdl_op_definition
class CoreOp(IRDLOperation):
    """Cores, one at every place of `scaleout`, each with the units of `scalein`, so many of each."""

    name = "df.core"
    label = prop_def(StringAttr)
    counts = prop_def(DenseArrayBase[IntegerType])
    scaleout = var_operand_def(DimType)
    scalein = var_operand_def(UnitType)
    cores = result_def(PartsType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, label: str, scaleout: list[SSAValue], scalein: list[SSAValue], counts: list[int]) -> None:
        super().__init__(
            operands=[scaleout, scalein],
            properties={"label": StringAttr(label), "counts": DenseArrayBase.from_list(i64, counts)},
            result_types=[PartsType()],
        )

    def verify_(self) -> None:
        counts = [int(count) for count in self.counts.get_values()]
        if len(counts) != len(self.scalein):
            raise VerifyException(f"core {self.label.data}: {len(self.scalein)} units, but {len(counts)} counts")
        _positive(f"core {self.label.data}", **{f"count[{i}]": count for i, count in enumerate(counts)})


@irdl_op_definition
class MeshMemoryOp(IRDLOperation):
    """Memories of `size` bytes. `interleaved`: tensors lie across all of them, page by page."""

    name = "df.memory"
    label = prop_def(StringAttr)
    size = prop_def(IntegerAttr[IntegerType])
    bandwidth = prop_def(FloatAttr[AnyFloat])
    interleaved = opt_prop_def(UnitAttr)
    scaleout = var_operand_def(DimType)
    memories = result_def(PartsType)

    def __init__(self, label: str, scaleout: list[SSAValue], size: int, bandwidth: float, interleaved: bool) -> None:
        properties: dict[str, Attribute | None] = {
            "label": StringAttr(label),
            "size": whole(size),
            "bandwidth": number(bandwidth),
            "interleaved": UnitAttr() if interleaved else None,
        }
        super().__init__(operands=[scaleout], properties=properties, result_types=[PartsType()])

    def verify_(self) -> None:
        _positive(f"memory {self.label.data}", size=self.size.value.data, bandwidth=self.bandwidth.value.data)


@irdl_op_definition
class MuxOp(IRDLOperation):
    """Which memory each core works on: `map` takes a core's place to the memory's."""

    name = "df.mux"
    label = prop_def(StringAttr)
    map = prop_def(AffineMapAttr)
    source = operand_def(PartsType)
    target = operand_def(PartsType)

    def __init__(self, label: str, source: SSAValue, target: SSAValue, map_: AffineMapAttr) -> None:
        super().__init__(operands=[source, target], properties={"label": StringAttr(label), "map": map_})


@irdl_op_definition
class InterconnectsOp(IRDLOperation):
    """One link from every place of `source` to the place that `map` says.

    `open`: a place whose link would lead outside has none, as at the end of a row; otherwise that is a mistake.
    """

    name = "df.interconnects"
    label = prop_def(StringAttr)
    map = prop_def(AffineMapAttr)
    bandwidth = prop_def(FloatAttr[AnyFloat])
    start = prop_def(FloatAttr[AnyFloat])
    open = opt_prop_def(UnitAttr)
    source = operand_def(PartsType)
    target = operand_def(PartsType)

    def __init__(
        self, label: str, source: SSAValue, target: SSAValue, map_: AffineMapAttr, bandwidth: float, start: float,
        open_ended: bool,
    ) -> None:  # fmt: skip
        properties: dict[str, Attribute | None] = {
            "label": StringAttr(label),
            "map": map_,
            "bandwidth": number(bandwidth),
            "start": number(start),
            "open": UnitAttr() if open_ended else None,
        }
        super().__init__(operands=[source, target], properties=properties)

    def verify_(self) -> None:
        _positive(f"link {self.label.data}", bandwidth=self.bandwidth.value.data)
        _not_negative(f"link {self.label.data}", self.start.value.data)


UNITS: dict[str, type[_UnitOp]] = {"mat": MatOp, "vec": VecOp, "scalar": ScalarOp}

DfDialect = Dialect(
    "df",
    [SpatialDimOp, MatOp, VecOp, ScalarOp, CoreOp, MeshMemoryOp, MuxOp, InterconnectsOp],
    [DimType, UnitType, PartsType],
)
