"""The passes on linalg in their order: from an imported model to the form that tiling takes."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.errors import PenstockError
from penstock.compiler.program import Program
from penstock.compiler.transforms.check_canonical import CheckCanonical
from penstock.compiler.transforms.check_supported import CheckSupported
from penstock.compiler.transforms.compose_copies import ComposeCopies
from penstock.compiler.transforms.drop_dead_results import DropDeadResults
from penstock.compiler.transforms.drop_unit_dims import DropUnitDims
from penstock.compiler.transforms.drop_unused_operands import DropUnusedOperands
from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.expand_functions import ExpandFunctions
from penstock.compiler.transforms.fold_parameters import FoldParameters
from penstock.compiler.transforms.fold_reshapes import FoldReshapes
from penstock.compiler.transforms.fuse_elementwise import FuseElementwise
from penstock.compiler.transforms.generics import is_reduction
from penstock.compiler.transforms.inline_constants import InlineConstants
from penstock.compiler.transforms.insert_requantise import InsertRequantise
from penstock.compiler.transforms.materialise_parts import MaterialiseParts
from penstock.compiler.transforms.move_slices import MoveSlices
from penstock.compiler.transforms.passes import level_of
from penstock.compiler.transforms.quantise import QuantiseIntegers
from penstock.compiler.transforms.raise_extracts import RaiseExtracts
from penstock.compiler.transforms.raise_fills import RaiseFills
from penstock.compiler.transforms.raise_windows import RaiseWindows
from penstock.compiler.transforms.rewrite import Rewrite, run_rewrites
from penstock.compiler.transforms.simplify_bodies import SimplifyBodies
from penstock.compiler.transforms.split_loops import SplitLoops
from penstock.compiler.transforms.split_slices import SplitSlices
from penstock.compiler.transforms.tabulate_functions import TabulateFunctions
from penstock.compiler.transforms.use_integers import UseIntegers

SIMPLIFY: tuple[Rewrite, ...] = (
    DropDeadResults(),
    RaiseExtracts(),
    RaiseWindows(),
    CheckSupported(),
    RaiseFills(),
    InlineConstants(),
    SimplifyBodies(),
    DropUnusedOperands(),
    SplitSlices(),
    FoldParameters(),
    ExpandFunctions(),
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

INTEGERS: tuple[Rewrite, ...] = (UseIntegers(), TabulateFunctions(), CheckCanonical())

QUANTISE: tuple[Rewrite, ...] = (
    FoldParameters(integers=True),
    InsertRequantise(),
    QuantiseIntegers(),
    TabulateFunctions(),
    CheckCanonical(),
)


def simplify(program: Program) -> Program:
    """The canonical form of an imported program; raises `unsupported-op` with the layer where there is none."""
    if level_of(program.module) == "tasks":
        return program  # its author has said what runs where
    return run_rewrites(SIMPLIFY, program)


def use_integers(program: Program) -> Program:
    """A canonical program with integer tensors where it computes with whole numbers, canonical again."""
    return program if level_of(program.module) == "tasks" else run_rewrites(INTEGERS, program)


def sums_integers(program: Program) -> bool:
    """Whether any reduction computes in integers, as those of quantised models do."""
    kinds = [op.results[0].type for op in Editor(program).generics() if is_reduction(op)]
    return any(isinstance(get_element_type_or_self(kind), IntegerType) for kind in kinds)


def quantise(program: Program, weight_bits: int = 8) -> Program:
    """A canonical program in 8-bit integers, with weights of as many bits, canonical again."""
    if level_of(program.module) == "tasks":
        raise PenstockError(
            code="unknown-quantisation", what="a task program says itself what numbers it computes with",
            where=program.name, hint="leave quantize out, and write int8 or int4 in the program",
        )  # fmt: skip
    passes = [QuantiseIntegers(weight_bits) if isinstance(one, QuantiseIntegers) else one for one in QUANTISE]
    return run_rewrites(passes, program)
