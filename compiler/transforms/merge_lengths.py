"""One accelerator for all lengths: a design lowered at several of them, whose nests differ in numbers alone.

A number that grows with a length by the same amount everywhere is written as what it follows from. Memories and FIFOs
are as large as at the largest length. All else must be the same; where it is not, the design is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.counts import LengthsAttr
from penstock.compiler.dialects.nest import GuardAttr, Loop, LoopsAttr, Term
from penstock.compiler.dialects.types import memref_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.lengths import ByLength, Length

StepsByLength = Mapping[str, int]
"""A length by its name, in steps."""


def compared_steps(lengths: Sequence[Length]) -> list[dict[str, int]]:
    """At which lengths a design is lowered: the largest first, two smaller ones of each, and one where all are less."""
    most = {length.name: length.most for length in lengths}
    found = [most]
    for length in lengths:
        middle = max(2, length.least, length.most // 2)
        smaller = [n for n in dict.fromkeys((length.most - 1, middle)) if max(2, length.least) <= n < length.most]
        found += [{**most, length.name: n} for n in smaller]
    less = {one.name: max(2, one.least, one.most - 1) for one in lengths}
    return found + ([less] if less not in found else [])


def merge_lengths(
    modules: Sequence[ModuleOp], steps: Sequence[StepsByLength], lengths: Sequence[Length], where: str
) -> ModuleOp:
    """The stream level for all lengths, from what it is at some of them, the largest first."""
    merged = modules[0].clone()
    whole, tops = _top(merged), [_top(module) for module in modules]
    merging = _Merging(tuple(steps), where)
    merging.merge(whole, [list(top.walk()) for top in tops])
    whole.properties["lengths"] = LengthsAttr(tuple(lengths))
    merging.check_turns(whole, lengths)
    merged.verify()
    try:
        at_steps(merged, {length.name: length.least for length in lengths}).verify()
    except VerifyException as error:
        least = ", ".join(f"{length.name}={length.low}" for length in lengths)
        raise PenstockError(
            code="length-unsupported", what=f"the design does not do {least}: {error}", where=where,
            hint="let the lengths begin at a larger one",
        ) from error  # fmt: skip
    return merged


def at_steps(module: ModuleOp, steps: StepsByLength) -> ModuleOp:
    """The accelerator as it works at some lengths: every number that follows from one is known.

    What it followed from stays beside it, since the hardware has one schedule for all lengths.
    """
    fixed = module.clone()
    for op in fixed.walk():
        if isinstance(op, nest.NestOp):
            op.properties["loops"] = LoopsAttr(tuple(_turning(loop, steps) for loop in op.loops.data))
        elif isinstance(given := op.properties.get("when"), GuardAttr):
            op.properties["when"] = GuardAttr(tuple(_fixed(term, steps) for term in given.terms))
    return fixed


def _turning(loop: Loop, steps: StepsByLength) -> Loop:
    return Loop(loop.name, loop.count.at(steps), law=loop.count) if loop.count else loop


def _fixed(term: Term, steps: StepsByLength) -> Term:
    return replace(term, value=term.count.at(steps), count=None, law=term.count) if term.count else term


def _top(module: ModuleOp) -> stream.TopOp:
    return next(op for op in module.ops if isinstance(op, stream.TopOp))


@dataclass(frozen=True)
class _Merging:
    steps: tuple[StepsByLength, ...]
    where: str

    def merge(self, whole: stream.TopOp, walks: Sequence[list[Operation]]) -> None:
        mine = list(whole.walk())
        place = self.where
        numbers: list[dict[SSAValue, int]] = [{} for _ in walks]
        for value_number, values in enumerate(zip(*(_defined(walk) for walk in walks), strict=False)):
            for one, value in zip(numbers, values, strict=True):
                one[value] = value_number
        if len({len(walk) for walk in walks}) > 1:
            odd = next((ops for ops in zip(*walks, strict=False) if len({op.name for op in ops}) > 1), ())
            raise self._refused(place, f"it has other parts ({' or '.join(sorted({o.name for o in odd})) or 'more'})")
        for op, *others in zip(mine, *walks, strict=True):
            if isinstance(op, stream.TaskOp):
                place = op.layer.data
            elif isinstance(op, stream.StreamOp | stream.BlocksOp):
                place = op.sym_name.data
            self._same(place, op, others, numbers)
            self._merge_types(place, op, others)
            for key in list(op.properties):
                op.properties[key] = self._merged(place, key, [other.properties[key] for other in others])
            for key in list(op.attributes):
                op.attributes[key] = self._merged(place, key, [other.attributes[key] for other in others])

    def check_turns(self, whole: stream.TopOp, lengths: Sequence[Length]) -> None:
        """Every loop turns at least once at every length."""
        for op in whole.walk():
            for loop in op.loops.data if isinstance(op, nest.NestOp) else ():
                if loop.count and loop.count.ends(lengths)[0] < 1:
                    task = op.parent_op()
                    place = task.layer.data if isinstance(task, stream.TaskOp) else self.where
                    raise self._refused(place, f"loop {loop.name} turns {loop.count} times, which may be none")

    def _same(
        self, place: str, op: Operation, others: Sequence[Operation], numbers: Sequence[Mapping[SSAValue, int]]
    ) -> None:
        for other, known in zip(others, numbers, strict=True):
            first = numbers[0]
            alike = (
                other.name == op.name
                and len(other.operands) == len(op.operands)
                and set(other.properties) == set(op.properties)
                and set(other.attributes) == set(op.attributes)
                and [known[v] for v in other.operands] == [first[v] for v in others[0].operands]
            )
            if not alike:
                raise self._refused(place, f"its {op.name} is another operation")

    def _merge_types(self, place: str, op: Operation, others: Sequence[Operation]) -> None:
        """Memories are as large as the largest; what passes in a slot is the same at all lengths."""
        for results in zip(*(other.results for other in others), strict=True):
            self._fits(place, op, [value.type for value in results])
        for regions in zip(*(other.regions for other in others), strict=True):
            for blocks in zip(*(region.blocks for region in regions), strict=True):
                for values in zip(*(block.args for block in blocks), strict=True):
                    self._fits(place, op, [value.type for value in values])

    def _fits(self, place: str, op: Operation, kinds: Sequence[Attribute]) -> None:
        largest = kinds[0]
        for kind in kinds[1:]:
            if kind != largest and not _holds(largest, kind):
                raise self._refused(place, f"its {op.name} is {kind} at one length and {largest} at the largest")

    def _merged(self, place: str, key: str, found: Sequence[Attribute]) -> Attribute:
        first = found[0]
        if all(one == first for one in found):
            return first
        if key == "layouts":  # memories are as large as at the largest length
            return first
        if isinstance(first, LoopsAttr):
            return self._loops(place, [one for one in found if isinstance(one, LoopsAttr)])
        if isinstance(first, GuardAttr):
            return self._guard(place, [one for one in found if isinstance(one, GuardAttr)])
        other = next(one for one in found if one != first)
        raise self._refused(place, f"its {key} is {other} at one length and {first} at the largest")

    def _loops(self, place: str, found: Sequence[LoopsAttr]) -> LoopsAttr:
        loops: list[Loop] = []
        for same in zip(*(one.data for one in found), strict=False):
            count = self._count(place, f"loop {same[0].name}", [one.trip for one in same])
            loops.append(replace(same[0], count=count))
        if any(len(one.data) != len(loops) or [x.name for x in one.data] != [x.name for x in loops] for one in found):
            raise self._refused(place, "it has other loops")
        return LoopsAttr(tuple(loops))

    def _guard(self, place: str, found: Sequence[GuardAttr]) -> GuardAttr:
        terms: list[Term] = []
        for same in zip(*(one.terms for one in found), strict=False):
            first = same[0]
            if any(replace(one, value=first.value) != first for one in same) or (
                first.comparison == "in" and any(one.value != first.value for one in same)
            ):
                raise self._refused(place, f"it happens when {same[-1]} at one length, when {first} at the largest")
            terms.append(replace(first, count=self._count(place, "a guard", [one.value for one in same])))
        if any(len(one.terms) != len(terms) for one in found):
            raise self._refused(place, "it happens at other times")
        return GuardAttr(tuple(terms))

    def _count(self, place: str, what: str, values: Sequence[int]) -> ByLength | None:
        """What a number follows from; None where it is one number."""
        if len(set(values)) == 1:
            return None
        most, factors = self.steps[0], dict[str, int]()
        for steps, value in zip(self.steps[1:], values[1:], strict=True):
            less = [name for name in most if steps[name] != most[name]]
            if len(less) == 1 and less[0] not in factors:
                grown, taken = values[0] - value, most[less[0]] - steps[less[0]]
                factor, rest = divmod(grown, taken)
                if rest:
                    raise self._refused(place, f"{what} grows by {grown} in {taken} steps")
                factors[less[0]] = factor
        count = ByLength.of(factors, values[0] - sum(factor * most[name] for name, factor in factors.items()))
        if any(count.at(steps) != value for steps, value in zip(self.steps, values, strict=True)):
            raise self._refused(place, f"{what} is {list(values)}, which does not grow evenly")
        return count

    def _refused(self, place: str, why: str) -> PenstockError:
        names = ", ".join(self.steps[0])
        return PenstockError(
            code="length-unsupported", what=f"one accelerator does not do all lengths of {names}: {why}", where=place,
            limit="only how often loops turn may follow from a length",
            hint="let its tiles and lanes along that dim divide the step of the length, or leave --dim out",
        )  # fmt: skip


def _defined(walk: Sequence[Operation]) -> Iterator[SSAValue]:
    for op in walk:
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _holds(largest: Attribute, kind: Attribute) -> bool:
    """Whether a memory of the largest length has room for what it is at another."""
    if isinstance(largest, stream.BlocksType) and isinstance(kind, stream.BlocksType):
        return largest.count == kind.count and _holds(largest.block, kind.block)
    if largest.name == kind.name == MemRefType.name:
        one, other = memref_type(largest), memref_type(kind)
        same = one.element_type == other.element_type and one.memory_space == other.memory_space
        here, there = one.get_shape(), other.get_shape()
        return same and len(here) == len(there) and all(n >= m for n, m in zip(here, there, strict=True))
    return False
