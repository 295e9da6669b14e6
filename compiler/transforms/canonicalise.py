"""The passes on linalg in their order: from an imported model to the form that tiling takes."""

from __future__ import annotations

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
from compiler.transforms.insert_requantise import InsertRequantise
from compiler.transforms.materialise_parts import MaterialiseParts
from compiler.transforms.move_slices import MoveSlices
from compiler.transforms.quantise import QuantiseW8A8
from compiler.transforms.raise_extracts import RaiseExtracts
from compiler.transforms.raise_fills import RaiseFills
from compiler.transforms.rewrite import Rewrite, run_rewrites
from compiler.transforms.simplify_bodies import SimplifyBodies
from compiler.transforms.split_loops import SplitLoops
from compiler.transforms.split_slices import SplitSlices

SIMPLIFY: tuple[Rewrite, ...] = (
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

QUANTISE: tuple[Rewrite, ...] = (InsertRequantise(), QuantiseW8A8(), CheckCanonical())


def simplify(program: Program) -> Program:
    """The canonical form of an imported program; raises `unsupported-op` with the layer where there is none."""
    return run_rewrites(SIMPLIFY, program)


def quantise(program: Program) -> Program:
    """A canonical program in 8-bit integers, canonical again."""
    return run_rewrites(QUANTISE, program)
