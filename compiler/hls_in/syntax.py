"""Questions about syntax trees: nested lists, [kind, place, ...], as parse_process.py writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

Tree = list[Any]
LEFT = "left "
"""What the flag of a loop begins with that a `break` or a condition of its own ends."""
UNBOUNDED = "unbounded"
"""The bound of a loop of which the source does not say how often it goes round."""


def is_tree(value: object) -> TypeGuard[Tree]:
    """Whether a part of a tree is a list that holds something."""
    return isinstance(value, list) and value != []


def variable_of(tree: Tree) -> str:
    """The variable of a loop."""
    start = tree[2]
    if start[0] == "group" and start[2]:
        return str(start[2][0][2])
    names = list(names_in(start))
    return names[0] if names else ""


def names_in(tree: Tree) -> Iterator[str]:
    """All names in an expression."""
    if len(tree) == 3 and tree[0] == "name":
        yield tree[2]
        return
    for child in tree:
        if is_tree(child):
            yield from names_in(child)


def declared_in(tree: Tree) -> list[tuple[str, Tree]]:
    """Names and types that a statement declares."""
    return [(part[2], part[3]) for part in tree[2]] if tree[0] == "group" else []


def is_no_place(tree: Tree) -> bool:
    """Whether an expression is a value that lies nowhere: what a reference gets of it is a copy."""
    while tree[0] == "cast":
        tree = tree[3]
    return tree[0] in ("literal", "binary", "choice", "call") or (tree[0] == "unary" and tree[2] != "*")


def names_of_counters(tree: Tree) -> set[str]:
    """Variables that loops anywhere in a statement count with."""
    found = {variable_of(tree)} if tree[0] == "for" and len(tree) == 7 else set[str]()
    for child in tree:
        if is_tree(child):
            found |= names_of_counters(child)
    return found


def declared_within(tree: Tree) -> set[str]:
    """Names that a statement declares anywhere in it."""
    found = {name for name, _ in declared_in(tree)} if tree[0] == "group" and len(tree) == 3 else set[str]()
    for child in tree:
        if is_tree(child):
            found |= declared_within(child)
    return found


_STEPS = ("++", "--", "p++", "p--")


def _assigns(sign: object) -> bool:
    return str(sign).endswith("=") and sign not in ("==", "!=", "<=", ">=")


def _targets(node: Tree) -> Iterator[Tree]:
    """What one node of a tree assigns to."""
    if (node[0] == "binary" and len(node) == 6 and _assigns(node[2])) or (
        node[0] == "unary" and len(node) == 5 and node[2] in _STEPS
    ):
        yield node[3]
    elif node[0] == "operator" and len(node) == 4 and node[3]:  # of integers of any width, or a stream
        if _assigns(node[2]) or node[2] in _STEPS:
            yield node[3][0]
        elif node[2] == ">>" and len(node[3]) == 2:
            yield node[3][1]
    elif node[0] == "method" and len(node) == 5 and node[3] == "read" and node[4]:
        yield node[4][0]


def assigned_in(tree: Tree, heads: bool = True) -> dict[str, Tree]:
    """Names that a statement assigns, in order, each with its place; `heads`: those too that loops count with."""
    found: dict[str, Tree] = {}

    def visit(node: Tree) -> None:
        for target in _targets(node):
            _target_name(target, found)
        for child in node[5:6] if node[0] == "for" and len(node) == 7 and not heads else node:
            if is_tree(child):
                visit(child)

    visit(tree)
    return found


def stored_in(tree: Tree) -> set[str]:
    """Names of arrays and pointers of which a statement stores a word itself; a call may store to more."""
    found = {name for target in _targets(tree) if target[0] != "name" for name in list(names_in(target))[:1]}
    return found.union(*(stored_in(child) for child in tree if is_tree(child)))


def compares_numbers(tree: Tree) -> bool:
    """Whether an expression is of names and numbers alone, reads no memory, calls nothing and changes nothing."""
    match tree[0]:
        case "name" | "literal":
            return True
        case "cast":
            return compares_numbers(tree[3])
        case "binary":
            return not _assigns(tree[2]) and compares_numbers(tree[3]) and compares_numbers(tree[4])
        case "unary":
            return tree[2] in ("-", "+", "!", "~") and compares_numbers(tree[3])
        case _:
            return False


def is_flag(name: str, tree: Tree) -> bool:
    """Whether all that a statement does to a variable is setting it to constants: what it is then, data decide."""
    if len(tree) == 6 and tree[0] == "binary" and _assigns(tree[2]):
        found: dict[str, Tree] = {}
        _target_name(tree[3], found)
        value = tree[4]
        while value[0] == "cast":
            value = value[3]
        if name in found and (tree[2] != "=" or value[0] != "literal"):
            return False
    elif len(tree) == 5 and tree[0] == "unary" and tree[2] in _STEPS and name in names_in(tree[3]):
        return False
    return all(is_flag(name, child) for child in tree if is_tree(child))


def _target_name(tree: Tree, found: dict[str, Tree]) -> None:
    while tree[0] == "cast" or (tree[0] == "unary" and tree[2] == "*"):
        tree = tree[3]
    if tree[0] == "name":
        found.setdefault(tree[2], tree[1])


def takes_token(tree: Tree) -> bool:
    """Whether an expression reads a stream."""
    return tree[0] == "method" or any(takes_token(part) for part in tree if is_tree(part) and isinstance(part[0], str))


def indexed_in(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Names of arrays that a statement indexes, with each index."""
    if len(tree) == 4 and (tree[0] == "index" or (tree[0] == "operator" and tree[2] == "[]" and len(tree[3]) == 2)):
        base, index = tree[2:] if tree[0] == "index" else tree[3]
        name = next(names_in(base), None)
        if name is not None:
            yield name, index
    for child in tree:
        if is_tree(child):
            yield from indexed_in(child)


