"""Calls that have to do with structs, while libclang's syntax is read: methods, operators, what gives a struct."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.compiler.hls_in.parse_calls import given_to
from penstock.compiler.hls_in.parse_records import ClangCursor, RecordReader
from penstock.compiler.hls_in.parse_refs import Path, Ref, SyntaxList, chain, field_of, replaced

cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind
TypeKind: Any = cindex.TypeKind


class MethodReader(RecordReader):
    """The part of the reader that knows what a source's structs do themselves."""

    def into(
        self, cursor: ClangCursor, target: ClangCursor, arguments: list[ClangCursor], wanted: list[Path]
    ) -> dict[Path, SyntaxList]:
        """A function that gives a struct, called before the statement in hand, into a variable of its own."""
        place, name = self.place(cursor), self.fresh_name()
        type_ = cursor.type
        for suffix, leaf in self.leaves(type_) or []:
            declared = ["declare", place, name + suffix, leaf, None, False, False]
            self.pending.append(["group", place, [declared]])
        given = [["name", place, name + suffix] for suffix, _ in self.leaves(type_) or []]
        own, others = self._object_of(cursor, target, arguments)
        values = [*own, *given, *(tree for argument in others for tree in self.argument(argument))]
        self.pending.append(["expression", place, ["call", place, self.called_as(target), values, [], ["void"]]])
        return {path: Ref(name).tree(place, path) for path in wanted}

    def _object_of(
        self, cursor: ClangCursor, target: ClangCursor, arguments: list[ClangCursor]
    ) -> tuple[list[SyntaxList], list[ClangCursor]]:
        """The fields of the object that a method is called for, and the method's other arguments."""
        if target.kind != CursorKind.CXX_METHOD or target.is_static_method():
            return [], arguments
        if _as_sign(cursor, target, arguments):
            return self.argument(arguments[0]), arguments[1:]
        owner = _owner(cursor)
        given = Ref("this") if owner is None else self.ref(owner)
        if owner is not None and given is None:
            return self.argument(owner), arguments
        place, leaves = self.place(cursor), self.leaves(target.semantic_parent.type) or []
        return [field_of(place, given, suffix) for suffix, _ in leaves if given is not None], arguments

    def given_place(self, cursor: ClangCursor) -> Ref | None:
        """What a method names that does nothing but give a reference: `T &at(int i) { return data[i]; }`."""
        target = cursor.referenced
        if target is None or target.kind != CursorKind.CXX_METHOD or target.is_static_method():
            return None
        if not self.written(target):
            return None
        if target.result_type.get_canonical().kind != TypeKind.LVALUEREFERENCE:
            return None
        definition = target.get_definition()
        body = next(child for child in definition.get_children() if child.kind == CursorKind.COMPOUND_STMT)
        returned = [inner for child in body.get_children() for inner in child.get_children()]
        if [child.kind for child in body.get_children()] != [CursorKind.RETURN_STMT] or len(returned) != 1:
            return None
        found = self.ref(returned[0])
        arguments = given_to(cursor)
        written = _as_sign(cursor, target, arguments)
        owner = arguments[0] if written else _owner(cursor)
        base = Ref("this") if owner is None else self.ref(owner)
        given = arguments[1:] if written else arguments
        if found is None or base is None or found.name.split(".")[0] != "this":
            return None
        if any(self.paths(argument.type) is not None for argument in given):
            return None
        names = [child.spelling for child in definition.get_children() if child.kind == CursorKind.PARM_DECL]
        values = dict(zip(names, map(self.expression, given), strict=False))
        indices = (replaced(index, values) for index in found.indices)
        return Ref(base.name + found.name.removeprefix("this"), (*base.indices, *indices))

    def of_record(
        self, cursor: ClangCursor, called: str, arguments: list[ClangCursor], children: list[ClangCursor]
    ) -> SyntaxList | None:
        """A call that has to do with structs; None for every other one."""
        owner = _owner(cursor) if children else None
        method = bool(children) and children[0].kind == CursorKind.MEMBER_REF_EXPR
        target = cursor.referenced
        written = target is not None and self.written(target)
        if method and called in ("read", "write") and len(arguments) == 1 and owner is not None and not written:
            wanted = self.paths(arguments[0].type)
            if wanted is not None:
                return (self.taken if called == "read" else self.sent)(cursor, owner, arguments[0], wanted)
        place = self.place(cursor)
        if (given := self.given_place(cursor)) is not None:
            return given.tree(place, ())
        own_method = target is not None and target.kind == CursorKind.CXX_METHOD and target.is_definition()
        if method and target is not None and own_method and not called.startswith("operator"):
            own = self.leaves(target.semantic_parent.type)
            whose = Ref("this") if owner is None else self.ref(owner)
            if own is not None and whose is not None:
                fields = [Ref(whose.name + suffix, whose.indices).tree(place, ()) for suffix, _ in own]
                values = [*fields, *(tree for a in arguments for tree in self.argument(a))]
                return ["call", place, self.called_as(target), values, [], self.type(cursor.type)]
        if not called.startswith("operator") or not arguments:
            return None
        if target is not None and written and not (called == "operator=" and _alike(arguments)):
            return self._own_operator(cursor, target, arguments)
        return self._operator(cursor, called[8:], *arguments) if len(arguments) == 2 else None

    def _own_operator(self, cursor: ClangCursor, target: ClangCursor, arguments: list[ClangCursor]) -> SyntaxList:
        """An operator of which the source says what it does."""
        place, wanted = self.place(cursor), self.paths(target.result_type)
        if wanted is not None:  # what it does to its operands: the struct itself has no value here
            self.into(cursor, target, arguments, wanted)
            return ["literal", place, 0, ["int", 32, True]]
        own, others = self._object_of(cursor, target, arguments)
        values = [*own, *(tree for argument in others for tree in self.argument(argument))]
        return ["call", place, self.called_as(target), values, [], self.type(target.result_type)]

    def _operator(
        self, cursor: ClangCursor, sign: str, left: ClangCursor, right: ClangCursor
    ) -> SyntaxList | None:  # fmt: skip
        """What every struct or vector knows."""
        wanted = self.paths(right.type)
        if sign in ("<<", ">>") and wanted is not None and self.type(left.type.get_canonical())[0] != "int":
            return self.sent(cursor, left, right, wanted) if sign == "<<" else self.taken(cursor, left, right, wanted)
        wanted = self.paths(left.type)
        if wanted is None:
            return None
        if sign == "=":
            return self.assigned(cursor, left, right, wanted)
        if sign == "[]":
            found = self.ref(cursor)
            return found.tree(self.place(cursor), ()) if found is not None else None
        if sign in ("+=", "-=", "*=", "/="):
            place, into, values = self.place(cursor), self.ref(left), self.numbers(right, wanted)
            if into is not None and values is not None:
                number = ["int", 32, True]
                return chain([["binary", place, sign, into.tree(place, p), values[p], number] for p in wanted])
        return None


def _owner(cursor: ClangCursor) -> ClangCursor | None:
    """The object of a method's call, where it is named."""
    member = next(iter(cursor.get_children()), None)
    return next(iter(member.get_children()), None) if member is not None else None


def _as_sign(cursor: ClangCursor, target: ClangCursor, arguments: list[ClangCursor]) -> bool:
    """Whether an operator is written between its operands, the first of which is the object."""
    return cursor.spelling.startswith("operator") and len(arguments) > len(list(target.get_arguments()))


def _alike(arguments: list[ClangCursor]) -> bool:
    """Whether a struct is set to one of its own kind: whatever the source says of that, it is a copy."""
    names = [a.type.get_canonical().spelling.removeprefix("const ").rstrip(" &") for a in arguments]
    return len(set(names)) == 1
