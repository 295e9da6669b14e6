"""Structs, `hls::vector` and methods, taken apart while libclang's syntax is read.

A struct is its fields: `Point p` is `p.x` and `p.y`, an array of structs is an array a field, a stream of structs is a
stream a field, whose tokens come and go together. A vector is an array of lanes of its own that is cut whole.
So whoever walks through the syntax meets numbers, arrays and streams alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any

from penstock.compiler.hls_in.float_functions import FUNCTIONS
from penstock.compiler.hls_in.parse_calls import given_to
from penstock.compiler.hls_in.parse_fields import default_values, has_body, has_union
from penstock.compiler.hls_in.parse_refs import Path, Ref, SyntaxList, chain, field_of
from penstock.compiler.hls_in.parse_templates import template_of

cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind
TypeKind: Any = cindex.TypeKind
ClangCursor = Any
METHODS = (CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR)
_MOST_FIELDS = 1024
_DEPTH = 8
_BASIC = ("hls::stream<", "ap_int<", "ap_uint<", "ap_fixed<", "ap_ufixed<", "_Float16", "half", "ap_bits")


class RecordReader(ABC):
    """The part of the reader that knows types of several numbers. `pending` goes before the statement in hand."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        self.pending: list[SyntaxList] = []
        self.made: list[ClangCursor] = []
        """What calls have made of templates, still to be read."""
        self._names: dict[str, str] = {}
        self._numbers = count()
        self._depth = 0

    # of the reader

    @abstractmethod
    def place(self, cursor: ClangCursor) -> list[Any]: ...

    @abstractmethod
    def bad(self, cursor: ClangCursor, what: str) -> SyntaxList: ...

    @abstractmethod
    def type(self, type_: Any) -> SyntaxList: ...

    @abstractmethod
    def expression(self, cursor: ClangCursor) -> SyntaxList: ...

    # of what knows methods

    @abstractmethod
    def into(
        self, cursor: ClangCursor, target: ClangCursor, arguments: list[ClangCursor], wanted: list[Path]
    ) -> dict[Path, SyntaxList]: ...

    @abstractmethod
    def given_place(self, cursor: ClangCursor) -> Ref | None: ...

    def fresh_name(self) -> str:
        return f"struct{next(self._numbers)}"

    def called_as(self, function: ClangCursor) -> str:
        """A function's name, of which each has one of its own: templates and overloads are several by one name.

        What a header declares keeps its name, which says what it does; one of the source with such a name gets another.
        """
        usr = function.get_usr()
        if self._declared(function):
            return function.spelling
        if usr not in self._names:
            owner = function.semantic_parent
            inside = function.kind in METHODS or (owner.kind == CursorKind.NAMESPACE and owner.spelling[:1].isalpha())
            plain = f"{owner.spelling}::{function.spelling}" if inside else function.spelling
            taken, name = {*self._names.values(), *FUNCTIONS}, plain
            for number in count(1):
                if name not in taken:
                    break
                name = f"{plain}_{number}"
            self._names[usr] = name
            if self._of_template(function) and has_body(function):
                self.made.append(function.get_definition())
        return self._names[usr]

    def _declared(self, function: ClangCursor) -> bool:
        """Whether it is a function of the shipped headers that has no body."""
        file = function.location.file
        ours = file is not None and file.name in self.files
        return function.kind == CursorKind.FUNCTION_DECL and not ours and not has_body(function)

    def written(self, function: ClangCursor) -> bool:
        """Whether the source says what a function does."""
        file = function.location.file
        return file is not None and file.name in self.files and has_body(function)

    def _of_template(self, function: ClangCursor) -> bool:
        """Whether a function of the source is made of a template, by itself or with its struct."""
        file = function.location.file
        own = file is not None and file.name in self.files
        return own and any(
            template_of(one) is not None for one in (function, function.semantic_parent) if one is not None
        )

    # types

    def leaves(self, type_: Any, depth: int = 0) -> list[tuple[str, SyntaxList]] | None:
        """What a variable of such a type is taken apart into: names behind its own, and types. None: nothing."""
        canonical = type_.get_canonical()
        kind = canonical.kind
        if depth > _DEPTH:
            return None
        if kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
            length = canonical.element_count if kind == TypeKind.CONSTANTARRAY else None
            return self._within(canonical.element_type, lambda t: ["array", length, t], depth)
        if kind in (TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):
            name = "pointer" if kind == TypeKind.POINTER else "reference"
            inside = self.leaves(canonical.get_pointee(), depth + 1) or []
            if any(t[0] == "array" for _, t in inside):  # one of them: a context of tables
                name = "reference"
            return [(suffix, [name, t]) for suffix, t in inside] or None
        if kind != TypeKind.RECORD:
            return None
        name = canonical.spelling.removeprefix("const ")
        if name.startswith("hls::stream<"):
            return self._within(canonical.get_template_argument_type(0), lambda t: stream_of(canonical, t), depth)
        if name.startswith("hls::vector<"):
            element, length = canonical.get_template_argument_type(0), _lanes(canonical)
            inner = self.leaves(element, depth + 1) or [("", self.type(element))]
            return [(suffix, ["lanes", length, t]) for suffix, t in inner] if length else None
        if name.startswith(_BASIC):
            return None
        found: list[tuple[str, SyntaxList]] = []
        for one in canonical.get_fields():
            inner = self.leaves(one.type, depth + 1) or [("", self.type(one.type))]
            found += [(f".{one.spelling}{suffix}", t) for suffix, t in inner]
        return found if len(found) <= _MOST_FIELDS else None

    def _within(
        self, type_: Any, wrap: Callable[[SyntaxList], SyntaxList], depth: int
    ) -> list[tuple[str, SyntaxList]] | None:
        inner = self.leaves(type_, depth + 1)
        return None if inner is None else [(suffix, wrap(t)) for suffix, t in inner]

    def paths(self, type_: Any, depth: int = 0) -> list[Path] | None:
        """The numbers of a struct or vector in order; None for what is neither."""
        canonical = type_.get_canonical()
        if canonical.kind == TypeKind.LVALUEREFERENCE:
            canonical = canonical.get_pointee().get_canonical()
        name = canonical.spelling.removeprefix("const ")
        if canonical.kind == TypeKind.CONSTANTARRAY and depth:
            steps: list[tuple[str | int, Any]] = [(k, canonical.element_type) for k in range(canonical.element_count)]
        elif canonical.kind != TypeKind.RECORD or name.startswith(_BASIC) or depth > _DEPTH:
            return None
        elif name.startswith("hls::vector<"):
            steps = [(k, canonical.get_template_argument_type(0)) for k in range(_lanes(canonical))]
        else:
            steps = [(one.spelling, one.type) for one in canonical.get_fields()]
        found: list[Path] = []
        for step, inner in steps:
            below = self.paths(inner, depth + 1)
            found += [(step, *path) for path in below] if below is not None else [(step,)]
            if len(found) > _MOST_FIELDS:
                return None
        return found

    # expressions

    def ref(self, cursor: ClangCursor) -> Ref | None:
        """The variable that an expression of a struct (or an array or stream of them) names."""
        cursor = bare(cursor)
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind == CursorKind.DECL_REF_EXPR:
            return Ref(cursor.spelling)
        if kind == CursorKind.CXX_THIS_EXPR:
            return Ref("this")
        if kind == CursorKind.MEMBER_REF_EXPR:
            base = self.ref(children[0]) if children else Ref("this")
            if base is None:
                return None
            first = self.first_of(children[0]) if children and base.name != "this" else ()
            return Ref(f"{base.name}.{cursor.spelling}", (*base.indices, *first))
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            base = self.ref(children[0])
            return Ref(base.name, (*base.indices, self.expression(children[1]))) if base is not None else None
        if kind == CursorKind.UNARY_OPERATOR and cursor.type.kind == TypeKind.POINTER:  # &one
            return self.ref(children[0])
        if kind == CursorKind.UNARY_OPERATOR and children and children[0].type.kind == TypeKind.POINTER:
            base = self.ref(children[0])
            zero = ["literal", self.place(cursor), 0, ["int", 32, True]]
            return Ref(base.name, (*base.indices, zero)) if base is not None and base.name != "this" else base
        if kind == CursorKind.CALL_EXPR and (given := self.given_place(cursor)) is not None:
            return given
        if kind == CursorKind.CALL_EXPR and cursor.spelling == "operator[]":
            base, index = list(cursor.get_arguments())
            found = self.ref(base)
            return Ref(found.name, (*found.indices, self.expression(index))) if found is not None else None
        return None

    def first_of(self, pointer: ClangCursor) -> tuple[SyntaxList, ...]:
        """How `p->x` chooses among the words of a field: the first, unless the pointer is of one struct with arrays."""
        leaves = self.leaves(pointer.type) if pointer.type.get_canonical().kind == TypeKind.POINTER else None
        if leaves is None or any(type_[0] != "pointer" for _, type_ in leaves):
            return ()
        return (["literal", self.place(pointer), 0, ["int", 32, True]],)

    def numbers(self, cursor: ClangCursor, wanted: list[Path]) -> dict[Path, SyntaxList] | None:
        """Each number of an expression of a struct. None where it gives no values, as a default constructor does."""
        place, given = self.place(cursor), self.ref(cursor)
        cursor = bare(cursor)
        if self.paths(cursor.type) is None and cursor.kind != CursorKind.INIT_LIST_EXPR:  # a number for every lane
            return dict.fromkeys(wanted, self.expression(cursor))
        if given is not None:
            return {path: given.tree(place, path) for path in wanted}
        children = list(cursor.get_children())
        if cursor.kind == CursorKind.INIT_LIST_EXPR:
            return self._listed(cursor, wanted)
        if cursor.kind == CursorKind.CONDITIONAL_OPERATOR:
            condition = self.expression(children[0])
            yes, no = (self.numbers(child, wanted) for child in children[1:])
            if yes is None or no is None:
                return dict.fromkeys(wanted, self.bad(cursor, "a choice between structs without values"))
            number = ["int", 32, True]
            return {path: ["choice", place, condition, yes[path], no[path], number] for path in wanted}
        if cursor.kind == CursorKind.CALL_EXPR:
            return self._called(cursor, wanted)
        return dict.fromkeys(wanted, self.bad(cursor, "this expression of a struct"))

    def _listed(self, cursor: ClangCursor, wanted: list[Path]) -> dict[Path, SyntaxList]:
        place, children = self.place(cursor), list(cursor.get_children())
        found: dict[Path, SyntaxList] = {}
        for head in dict.fromkeys(path[0] for path in wanted):
            if not children:
                break
            below = [path[1:] for path in wanted if path[0] == head]
            first = bare(children[0])
            if below != [()] and first.kind != CursorKind.INIT_LIST_EXPR and self.paths(first.type) is None:
                given, children = children[: len(below)], children[len(below) :]  # without braces of its own
                found |= {(head, *path): self.expression(one) for path, one in zip(below, given, strict=False)}
                continue
            child, children = children[0], children[1:]
            inner = self.numbers(child, below) if below != [()] else {(): self.expression(child)}
            found |= {(head, *path): tree for path, tree in (inner or {}).items()}
        zero = ["literal", place, 0, ["int", 32, True]]
        return {path: found.get(path, zero) for path in wanted}

    def _called(self, cursor: ClangCursor, wanted: list[Path]) -> dict[Path, SyntaxList] | None:
        place, arguments, target = self.place(cursor), given_to(cursor), cursor.referenced
        children = list(cursor.get_children())
        if target is None or target.kind == CursorKind.CONSTRUCTOR:
            if target is not None and has_body(target):
                return self.into(cursor, target, arguments, wanted)
            inner = arguments or [child for child in children if child.kind.is_expression()]
            return self.numbers(inner[0], wanted) if len(inner) == 1 else None
        name = cursor.spelling
        if self.written(target):
            return self.into(cursor, target, arguments, wanted)
        if name.startswith("operator") and len(arguments) == 2 and name[8:] in ("+", "-", "*", "/", "&", "|", "^"):
            left, right = (self.numbers(argument, wanted) for argument in arguments)
            if left is not None and right is not None:
                number = ["int", 32, True]
                return {path: ["binary", place, name[8:], left[path], right[path], number] for path in wanted}
        if children and children[0].kind == CursorKind.MEMBER_REF_EXPR and name == "read":
            owner = self.ref(next(iter(children[0].get_children()), children[0]))
            if owner is not None:
                return {path: ["method", place, owner.tree(place, path), "read", []] for path in wanted}
        if has_body(target):
            return self.into(cursor, target, arguments, wanted)
        return dict.fromkeys(wanted, self.bad(cursor, f"the function {name!r} that gives a struct"))

    def argument(self, cursor: ClangCursor) -> list[SyntaxList]:
        """What a call passes for one argument: a struct's fields one by one."""
        leaves = self.leaves(cursor.type)
        if leaves is None:
            return [self.expression(cursor)]
        place, given = self.place(cursor), self.ref(cursor)
        if given is None:
            name = self.fresh_name()
            self.pending += self.declared(cursor, name, cursor.type, [cursor], False, False)
            given = Ref(name)
        return [field_of(place, given, suffix) for suffix, _ in leaves]

    # statements

    def declared(
        self, cursor: ClangCursor, name: str, type_: Any, inits: list[ClangCursor], static: bool, constant: bool
    ) -> list[SyntaxList]:
        """The declaration of a struct's fields, and what they are set to."""
        place = self.place(cursor)
        leaves = self.leaves(type_) or []
        wanted = self.paths(type_)
        if wanted is None and type_.get_canonical().kind == TypeKind.CONSTANTARRAY and inits:
            return [self._table(cursor, name, leaves, suffix, t, inits[-1], static, constant) for suffix, t in leaves]
        values = self.numbers(inits[-1], wanted) if inits and wanted is not None else None
        first = {suffix: self.expression(value) for suffix, value in default_values(type_)} if values is None else {}
        made = [
            ["group", place, [["declare", place, name + suffix, t, first.get(suffix), static, constant]]]
            for suffix, t in leaves
        ]
        made += [["union", place, name]] if has_union(type_) else []
        if type_.get_canonical().kind in (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE) and inits:
            given = self.ref(inits[-1])
            if given is not None:
                return [
                    ["group", place, [["declare", place, name + s, t, field_of(place, given, s), static, constant]]]
                    for s, t in leaves
                ]
        if values is not None:
            made += [["expression", place, self._set(place, Ref(name), path, values[path])] for path in wanted or []]
        return made

    def _table(
        self, cursor: ClangCursor, name: str, leaves: list[tuple[str, SyntaxList]], suffix: str, type_: SyntaxList,
        init: ClangCursor, static: bool, constant: bool,
    ) -> SyntaxList:  # fmt: skip
        """A field of an array of structs with values from the start."""
        place = self.place(cursor)

        def values(item: ClangCursor, element: Any) -> SyntaxList:
            if element.kind == TypeKind.CONSTANTARRAY:
                inner = [values(child, element.element_type.get_canonical()) for child in item.get_children()]
                return ["list", place, inner]
            wanted = self.paths(element) or []
            found = self.numbers(item, wanted) or {}
            path = tuple(part for part in suffix.split(".") if part)
            return found.get(path, ["literal", place, 0, ["int", 32, True]])

        start = values(init, cursor.type.get_canonical()) if init.kind == CursorKind.INIT_LIST_EXPR else None
        return ["group", place, [["declare", place, name + suffix, type_, start, static, constant]]]

    def assigned(self, cursor: ClangCursor, left: ClangCursor, right: ClangCursor, wanted: list[Path]) -> SyntaxList:
        """A struct set to another, number by number."""
        place, target = self.place(cursor), self.ref(left)
        values = self.numbers(right, wanted)
        if target is None or values is None:
            return self.bad(cursor, "this assignment of a struct")
        return chain([self._set(place, target, path, values[path]) for path in wanted])

    def _set(self, place: list[Any], target: Ref, path: Path, value: SyntaxList) -> SyntaxList:
        return ["binary", place, "=", target.tree(place, path), value, ["int", 32, True]]

    def sent(self, cursor: ClangCursor, stream: ClangCursor, value: ClangCursor, wanted: list[Path]) -> SyntaxList:
        """A struct written to a stream."""
        place, target = self.place(cursor), self.ref(stream)
        values = self.numbers(value, wanted)
        if target is None or values is None:
            return self.bad(cursor, "this write of a struct")
        return chain([["method", place, target.tree(place, path), "write", [values[path]]] for path in wanted])

    def taken(self, cursor: ClangCursor, stream: ClangCursor, into: ClangCursor, wanted: list[Path]) -> SyntaxList:
        """A struct read from a stream into a variable."""
        place, source, target = self.place(cursor), self.ref(stream), self.ref(into)
        if source is None or target is None:
            return self.bad(cursor, "this read of a struct")
        reads = {path: ["method", place, source.tree(place, path), "read", []] for path in wanted}
        return chain([self._set(place, target, path, reads[path]) for path in wanted])


