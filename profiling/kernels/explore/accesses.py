"""Which words the statements of a loop nest read and write, as sums of its loops' counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.compiler.hls_in.syntax import Tree, is_tree, names_in


@dataclass(frozen=True)
class CounterSum:
    """base + the sum of factor · variable."""

    base: int
    factors: Mapping[str, int]

    def plus(self, other: CounterSum, times: int = 1) -> CounterSum:
        names = {*self.factors, *other.factors}
        sums = {n: self.factors.get(n, 0) + times * other.factors.get(n, 0) for n in names}
        return CounterSum(self.base + times * other.base, {n: f for n, f in sums.items() if f})

    def times(self, factor: int) -> CounterSum:
        return CounterSum(self.base * factor, {n: f * factor for n, f in self.factors.items()} if factor else {})


@dataclass(frozen=True)
class WordAccess:
    """One word of an array, or a scalar (no index). An index is None where it is no sum of counters."""

    name: str
    index: tuple[CounterSum | None, ...]
    writes: bool


@dataclass(frozen=True)
class Accesses:
    """What a statement touches. What is not known to be harmless is said in `opaque`: nothing moves across it."""

    touched: tuple[WordAccess, ...]
    declared: frozenset[str] = frozenset()
    opaque: str = ""

    def plus(self, other: Accesses) -> Accesses:
        return Accesses(
            self.touched + other.touched, self.declared | other.declared, self.opaque or other.opaque
        )  # fmt: skip


NOTHING = Accesses(())
NUMBERS = ("int", "float", "double", "half", "fixed")
_STEPS = ("++", "--", "p++", "p--")
_LOOKS = frozenset(
    {"range", "to_int", "to_uint", "to_int64", "to_uint64", "to_float", "to_double", "to_bool", "length", "get_bit",
     "test", "bit", "is_neg", "iszero", "sign", "and_reduce", "or_reduce", "xor_reduce"}
)  # fmt: skip
"""Methods of numbers of any width that change nothing."""
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|=")


class AccessReader:
    """Reads statements in the order of the program. `constants` are names with a known integer, `assigned` those that
    statements change."""

    def __init__(
        self, constants: Mapping[str, int], pure: frozenset[str], assigned: frozenset[str] = frozenset()
    ) -> None:
        self.constants = constants
        self.pure = pure
        self.assigned = assigned
        self._sums: dict[str, CounterSum] = {}
        """Variables that are a sum of counters wherever they are known: int row = i + k - 1."""

    def statement(self, tree: Tree | None) -> Accesses:
        if tree is None:
            return NOTHING
        match tree[0]:
            case "block":
                return self._all(tree[3])
            case "if":
                return self._all([["expression", tree[1], tree[2]], tree[3], tree[4]])
            case "expression":
                return (
                    Accesses(tuple(self.expression(tree[2]))) if not does_more(tree, self.pure) else self._opaque(tree)
                )
            case "group":
                return self._declared(tree)
            case "label":
                return self.statement(tree[3])
            case _:
                return self._opaque(tree)

    def _all(self, trees: list[Tree | None]) -> Accesses:
        found = NOTHING
        for tree in trees:
            found = found.plus(self.statement(tree))
        return found

    def _declared(self, tree: Tree) -> Accesses:
        found = NOTHING
        for part in tree[2]:
            _, _, name, type_, init, static, constant = part
            fixed = constant and init is not None and self.constants.keys() >= set(names_in(init))
            if (static and not fixed) or type_[0] not in (*NUMBERS, "array"):
                return self._opaque(part)
            if type_[0] == "int" and type_[1] >= 32 and init is not None and name not in self.assigned:
                value = self.affine(init)
                if value is not None:
                    self._sums[name] = value
            if init is not None and (init[0] == "list" or does_more(init, self.pure)):
                if not constant:
                    return self._opaque(part)
                init = None
            touched = [*(self.expression(init) if init is not None else ()), WordAccess(name, (), True)]
            found = found.plus(Accesses(tuple(touched), frozenset({name})))
        return found

    def _opaque(self, tree: Tree) -> Accesses:
        file, line, column = tree[1]
        del file
        return Accesses((), frozenset(), f"line {line}:{column}, whose effects are not followed")

    def expression(self, tree: Tree) -> Iterator[WordAccess]:
        """All accesses of an expression, in no order that matters."""
        match tree[0]:
            case "name":
                if tree[2] not in self.constants:
                    yield WordAccess(tree[2], (), False)
            case "index" | "member":
                yield from self._word(tree, writes=False)
            case "binary" if tree[2] in _ASSIGNING:
                if tree[2] != "=":
                    yield from self.expression(tree[3])
                yield from self.expression(tree[4])
                yield from self._target(tree[3])
            case "operator" if tree[2] in _ASSIGNING and len(tree[3]) == 2:  # of numbers of any width
                if tree[2] != "=":
                    yield from self.expression(tree[3][0])
                yield from self.expression(tree[3][1])
                yield from self._target(tree[3][0])
            case "operator" if tree[2] in _STEPS and tree[3]:
                yield from self.expression(tree[3][0])
                yield from self._target(tree[3][0])
            case "unary" if tree[2] in _STEPS:
                yield from self.expression(tree[3])
                yield from self._target(tree[3])
            case _:
                for child in _children(tree):
                    yield from self.expression(child)

    def _target(self, tree: Tree) -> Iterator[WordAccess]:
        while tree[0] == "cast":
            tree = tree[3]
        if tree[0] == "operator":  # a bit, or some
            yield from self.expression(tree)
            yield from self._target(tree[3][0])
        elif tree[0] == "name":
            yield WordAccess(tree[2], (), True)
        else:
            yield from self._word(tree, writes=True)

    def _word(self, tree: Tree, *, writes: bool) -> Iterator[WordAccess]:
        index: list[CounterSum | None] = []
        while tree[0] in ("index", "cast", "member"):  # a field is taken for its whole struct
            if tree[0] == "member":
                tree = tree[2]
            elif tree[0] == "index":
                index.insert(0, self.affine(tree[3]))
                yield from self.expression(tree[3])
                tree = tree[2]
            else:
                tree = tree[3]
        if tree[0] == "name":
            yield WordAccess(tree[2], tuple(index), writes)

    def affine(self, tree: Tree) -> CounterSum | None:
        match tree[0]:
            case "cast" if tree[2][0] == "int" and tree[2][1] >= 32:
                return self.affine(tree[3])
            case "literal" if isinstance(tree[2], int):
                return CounterSum(tree[2], {})
            case "name":
                if tree[2] in self._sums:
                    return self._sums[tree[2]]
                known = self.constants.get(tree[2])
                return CounterSum(0, {tree[2]: 1}) if known is None else CounterSum(known, {})
            case "unary" if tree[2] == "-":
                inner = self.affine(tree[3])
                return None if inner is None else inner.times(-1)
            case "binary" if tree[2] in ("+", "-", "*"):
                left, right = self.affine(tree[3]), self.affine(tree[4])
                if left is None or right is None:
                    return None
                if tree[2] != "*":
                    return left.plus(right, 1 if tree[2] == "+" else -1)
                if not left.factors:
                    return right.times(left.base)
                return left.times(right.base) if not right.factors else None
            case _:
                return None


def _children(tree: Tree) -> Iterator[Tree]:
    """The expressions inside of one: lists that begin with a kind, or lists of these."""
    for part in tree[2:]:
        if is_tree(part):
            if isinstance(part[0], str):
                yield part
            else:
                yield from (child for child in part if is_tree(child) and isinstance(child[0], str))


def does_more(tree: Tree, pure: frozenset[str]) -> bool:
    """Whether something in it may do more than read words and assign them."""
    kind = tree[0]
    if kind in ("construct", "bad", "text", "list") or (kind == "method" and tree[3] not in _LOOKS):
        return True
    if kind == "operator" and not (tree[2] in ("[]", "()") or tree[2] in _ASSIGNING or tree[2] in _STEPS):
        return True
    if kind == "call" and tree[2] not in pure:
        return True
    if kind == "unary" and tree[2] in ("&", "*"):
        return True
    return any(does_more(child, pure) for child in _children(tree))
