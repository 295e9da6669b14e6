"""A kernel's source as what may be changed in it, and written again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.parsing import Unit
from penstock.compiler.hls_in.pragmas import pragmas_of
from penstock.compiler.hls_in.syntax import Tree, assigned_in, is_tree, names_in, variable_of
from penstock.profiling.kernels.explore.accesses import NUMBERS, AccessReader, does_more
from penstock.profiling.kernels.explore.loop_tree import INDENT, BodyReader, SourceNode, SourceStatement, written
from penstock.profiling.kernels.explore.moves import Banks, fresh, split
from penstock.profiling.kernels.explore.own_names import with_own_names

_MATH = (
    "sqrt",
    "rsqrt",
    "fabs",
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "pow",
    "fmax",
    "fmin",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "erf",
)
_PURE = frozenset({"abs", "min", "max", *_MATH, *(f"{name}f" for name in _MATH)})
_INTEGERS = {
    ("int", bits, signed): word if signed else f"unsigned {word}"
    for bits, word in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    for signed in (True, False)
} | {("int", 8, True): "signed char", ("int", 1, False): "bool"}
_CHOSEN = frozenset({"pipeline", "unroll", "array_partition", "array_reshape", "loop_flatten", "loop_tripcount"})
"""Pragmas that are chosen anew."""


@dataclass(frozen=True)
class KernelSource:
    text: str
    nodes: tuple[SourceNode, ...]
    names: frozenset[str]
    dims: Mapping[str, tuple[int, ...]]
    pragmas: tuple[str, ...]
    start: int
    end: int
    declared: Mapping[str, str]
    """Arguments and local arrays as a parameter list declares them; what cannot be declared so is left out."""
    top: str
    top_at: int
    """Where the top function begins."""
    given: str
    """The text as it was given, before variables got names of their own."""

    def with_nodes(self, nodes: tuple[SourceNode, ...], banks: Banks, groups: Sequence[Sequence[int]] = ()) -> str:
        """The source with another body of its top function; with groups, each is a task of its own."""
        lines = ["{", *(["#pragma HLS dataflow"] if groups else [])]
        lines += [f"#pragma HLS {pragma}" for pragma in self.pragmas]
        local = {node.text: node for node in nodes if isinstance(node, SourceStatement) and node.accesses.declared}
        inner = {name for node in local.values() for name in node.accesses.declared}
        lines += self._cut(banks, self.dims.keys() - inner)
        for node in nodes:
            if isinstance(node, SourceStatement) or not groups:
                lines += written((node,), 1)
            if isinstance(node, SourceStatement):
                lines += self._cut(banks, node.accesses.declared)
        tasks: list[str] = []
        for number, group in enumerate(groups, 1):
            name = fresh(f"{self.top}_task{number}", self.names)
            used = {access.name for at in group for access in nodes[at].accesses.touched}
            taken = [one for one in self.declared if one in used]
            tasks += [f"static void {name}({', '.join(self.declared[one] for one in taken)}) {{"]
            tasks += [*written(tuple(nodes[at] for at in group), 1), "}", ""]
            lines.append(f"{INDENT}{name}({', '.join(taken)});")
        before = (
            self.text[: self.top_at] + "\n".join([*tasks, ""] if tasks else []) + self.text[self.top_at : self.start]
        )
        return before + "\n".join([*lines, "}"]) + self.text[self.end + 1 :]

    def _cut(self, banks: Banks, names: frozenset[str] | set[str]) -> Iterator[str]:
        for (name, dim), factor in sorted(banks.items()):
            if name in names and name in self.dims and dim < len(self.dims[name]):
                way = "complete" if factor >= self.dims[name][dim] else f"cyclic factor={factor}"
                yield f"{INDENT}#pragma HLS array_partition variable={name} {way} dim={dim + 1}"


def named_apart(unit: Unit, top: str, folder: Path) -> Unit:
    """The source with a name of its own for each variable of the top function; written into a folder if need be."""
    tree = _top_of(unit, top)
    text = unit.sources.texts[unit.sources.main]
    lines = BodyReader(text, AccessReader({}, _PURE), _integer, unit.sources.main.name)
    return with_own_names(unit, tree, _outer(unit, tree), lines, folder)


def _top_of(unit: Unit, top: str) -> Tree:
    file = unit.sources.main.name
    trees = [t for t in unit.declarations if t[0] == "function" and t[2] == top and t[6] is not None]
    if len(trees) != 1 or not str(trees[0][6][1][0]).endswith("/" + file):
        raise PenstockError(
            code="no-top", what=f"there is no one function {top!r} with a body in this file", where=f"{file}:1:1",
            hint="name the top with --top, and the file that holds its body",
        )  # fmt: skip
    return trees[0]


def _outer(unit: Unit, tree: Tree) -> set[str]:
    return {p[0] for p in tree[3]} | {t[2] for t in unit.declarations if t[0] == "declare"}


def read_source(unit: Unit, top: str, given: str | None = None) -> KernelSource:
    """The top function of a source, its loops split as far as dependences allow."""
    text = unit.sources.texts[unit.sources.main]
    file = unit.sources.main.name
    tree = _top_of(unit, top)
    body = tree[6]
    heads = set(_loop_variables(body, declared=True))
    outer = _outer(unit, tree)
    constants = {
        t[2]: v for t in unit.declarations if t[0] == "declare" and t[6] and (v := _integer(t[4])) is not None
    }  # fmt: skip
    here = [s for s in body[3] if s[0] == "group"]
    constants |= {p[2]: v for s in here for p in s[2] if p[6] and (v := _integer(p[4])) is not None}
    loose = frozenset(_loose(body))
    _check_names(body, outer, heads, loose, file)
    assigned = frozenset(assigned_in(body))
    reader = AccessReader(constants, _pure_functions(unit), assigned)

    def constant(tree: Tree) -> int | None:
        found = reader.affine(tree)
        return found.base if found is not None and not found.factors else None

    lines = BodyReader(text, reader, constant, file, loose)
    start, end = lines.span_of(body)
    kept: list[str] = []
    first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
    for pragma in pragmas_of(file, text):
        if not first <= pragma.line <= last or pragma.kind in _CHOSEN:
            continue
        if pragma.kind not in ("interface", "inline", "bind_storage", "bind_op", "resource"):
            raise PenstockError(
                code="not-explored", what=f"#pragma HLS {pragma.kind} in a kernel that is to be built anew",
                where=f"{file}:{pragma.line}:{pragma.column}",
                limit="kept are interface, inline, bind_storage, bind_op, resource; others are chosen",
                hint="take the pragma out, or keep the structure and run `penstock analyse --fix`",
            )  # fmt: skip
        kept.append(pragma.kind + "".join(f" {k}={v}" if v else f" {k}" for k, v in pragma.options.items()))
    dims = {p[0]: _dims(p[1]) for p in tree[3]} | {p[2]: _dims(p[3]) for s in here for p in s[2]}
    names = frozenset(re.findall(r"[A-Za-z_]\w*", text))
    return KernelSource(
        text, split(lines.nodes(body)), names, {n: d for n, d in dims.items() if d}, tuple(kept), start, end,
        _declared([*((p[0], p[1]) for p in tree[3]), *((p[2], p[3]) for s in here for p in s[2])]), top,
        text.rfind("\n", 0, lines.offset(tree)) + 1, text if given is None else given,
    )  # fmt: skip


def _pure_functions(unit: Unit) -> frozenset[str]:
    """Functions that take numbers, change nothing but variables of their own, and give a number."""
    bodies: dict[str, list[Tree]] = {}
    for tree in unit.declarations:
        if tree[0] == "function" and tree[6] is not None:
            bodies.setdefault(tree[2], []).append(tree)
    found = set(_PURE - bodies.keys())
    fixed = {t[2] for t in unit.declarations if t[0] == "declare" and t[6]}
    while True:
        more = {
            name for name, trees in bodies.items()
            if name not in found and all(_is_pure(tree, found, fixed) for tree in trees)
        }  # fmt: skip
        if not more:
            return frozenset(found)
        found |= more


def _is_pure(tree: Tree, pure: set[str], fixed: set[str]) -> bool:
    body = tree[6]
    if any(parameter[1][0] not in NUMBERS for parameter in tree[3]):
        return False
    own = {parameter[0] for parameter in tree[3]} | {part[2] for part in _declarations(body)}
    own |= set(_loop_variables(body, declared=True))
    if any(part[5] or part[3][0] not in (*NUMBERS, "array") for part in _declarations(body)):
        return False
    return set(names_in(body)) <= own | fixed and set(assigned_in(body)) <= own and not does_more(body, frozenset(pure))


def _declared(variables: Sequence[tuple[str, Tree]]) -> dict[str, str]:
    """How a parameter list declares each variable that it can."""
    found: dict[str, str] = {}
    for name, type_ in variables:
        dims = _dims(type_)
        while type_[0] in ("array", "reference"):
            type_ = type_[-1]
        word = type_[0] if type_[0] in ("float", "double", "half") else ""
        if type_[0] == "int":
            word = _INTEGERS.get(tuple(type_), "")
        if word:
            found[name] = f"{word} {name}" + "".join(f"[{length}]" for length in dims)
    return found


def _dims(type_: Tree) -> tuple[int, ...]:
    found: list[int] = []
    while type_[0] in ("array", "reference"):
        if type_[0] == "array" and type_[1] is not None:
            found.append(type_[1])
        type_ = type_[-1]
    return tuple(found)


def _integer(tree: Tree | None) -> int | None:
    if tree is None:
        return None
    found = AccessReader({}, frozenset()).affine(tree)
    return found.base if found is not None and not found.factors else None


def _loop_variables(tree: Tree, *, declared: bool = False) -> Iterator[str]:
    """What loops count with; `declared`: only where their heads declare it."""
    if tree[0] == "for" and len(tree) == 7 and (tree[2][0] == "group" or not declared):
        yield variable_of(tree)
    for child in _lists(tree):
        yield from _loop_variables(child, declared=declared)


def _loose(body: Tree) -> Iterator[str]:
    """Counters that the body declares and that nothing but loops over them uses."""
    own = {p[2] for s in body[3] if s[0] == "group" for p in s[2] if p[3][0] == "int" and p[3][1] >= 32 and not p[4]}
    for name in own & set(_loop_variables(body)):
        if not any(_uses(statement, name) for statement in body[3] if statement[0] != "group"):
            yield name


def _uses(tree: Tree, name: str) -> bool:
    """Whether a name is used outside of loops over it."""
    if tree[0] == "for" and len(tree) == 7 and variable_of(tree) == name:
        return False
    if tree[0] == "name" and tree[2] == name:
        return True
    return any(_uses(child, name) for child in _lists(tree))


def _declarations(tree: Tree, head: bool = False) -> Iterator[Tree]:
    """Declarations of a body, but not those of loops' heads."""
    if tree[0] == "group" and not head:
        yield from tree[2]
    for at, child in enumerate(tree):
        if is_tree(child):
            if isinstance(child[0], str):
                yield from _declarations(child, tree[0] == "for" and at == 2)
            else:
                for one in child:
                    if is_tree(one) and isinstance(one[0], str):
                        yield from _declarations(one)


def _lists(tree: Tree) -> Iterator[Tree]:
    for child in tree:
        if is_tree(child):
            if isinstance(child[0], str):
                yield child
            else:
                yield from (one for one in child if is_tree(one) and isinstance(one[0], str))


def _check_names(body: Tree, outer: set[str], heads: set[str], loose: frozenset[str], file: str) -> None:
    """Names mean one thing each, so that dependences can be told by them. `heads` are declared by loops' heads."""
    known = set(outer)
    for part in _declarations(body):
        if part[2] in known or (part[2] in heads and part[2] not in loose):
            raise _unclear(f"a second variable {part[2]!r} inside of the first, or beside it", part[1], file)
        known.add(part[2])
    for name in outer & heads:
        raise _unclear(f"a loop over {name!r}, which is an argument or global too", body[1], file)


def _unclear(what: str, place: list[object], file: str) -> PenstockError:
    return PenstockError(
        code="not-explored", what=what, where=f"{file}:{place[1]}:{place[2]}",
        limit="dependences are told by names", hint="give each variable a name of its own",
    )  # fmt: skip
