"""The itensor dialect: streams of tensor slices whose order is part of the type, and the kernels that use them.

    !itensor.itensor<4x2xf32, iter_space: [4, 2]*[2, 4], iter_map: (d0, d1) -> (d1, d0)>

reads: slices of 4x2 elements; two loops of 4 and 2 trips with steps 2 and 4; the first loop moves along
columns, the second along rows. Two streams may be connected exactly if their types are equal.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from penstock.compiler.dialects.itensor_layouts import ChunkOp, ConcatOp, ConverterOp, ForkOp, ReassociateOp
from penstock.compiler.dialects.itensor_memory import LoadOp, StoreOp
from penstock.compiler.dialects.itensor_structure import KernelOp, TaskOp, WithinOp, YieldOp
from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr, ScheduleAttr, unpack

__all__ = [
    "ChunkOp",
    "ConcatOp",
    "ConverterOp",
    "ForkOp",
    "ITensor",
    "ITensorType",
    "KernelOp",
    "LayoutAttr",
    "LoadOp",
    "ReassociateOp",
    "ScheduleAttr",
    "StoreOp",
    "TaskOp",
    "WithinOp",
    "YieldOp",
    "unpack",
]

ITensor = Dialect(
    "itensor",
    [
        KernelOp, TaskOp, WithinOp, YieldOp,
        LoadOp, StoreOp,
        ConverterOp, ReassociateOp, ForkOp, ChunkOp, ConcatOp,
    ],
    [ITensorType, ScheduleAttr, LayoutAttr],
)  # fmt: skip
