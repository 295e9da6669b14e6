"""The passes on linalg in their order: from an imported model to the form that tiling takes."""

from __future__ import annotations

from typing import Protocol

from compiler.program import Program
from compiler.transforms.check_canonical import CheckCanonical
from compiler.transforms.check_supported import CheckSupported
from compiler.transforms.compose_copies import ComposeCopies
from compiler.transforms.drop_dead_results import DropDeadResults
from compiler.transforms.drop_unit_dims import DropUnitDims
from compiler.transforms.drop_unused_operands import DropUnusedOperands
from compiler.transforms.fold_parameters import FoldParameters
from compiler.transforms.fold_reshapes import FoldReshapes
from compiler.transforms.fuse_elementwise import FuseElementwise
from compiler.transforms.inline_constants import InlineConstants
from compiler.transforms.materialise_parts import MaterialiseParts
from compiler.transforms.move_slices import MoveSlices
from compiler.transforms.quantise import QuantiseW8A8
from compiler.transforms.raise_extracts import RaiseExtracts
from compiler.transforms.raise_fills import RaiseFills
from compiler.transforms.simplify_bodies import SimplifyBodies
from compiler.transforms.split_loops import SplitLoops
from compiler.transforms.split_slices import SplitSlices


class Pass(Protocol):
    def apply(self, program: Program) -> Program: ...


SIMPLIFY: tuple[Pass, ...] = (
    DropDeadResults(),
    RaiseExtracts(),
    CheckSupported(),
    RaiseFills(),
    InlineConstants(),
    SimplifyBodies(),
    DropUnusedOperands(),
    SplitSlices(),
    FoldParameters(),
    MoveSlices(),
    MaterialiseParts(),
    ComposeCopies(),
    FoldReshapes(),
    DropUnitDims(),
    FoldReshapes(),
    InlineConstants(),
    SimplifyBodies(),
    DropUnusedOperands(),
    SplitLoops(),
    FoldReshapes(),
    ComposeCopies(),
    FuseElementwise(),
    CheckCanonical(),
)


def simplify(program: Program) -> Program:
    """The canonical form of an imported program; raises `unsupported-op` with the layer where there is none."""
    for step in SIMPLIFY:
        program = step.apply(program)
    return program


def quantise(program: Program) -> Program:
    """A canonical program in 8-bit integers, canonical again."""
    return CheckCanonical().apply(QuantiseW8A8().apply(program))
