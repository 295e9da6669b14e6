"""What computes the addresses of a pipeline: shifts, additions, multipliers, and products with an addition in one DSP.

An array is a row of words: row · length + column, dimension by dimension, within the bank that an access meets. A
length of two binary digits with signs (240 = 256 - 16) costs an addition; every other one a multiplier. The tool builds
product and addition as one DSP with three stages where both happen in one basic block and nobody else uses the product,
or where the product needs a DSP anyway, from 11 bits on; else the product is made of LUTs within a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd

from penstock.compiler.analysis.digits import signed_digits
from penstock.compiler.hls_in.dependence import pinned
from penstock.compiler.hls_in.graph import KernelValue, LinearForm
from penstock.compiler.hls_in.records import Pipeline, Straight
from penstock.compiler.hls_in.storage import Counter, KernelArray
from penstock.compiler.schedule.library import OperatorLibrary, chains_seen
from penstock.compiler.schedule.timing import CHOICE_NS, PRODUCT_STAGES, REMAINDER_STAGES, Moment

_LUT_BITS = 10
"""The widest operand of a multiplier without DSPs; a constant counts with its sign."""


@dataclass(frozen=True)
class _Part:
    """A value on the way to an address. `level` is the innermost counter that it moves with; -1 is none."""

    key: object
    level: int
    bits: int
    sum_of: tuple[_Product, _Part] | None = None
    divided: bool = False
    shifted: bool = False
    """Low bits were cut off, so the tool knows how many there are."""


@dataclass(frozen=True)
class _Product:
    part: _Part
    length: int

    @property
    def multiplies(self) -> bool:
        return self.part.level >= 0 and signed_digits(self.length) > 2

    @property
    def in_dsp(self) -> bool:
        return max(self.part.bits, self.length.bit_length() + 1) > _LUT_BITS


@dataclass
class AddressPlan:
    """When each access has its address, and the DSPs that make addresses."""

    ready: dict[KernelValue, Moment] = field(default_factory=dict[KernelValue, Moment])
    dsp: int = 0
    added: set[KernelValue] = field(default_factory=set[KernelValue])
    """Accesses whose address ends with an addition of its own."""
    chosen: dict[KernelValue, Moment] = field(default_factory=dict[KernelValue, Moment])
    """When the bank is known that an access meets, where that takes a division."""
    remainders: dict[object, int] = field(default_factory=dict[object, int])
    """Bits of what is divided, of each remainder that chooses a bank."""


def _met(node: KernelValue) -> tuple[KernelArray, tuple[KernelValue, ...]]:
    """The memory that an access meets, and where."""
    assert node.array is not None
    return node.array, node.index


def _cut(array: KernelArray, d: int) -> tuple[str, int]:
    """Into how many parts a dimension is cut before its words are counted: banks, and elements of one word."""
    way, banks = array.cut(d)
    other, elements = array.reshape.get(d, ("none", 1))
    return (way if banks > 1 else other), banks * elements


def _known_divisor(index: LinearForm, factor: int) -> int:
    """What an index and the number of banks are divided by beforehand: what all counters move by, where that divides
    the number of banks; else the power of two that both end with, if nothing is added."""
    step = gcd(*(f for _, f in index.terms))
    if step and factor % step == 0:
        return step
    common = gcd(step, factor) if index.base == 0 else 1
    return common & -common


class AddressPlanner:
    def __init__(
        self, item: Pipeline | Straight, nodes: Iterable[KernelValue], library: OperatorLibrary
    ) -> None:  # fmt: skip
        self.counters = item.counters if isinstance(item, Pipeline) else []
        self.position = {counter: i for i, counter in enumerate(self.counters)}
        self.budget, rules = library.budget_ns, chains_seen(library)
        self.adding = rules.address_ns
        self.begin = rules.counters_ns if len(self.counters) > 1 else 0.0
        self.accesses = [
            n for n in nodes if n.op in ("load", "store") and n.array is not None and not n.array.registers
        ]
        self.blocks = self._first_blocks(item)
        self.sums: dict[tuple[object, int], set[object]] = {}
        """The different additions that use a product."""
        self.units: set[object] = set()
        self.added: set[object] = set()
        """Sums that end with an addition of their own."""
        self.dsp = 0
        self.remainders: dict[object, int] = {}

    def plan(self) -> AddressPlan:
        whole: dict[KernelValue, _Part] = {}
        for node in self.accesses:
            found = self._address(node)
            if found is not None:
                whole[node] = found
        made: dict[object, Moment] = {}
        ready = {node: self._when(part, made) for node, part in whole.items()}
        chosen = {node: at for node in self.accesses if (at := self._chosen(node)) is not None}
        return AddressPlan(
            ready, self.dsp, {node for node, part in whole.items() if part.key in self.added}, chosen,
            self.remainders,
        )  # fmt: skip

    def _chosen(self, node: KernelValue) -> Moment | None:
        """When it is known which of a number of banks that is no power of two an access meets: a remainder, which
        a loop of one counter keeps too."""
        array, index = _met(node)
        bits = 0
        for d, arg in enumerate(index if len(self.counters) > 1 else ()):
            way, factor = array.cut(d)
            terms = arg.linear.terms if arg.linear is not None else ()
            factor //= gcd(factor, *(f for _, f in terms))
            if way == "cyclic" and factor & (factor - 1):
                step = gcd(*(f for _, f in terms))
                wide = sum(abs(f) // step * (c.trip - 1) for c, f in terms).bit_length()
                self.remainders[terms, factor] = wide
                bits = max(bits, wide)
        return (bits + REMAINDER_STAGES, CHOICE_NS) if bits else None

    def _address(self, node: KernelValue) -> _Part | None:
        array, index = _met(node)
        total: _Part | None = None
        for d, arg in enumerate(index):
            if arg.linear is None:
                return None
            length = self._length(array, d)
            if length <= 1:
                continue
            part = self._within(array, d, arg.linear)
            total = part if total is None else self._sum(total, length, part)
        return total

    def _written_out(self, linear: LinearForm) -> _Part | None:
        """row · length + column of an array that the source itself made flat."""
        rows = [(c, f) for c, f in linear.terms if signed_digits(abs(f)) > 2]
        if len(rows) != 1 or rows[0][1] < 0 or len(linear.terms) < 2:
            return None
        counter, length = rows[0]
        rest = LinearForm(linear.base, tuple(term for term in linear.terms if term != rows[0]))
        row = _Part((((counter, 1),), 0), self.position.get(counter, -1), max(1, (counter.trip - 1).bit_length()))
        level = max((self.position.get(c, -1) for c, _ in rest.terms), default=-1)
        column = _Part((rest.terms, rest.base), level, max(1, max(rest.range[1], 0).bit_length()))
        return self._sum(row, length, column)

    def _sum(self, row: _Part, length: int, column: _Part) -> _Part:
        product = _Product(row, length)
        key = ("sum", row.key, length, column.key)
        if product.multiplies:
            self.sums.setdefault((row.key, length), set()).add(key)
        bits = row.bits + (length - 1).bit_length()
        return _Part(key, max(row.level, column.level), bits, (product, column))

    def _length(self, array: KernelArray, d: int) -> int:
        return -(-array.dims[d] // _cut(array, d)[1])

    def _within(self, array: KernelArray, d: int, linear: LinearForm) -> _Part:
        """An index within its bank."""
        way, factor = _cut(array, d)
        level = max((self.position.get(c, -1) for c, _ in linear.terms), default=-1)
        bits = max(1, max(linear.range[1], 0).bit_length())
        if linear.base == 0 and [f for _, f in linear.terms] == [1]:
            bits = linear.terms[0][0].trip.bit_length()
        if factor == 1:
            return self._written_out(linear) or _Part((linear.terms, linear.base), level, bits)
        steps = any(c.unrolled > 1 for c, _ in linear.terms)
        if way == "cyclic" and not steps and all(f % factor == 0 for _, f in linear.terms):
            inner = tuple((c, f // factor) for c, f in linear.terms)
            return _Part((inner, linear.base // factor), level, max(1, bits - factor.bit_length() + 1), shifted=True)
        if way != "cyclic":
            return _Part(("within", way, factor, linear.terms, linear.base), level, bits)
        common = 1 if steps else _known_divisor(linear, factor)
        quotient = LinearForm(linear.base // common, tuple((c, f // common) for c, f in linear.terms))
        factor //= common
        bits = max(1, max(quotient.range[1], 0).bit_length())
        divided = factor & (factor - 1) != 0 and not self._keeps(quotient)
        # a pragma that unrolls by the number of banks gives one of them to each of its lanes, in one word
        lanes = 0 if self.counters and factor == self.counters[-1].unrolled else quotient.base
        return _Part(("within", factor, quotient.terms, lanes), level, bits, divided=divided)

    def _keeps(self, index: LinearForm) -> bool:
        """Whether a loop of one counter keeps a quotient or a remainder as it goes on, instead of dividing."""
        return len(self.counters) == 1 and all(f == c.unrolled for c, f in index.terms)

    def _when(self, part: _Part, made: dict[object, Moment], before_dsp: bool = False) -> Moment:
        """When a part is there. `before_dsp`: its addition is done by the DSP that multiplies with it."""
        if part.level < 0:
            return 0, 0.0
        if (part.key, before_dsp) in made:
            return made[part.key, before_dsp]
        if part.sum_of is None:
            moment = self._divide(part) if part.divided else (0, self.begin)
        else:
            product, column = part.sum_of
            if product.multiplies and not before_dsp and self._together(product, column, part):
                at, offset = max(self._when(product.part, made, True), self._when(column, made))
                moment = at + (offset > self.begin + self.adding) + PRODUCT_STAGES, 0.0
                self._build(("mac", part.key))
            else:
                moment = max(self._product(product, made), self._when(column, made))
                if not before_dsp and column.key != ((), 0) and not self._beside(product, column):
                    moment = self._add(moment)
                    self.added.add(part.key)
        made[part.key, before_dsp] = moment
        return moment

    @staticmethod
    def _beside(product: _Product, column: _Part) -> bool:
        """Whether an addition is none, since its parts have no digit in common and the tool knows it."""
        return signed_digits(product.length) == 1 and (column.shifted or column.level < 0)

    def _product(self, product: _Product, made: dict[object, Moment]) -> Moment:
        moment = self._when(product.part, made)
        digits = signed_digits(product.length)
        if product.part.level < 0 or digits == 1:
            return moment
        if digits == 2:
            return self._add(moment)
        if product.in_dsp:
            self._build(("mul", product.part.key, product.length))
        return moment[0] + 1, 0.0

    def _divide(self, part: _Part) -> Moment:
        """By a constant: a product with its reciprocal, two bits wider than what is divided."""
        if part.bits + 2 > _LUT_BITS:
            self._build(("div", part.key))
        return 1, 0.0

    def _build(self, key: object) -> None:
        if key not in self.units:
            self.units.add(key)
            self.dsp += 1

    def _add(self, moment: Moment) -> Moment:
        at, offset = moment
        return (at + 1, self.adding) if offset + self.adding > self.budget else (at, offset + self.adding)

    def _together(self, product: _Product, column: _Part, total: _Part) -> bool:
        """Whether a product and its addition become one DSP."""
        if column.level < 0 or len(self.sums[product.part.key, product.length]) > 1:
            return False
        if product.in_dsp or product.part.sum_of is not None:
            return True
        return not any(product.part.level < at <= total.level for at in self.blocks)

    def _begun_with(self, guard: KernelValue) -> set[int]:
        """Counters whose first iteration a condition asks for, with that of all inside them: where outer values are
        made. One that holds for every iteration of an inner loop is a block of that loop's own."""
        first = {self.position[c] for c, at in pinned(guard).items() if at == 0 and c in self.position}
        inner = len(self.counters)
        while inner - 1 in first:
            inner -= 1
        return first & set(range(inner, len(self.counters)))

    def _first_blocks(self, item: Pipeline | Straight) -> set[int]:
        """Counters (by position) in whose first iteration alone something happens: a basic block of its own, which
        parts what is computed before the inner loop from what is computed in it."""
        if not isinstance(item, Pipeline) or not item.counters:
            return set()
        stored = {(n.array, *(a.linear for a in n.args[1:])) for n in self.accesses if n.op == "store"}
        begun: set[object] = set()
        """Words that begin with a constant: they live in a register of the inner loop."""
        found: set[int] = set()
        for node in item.graph.nodes:
            if node.op not in ("load", "store", "take", "put", "dead") or node.guard is None:
                continue
            begins = node.op == "store" or (node.op == "dead" and node.array is not None)
            if begins and node.guard in item.sunk and node.args[0].constant:
                begun.add((node.array, *(a.linear for a in node.args[1:])))
                continue
            found.update(self._begun_with(node.guard))
            if node.guard not in item.sunk:  # a condition in the innermost loop's body parts that from what is around
                found.add(len(item.counters) - 1)
        innermost: Counter = item.counters[-1]
        for node in self.accesses:
            word = (node.array, *(a.linear for a in node.args))
            still = all(a.linear is not None and innermost not in dict(a.linear.terms) for a in node.args)
            if node.op == "load" and still and word in stored and word not in begun:
                found.add(len(item.counters) - 1)
        return found