def statements_of(body: Tree) -> list[Tree]:
    return body[3] if body[0] == "block" else [body]


def unlabelled(tree: Tree) -> tuple[Tree, str]:
    """A statement without its label, and the label."""
    return (tree[3], tree[2]) if tree[0] == "label" else (tree, "")


def loops_in(tree: Tree | None) -> Iterator[Tree]:
    """The loops of a statement that stand in no other loop."""
    if tree is None:
        return
    kind = str(tree[0])
    if kind == "for":
        yield tree
    elif kind == "block":
        for child in tree[3]:
            yield from loops_in(child)
    elif kind == "if":
        yield from loops_in(tree[3])
        yield from loops_in(tree[4])
    elif kind == "label":
        yield from loops_in(tree[3])


def all_calls_in(tree: Tree) -> Iterator[Tree]:
    """The calls of a statement."""
    if len(tree) == 6 and tree[0] == "call":
        yield tree
    for child in tree:
        if is_tree(child):
            yield from all_calls_in(child)


def calls_in(tree: Tree) -> Iterator[str]:
    """Names of functions that a statement calls."""
    for call in all_calls_in(tree):
        yield call[2]


def parts_of(tree: Tree) -> list[Tree]:
    """The statements inside of one."""
    match tree[0]:
        case "block":
            return tree[3]
        case "if":
            return [part for part in tree[3:5] if part is not None]
        case "label":
            return [tree[3]]
        case "for":
            return [tree[5]]
        case _:
            return []


def may_leave(tree: Tree | None) -> bool:
    """Whether a `break` leaves the loop around others whose body this is."""
    if tree is None or tree[0] not in ("leaves", "block", "if", "label"):
        return False
    return tree[0] == "leaves" or any(map(may_leave, parts_of(tree)))


def number_loops(body: Tree) -> dict[int, int]:
    """The number of each loop without a label among those of its function, from which Vitis makes its name."""
    numbers: dict[int, int] = {}

    def visit(tree: Tree, labelled: bool) -> None:
        if tree[0] == "for" and not labelled:
            numbers[id(tree)] = len(numbers) + 1
        for part in parts_of(tree):
            visit(part, tree[0] == "label")

    visit(body, False)
    return numbers
