"""What declarations say of fields and functions, while libclang's syntax is read."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind
TypeKind: Any = cindex.TypeKind
_DEPTH = 8


def has_union(type_: Any, depth: int = 0) -> bool:
    """Whether fields lie in one place: what one is told, another is."""
    canonical = type_.get_canonical()
    if canonical.kind != TypeKind.RECORD or depth > _DEPTH:
        return False
    union = canonical.get_declaration().kind == CursorKind.UNION_DECL
    return union or any(has_union(one.type, depth + 1) for one in canonical.get_fields())


def default_values(type_: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Fields, by what is written behind a variable's name, that begin with a value of their own: `int v = 0;`."""
    canonical = type_.get_canonical()
    if canonical.kind != TypeKind.RECORD or depth > _DEPTH:
        return
    for one in canonical.get_fields():
        values = [child for child in one.get_children() if child.kind.is_expression()]
        if one.type.get_canonical().kind == TypeKind.RECORD and not values:
            for suffix, value in default_values(one.type, depth + 1):
                yield f".{one.spelling}{suffix}", value
        elif values and one.type.get_canonical().kind not in (TypeKind.RECORD, TypeKind.CONSTANTARRAY):
            yield f".{one.spelling}", values[-1]


def has_body(target: Any) -> bool:
    """Whether the source, or a header, says what a function does."""
    found = target.get_definition()
    if found is None or not any(child.kind == CursorKind.COMPOUND_STMT for child in found.get_children()):
        return False
    # what the compiler makes itself has a body, and stands in no text
    if target.kind == CursorKind.CXX_METHOD and target.is_default_method():
        return False
    return target.kind != CursorKind.CONSTRUCTOR or target.location != target.semantic_parent.location