def bare(cursor: ClangCursor) -> ClangCursor:
    """An expression without what only changes its type or copies it."""
    while True:
        inner = [child for child in cursor.get_children() if child.kind.is_expression()]
        wrapped = cursor.kind in (
            CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR, CursorKind.CSTYLE_CAST_EXPR,
            CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
        )  # fmt: skip
        copied = (
            cursor.kind == CursorKind.CALL_EXPR
            and cursor.referenced is not None
            and cursor.referenced.kind == CursorKind.CONSTRUCTOR
            and (cursor.referenced.is_copy_constructor() or cursor.referenced.is_move_constructor())
        )
        if wrapped and cursor.kind != CursorKind.UNEXPOSED_EXPR:
            inner = inner[-1:]  # what stands before are arguments of the type's template
        if not (wrapped or copied) or len(inner) != 1:
            return cursor
        cursor = inner[0]


def stream_of(stream: Any, token: SyntaxList) -> SyntaxList:
    """A stream of tokens, and the depth that its type says, else 0: of a vector, as many as it has lanes."""
    if token[0] in ("lanes", "array"):
        return ["lanes", token[1], stream_of(stream, token[2])]
    return ["stream", token, max(0, stream.get_declaration().get_template_argument_value(1))]


def _lanes(vector: Any) -> int:
    text = vector.spelling.rstrip("> ").rpartition(",")[2].strip().rstrip("ULul")
    return int(text) if text.isdigit() and int(text) <= _MOST_FIELDS else 0
