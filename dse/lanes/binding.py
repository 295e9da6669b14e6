"""What operators are built of: a decision for all kernels at once, where the platform's library has a choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import AnyFloat

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.analysis.pairs import PAIRINGS, narrow_product, pair_up
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule import OperatorLibrary, implementations

ADDERS, MULTIPLIERS = "adders", "multipliers"
PARAMETERS = {"arith.addf": ADDERS, "arith.subf": ADDERS, "arith.muli": MULTIPLIERS}


def binding_choices(operations: Sequence[TensorOp], library: OperatorLibrary) -> dict[str, tuple[str, ...]]:
    """A parameter for every kind of operator that can be built in several ways, the library's own choice first."""
    found: dict[str, tuple[str, ...]] = {}
    for op in operations:
        for operation in bindable(op):
            known, name = ways_to_build(op, operation, library), PARAMETERS[operation]
            if len(known) > max(1, len(found.get(name, ()))):
                found[name] = known
    return dict(sorted(found.items()))


def bindings_of(op: TensorOp, library: OperatorLibrary, settings: Mapping[str, object]) -> dict[str, str]:
    """What a kernel's operators are built of under a setting; what the library takes anyway is not listed."""
    chosen: dict[str, str] = {}
    for operation in bindable(op):
        known = ways_to_build(op, operation, library)
        choice = str(settings.get(PARAMETERS[operation], ""))
        if choice in known[1:]:
            chosen[operation] = choice
    return chosen


def ways_to_build(op: TensorOp, operation: str, library: OperatorLibrary) -> tuple[str, ...]:
    """What a kernel's operators of one kind can be built of, the library's own choice first."""
    known = implementations(library, operation, operand_bits(op))
    return known if narrow_product(op.op.body.block) else tuple(name for name in known if name not in PAIRINGS)


def shared_product(op: TensorOp, lanes: Sequence[int]) -> int | None:
    """How many multipliers lanes take in pairs, so many of them along each dim; None where none find each other."""
    found = narrow_product(op.op.body.block)
    if found is None:
        return None
    pairing = pair_up(lanes, [op.operand_maps[factor.index].used_dims() for factor in found[1]])
    return None if pairing is None else pairing.operators(lanes)


def paired_dims(op: TensorOp) -> tuple[int, ...]:
    """The dims along which neighbouring lanes multiply the same factor."""
    found = narrow_product(op.op.body.block)
    if found is None:
        return ()
    left, right = (op.operand_maps[factor.index].used_dims() for factor in found[1])
    return tuple(sorted(set(left) ^ set(right)))


def operand_bits(op: TensorOp) -> int:
    """The widest operand of a kernel, and so of its products."""
    return max((type_bits(v.type) for v in op.op.inputs), default=1)


def operator_bits(op: TensorOp, operation: str) -> int:
    """The widest operand of a kind of operators in a kernel: floats have their own, whatever else the kernel reads.

    A table grows with its entries."""
    named = [inner for inner in op.op.body.block.ops if inner.name == operation]
    if operation == LookUpOp.name:
        return max(type_bits(inner.results[0].type) for inner in named)
    floats = [type_bits(o.type) for inner in named for o in inner.operands if isinstance(o.type, AnyFloat)]
    return max(floats, default=operand_bits(op))


def bindable(op: TensorOp) -> list[str]:
    """Operators that may be bound. Whole numbers only in reductions: elsewhere constants may be wider than operands."""
    names = dict.fromkeys(inner.name for inner in op.op.body.block.ops if inner.name in PARAMETERS)
    return [name for name in names if op.reductions or not name.endswith("i")]
