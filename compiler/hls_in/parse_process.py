"""The process that runs libclang: sources in on stdin, their syntax as JSON out on stdout.

It is a process of its own with bounds on time and memory, because a hostile source may make a compiler run for ever,
fill memory or crash. It reads no file: all text comes in with the request. What it cannot express is a "bad" node
with its place, so that whoever reads the tree can report all of them at once.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
from ctypes import c_double, c_int, c_longlong
from importlib import import_module
from typing import Any

from penstock.compiler.hls_in.parse_calls import given_to, is_constexpr
from penstock.compiler.hls_in.parse_fields import default_values
from penstock.compiler.hls_in.parse_integers import IntegerReader, is_one_bit, lowest_bit
from penstock.compiler.hls_in.parse_records import ClangCursor, stream_of
from penstock.compiler.hls_in.parse_refs import SyntaxList
from penstock.compiler.hls_in.parse_templates import given_constants, macros, named_members

# its Python side has no types
cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind
TypeKind: Any = cindex.TypeKind
BINARY = dict(
    enumerate(
        "* / % + - << >> <=> < > <= >= == != & ^ | && || = *= /= %= += -= <<= >>= &= ^= |= ,".split(),  # noqa: SIM905
        3,
    )
)
UNARY = {1: "p++", 2: "p--", 3: "++", 4: "--", 5: "&", 6: "*", 7: "+", 8: "-", 9: "~", 10: "!"}
INTEGERS = {
    TypeKind.BOOL: (1, False), TypeKind.CHAR_U: (8, False), TypeKind.UCHAR: (8, False), TypeKind.CHAR_S: (8, True),
    TypeKind.SCHAR: (8, True), TypeKind.USHORT: (16, False), TypeKind.SHORT: (16, True), TypeKind.UINT: (32, False),
    TypeKind.INT: (32, True), TypeKind.ULONG: (64, False), TypeKind.LONG: (64, True),
    TypeKind.ULONGLONG: (64, False), TypeKind.LONGLONG: (64, True), TypeKind.INT128: (128, True),
}  # fmt: skip
WRAPPERS = (
    CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR, CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR,
    CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
)  # fmt: skip
WRITTEN_CASTS = WRAPPERS[2:]
RECORDS = (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.CLASS_TEMPLATE)
MOST_NODES = 1_500_000
_MOST_SAID = 1000
"""Letters of one mistake that are told: a source may write its own."""
# what libclang 18 exports and its Python side does not declare
_lib: Any = cindex.conf.lib
for _name, _takes, _gives in (
    ("clang_getCursorBinaryOperatorKind", cindex.Cursor, c_int),
    ("clang_getCursorUnaryOperatorKind", cindex.Cursor, c_int),
    ("clang_Cursor_Evaluate", cindex.Cursor, cindex.c_object_p),
    ("clang_EvalResult_getKind", cindex.c_object_p, c_int),
    ("clang_EvalResult_getAsLongLong", cindex.c_object_p, c_longlong),
    ("clang_EvalResult_getAsDouble", cindex.c_object_p, c_double),
    ("clang_EvalResult_dispose", cindex.c_object_p, None),
):
    getattr(_lib, _name).argtypes, getattr(_lib, _name).restype = [_takes], _gives


def _converts(cursor: ClangCursor) -> bool:
    """Whether an expression is a number of any width as one of C++."""
    while cursor.kind == CursorKind.UNEXPOSED_EXPR:
        inner = [child for child in cursor.get_children() if child.kind.is_expression()]
        if len(inner) != 1:
            return False
        cursor = inner[0]
    target = cursor.referenced if cursor.kind == CursorKind.CALL_EXPR else None
    return target is not None and target.kind == CursorKind.CONVERSION_FUNCTION


def _alike(one: Any, other: Any) -> bool:
    """Whether two types are the same number, `const` or not: that is no cast."""
    return one.get_canonical().spelling.removeprefix("const ") == other.get_canonical().spelling.removeprefix("const ")


class TooLarge(Exception):
    pass


class SyntaxReader(IntegerReader):
    """One translation unit's functions, tables and types as nested lists: [kind, place, ...]."""

    def __init__(self, files: set[str]) -> None:
        super().__init__(files)
        self.nodes = 0

    def whole(self, root: ClangCursor) -> list[SyntaxList]:
        """All that a unit declares; of templates, what its calls make of them."""
        found = self.unit(root)
        while self.made:
            found.append(self.function(self.made.pop()))
        return found

    def unit(self, root: ClangCursor) -> list[SyntaxList]:
        found: list[SyntaxList] = []
        for cursor in root.get_children():
            if cursor.location.file is None or cursor.location.file.name not in self.files:
                continue
            if cursor.kind in (CursorKind.LINKAGE_SPEC, CursorKind.NAMESPACE, CursorKind.UNEXPOSED_DECL):
                found += self.unit(cursor)
            elif cursor.kind == CursorKind.FUNCTION_DECL:
                found.append(self.function(cursor))
            elif cursor.kind == CursorKind.VAR_DECL:
                found += self.declarations(cursor)
            elif cursor.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL):
                found.append(self.record(cursor))
                methods = (CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR)
                found += [self.function(c) for c in cursor.get_children() if c.kind in methods and c.is_definition()]
        return found

    def place(self, cursor: ClangCursor) -> list[Any]:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise TooLarge
        location = cursor.location
        return [location.file.name if location.file else "", location.line, location.column]

    def bad(self, cursor: ClangCursor, what: str) -> SyntaxList:
        return ["bad", self.place(cursor), what]

    def function(self, cursor: ClangCursor) -> SyntaxList:
        children = list(cursor.get_children())
        name, place = self.called_as(cursor), self.place(cursor)
        parameters: list[SyntaxList] = []
        if cursor.kind in (CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR) and not cursor.is_static_method():
            own = self.leaves(cursor.semantic_parent.type) or []
            parameters += [["this" + suffix, ["reference", type_], place] for suffix, type_ in own]
        if self.paths(cursor.result_type) is not None:
            given = self.leaves(cursor.result_type) or []
            parameters += [["return" + suffix, ["reference", type_], place] for suffix, type_ in given]
        for child in children:
            if child.kind == CursorKind.PARM_DECL:
                parts = self.leaves(child.type) or [("", self.type(child.type))]
                parameters += [[child.spelling + suffix, type_, self.place(child)] for suffix, type_ in parts]
        body = next((child for child in children if child.kind == CursorKind.COMPOUND_STMT), None)
        read = self.statement(body) if body is not None else None
        if read is not None and cursor.kind == CursorKind.CONSTRUCTOR:
            read[3] = [*self.first_values(cursor, children), *read[3]]
        return ["function", place, name, parameters, self.type(cursor.result_type), given_constants(cursor), read]

    def first_values(self, cursor: ClangCursor, children: list[ClangCursor]) -> list[SyntaxList]:
        """What a constructor sets its fields to before its body: what these say themselves, where it says no more."""
        set_here = {f".{one.spelling}": value for one, value in itertools.pairwise(children)
                    if one.kind == CursorKind.MEMBER_REF}  # fmt: skip
        found: list[SyntaxList] = []
        for field, value in {**dict(default_values(cursor.semantic_parent.type)), **set_here}.items():
            place = self.place(value)
            target = ["name", place, f"this{field}"]
            pair = ["binary", place, "=", target, self.expression(value), ["int", 32, True]]
            found.append(["expression", place, pair])
        return found

    def record(self, cursor: ClangCursor) -> SyntaxList:
        children = list(cursor.get_children())
        fields = [[c.spelling, self.type(c.type)] for c in children if c.kind == CursorKind.FIELD_DECL]
        virtual = any(c.kind == CursorKind.CXX_METHOD and c.is_virtual_method() for c in children)
        return ["record", self.place(cursor), cursor.spelling, fields, virtual]

    def type(self, type_: Any) -> SyntaxList:
        canonical = type_.get_canonical()
        kind = canonical.kind
        if kind == TypeKind.ENUM:
            kind = canonical.get_declaration().enum_type.get_canonical().kind
        if kind in INTEGERS:
            return ["int", *INTEGERS[kind]]
        if kind in (TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.HALF, TypeKind.VOID):
            return [{TypeKind.HALF: "half"}.get(kind, kind.name.lower())]
        if kind == TypeKind.CONSTANTARRAY:
            return ["array", canonical.element_count, self.type(canonical.element_type)]
        if kind == TypeKind.INCOMPLETEARRAY:
            return ["array", None, self.type(canonical.element_type)]
        if kind in (TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):
            return ["pointer" if kind == TypeKind.POINTER else "reference", self.type(canonical.get_pointee())]
        name = canonical.spelling.removeprefix("const ")
        if name == "_Float16":
            return ["half"]
        if name.startswith("hls::stream<"):
            return stream_of(canonical, self.type(canonical.get_template_argument_type(0)))
        if name == "ap_int<1>":  # 0 and -1: one bit is read as 0 and 1
            return ["named", name]
        if name.startswith(("ap_int<", "ap_uint<")) and name[name.index("<") + 1 : -1].isdigit():
            return ["int", int(name[name.index("<") + 1 : -1]), name.startswith("ap_int")]
        if name.startswith(("ap_fixed<", "ap_ufixed<")) and name[name.index("<") + 1 :].split(",")[0].isdigit():
            return ["fixed", int(name[name.index("<") + 1 :].split(",")[0]), name.startswith("ap_fixed")]
        return ["named", name]

    def expression(self, cursor: ClangCursor) -> SyntaxList:
        kind = cursor.kind
        if kind in WRAPPERS:
            inner = [child for child in cursor.get_children() if child.kind.is_expression()]
            if kind in WRITTEN_CASTS:  # what stands before the value are arguments of the type's template
                inner = inner[-1:]
            if len(inner) != 1:
                return self.bad(cursor, "a cast of several values")
            if kind == CursorKind.UNEXPOSED_EXPR and _converts(inner[0]):
                return self.expression(inner[0])  # numbers of any width are computed with as they are
            if kind == CursorKind.UNEXPOSED_EXPR and _alike(cursor.type, inner[0].type):
                return self.expression(inner[0])
            return self.cast(cursor, self.expression(inner[0]))
        if kind in (CursorKind.INTEGER_LITERAL, CursorKind.CHARACTER_LITERAL, CursorKind.FLOATING_LITERAL):
            return self.literal(cursor)
        if kind == CursorKind.CXX_BOOL_LITERAL_EXPR:
            return self.literal(cursor)
        if kind == CursorKind.DECL_REF_EXPR:
            target = cursor.referenced
            if target is not None and target.kind == CursorKind.ENUM_CONSTANT_DECL:
                return ["literal", self.place(cursor), target.enum_value, ["int", 32, True]]
            of_template = not cursor.spelling  # a constant argument of a template
            if of_template or (target is not None and target.semantic_parent.kind in RECORDS):
                return self.literal(cursor)
            return ["name", self.place(cursor), cursor.spelling]
        if kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
            operands = list(cursor.get_children())
            wanted = self.paths(cursor.type)
            if wanted is not None:
                return self.assigned(cursor, operands[0], operands[1], wanted)
            left, right = map(self.expression, operands)
            sign = BINARY.get(_lib.clang_getCursorBinaryOperatorKind(cursor), "?")
            return ["binary", self.place(cursor), sign, left, right, self.type(cursor.type)]
        if kind == CursorKind.UNARY_OPERATOR:
            sign = UNARY.get(_lib.clang_getCursorUnaryOperatorKind(cursor), "?")
            return [
                "unary",
                self.place(cursor),
                sign,
                self.expression(next(iter(cursor.get_children()))),
                self.type(cursor.type),
            ]
        if kind == CursorKind.CONDITIONAL_OPERATOR:
            parts = [self.expression(child) for child in cursor.get_children()]
            return ["choice", self.place(cursor), *parts, self.type(cursor.type)]
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            base, index = (self.expression(child) for child in cursor.get_children())
            return ["index", self.place(cursor), base, index]
        if kind == CursorKind.CALL_EXPR:
            return self.call(cursor)
        if kind == CursorKind.MEMBER_REF_EXPR:
            found = self.ref(cursor)
            return (
                found.tree(self.place(cursor), ()) if found is not None else self.bad(cursor, "a field of no variable")
            )
        if kind == CursorKind.INIT_LIST_EXPR:
            return ["list", self.place(cursor), [self.expression(child) for child in cursor.get_children()]]
        if kind == CursorKind.CXX_UNARY_EXPR:  # sizeof
            return self.literal(cursor)
        if kind == CursorKind.STRING_LITERAL:
            return ["text", self.place(cursor), cursor.spelling]
        return self.bad(cursor, kind.name.lower().replace("_", " "))

    def cast(self, cursor: ClangCursor, inner: SyntaxList) -> SyntaxList:
        target = self.type(cursor.type)
        if target[0] in ("int", "float", "double", "half", "fixed"):
            kept = lowest_bit(self.place(cursor), inner) if is_one_bit(cursor.type) else inner
            return ["cast", self.place(cursor), target, kept]
        return inner

    def literal(self, cursor: ClangCursor) -> SyntaxList:
        result = _lib.clang_Cursor_Evaluate(cursor)
        kind = _lib.clang_EvalResult_getKind(result)
        if kind == 1:
            value: int | float = _lib.clang_EvalResult_getAsLongLong(result)
        else:
            value = _lib.clang_EvalResult_getAsDouble(result)
        _lib.clang_EvalResult_dispose(result)
        type_ = self.type(cursor.type)
        if type_[0] == "int" and not type_[2] and value < 0:
            value += 1 << 64  # the library gives it with a sign
        return ["literal", self.place(cursor), value, type_]

    def known(self, cursor: ClangCursor) -> SyntaxList | None:
        """A call that the compiler works out: an integer, since it rounds floats as its host does."""
        result = _lib.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        whole = _lib.clang_EvalResult_getKind(result) == 1
        _lib.clang_EvalResult_dispose(result)
        return self.literal(cursor) if whole else None

    def call(self, cursor: ClangCursor) -> SyntaxList:
        children = list(cursor.get_children())
        called = cursor.spelling
        arguments = given_to(cursor)
        target = cursor.referenced
        if target is not None and is_constexpr(target) and (known := self.known(cursor)) is not None:
            return known
        of_record = self.of_record(cursor, called, arguments, children)
        if of_record is not None:
            return of_record
        inside = [child for child in children if child.kind.is_expression()]
        if not called and target is None and len(inside) == 1:  # a copy that the compiler leaves out
            return self.cast(cursor, self.expression(inside[0]))
        if target is not None and target.kind == CursorKind.CONSTRUCTOR:
            type_ = self.type(cursor.type)
            if len(arguments) == 1:
                return self.cast(cursor, self.expression(arguments[0]))
            return ["construct", self.place(cursor), type_, [self.expression(a) for a in arguments]]
        if target is not None and target.kind == CursorKind.CONVERSION_FUNCTION:
            return self.expression(next(iter(children[0].get_children())))
        of_integer = self.of_integer(cursor, called, arguments, children)
        if of_integer is not None:
            return of_integer
        if called.startswith("operator"):
            return ["operator", self.place(cursor), called[8:], [self.expression(a) for a in arguments]]
        if children and children[0].kind == CursorKind.MEMBER_REF_EXPR:
            inner = list(children[0].get_children())
            if inner:
                return [
                    "method",
                    self.place(cursor),
                    self.expression(inner[0]),
                    called,
                    [self.expression(a) for a in arguments],
                ]
        name = self.called_as(target) if target is not None else called
        values = [tree for a in arguments for tree in self.argument(a)]
        return ["call", self.place(cursor), name, values, [], self.type(cursor.type)]


def _limit(what: int, most: int) -> None:
    """At most so much; less where whoever started this process is limited to less."""
    _, hard = resource.getrlimit(what)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (least, least))


def _said(one: Any) -> tuple[str, bool]:
    """A mistake's words, and whether all of them are the source's own."""
    return one.spelling[:_MOST_SAID], one.category_name == "User-Defined Issue"


def main() -> None:
    asked = json.load(sys.stdin)
    _limit(resource.RLIMIT_AS, asked["memory"])
    _limit(resource.RLIMIT_CPU, asked["seconds"])
    _limit(resource.RLIMIT_FSIZE, 0)
    sys.setrecursionlimit(4000)
    index = cindex.Index.create()
    texts = list(asked["texts"].items())
    macros_too: int = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    unit = index.parse(asked["main"], asked["arguments"], texts, macros_too)
    diagnostics = [
        [d.location.file.name if d.location.file else "", d.location.line, d.location.column, *_said(d)]
        for d in unit.diagnostics
        if d.severity >= cindex.Diagnostic.Error
    ]
    foreign = [one for one in unit.get_includes() if one.include.name not in asked["texts"]]
    if foreign:  # fence.py refuses them; what it did not see ends here, with nothing of the file
        at = foreign[0].location
        said = "an include of a file that was not given"
        diagnostics = [[at.file.name if at.file else "", at.line, at.column, said, False]]
    answer: dict[str, Any] = {"errors": diagnostics[:50], "unit": [], "macros": {}}
    if not diagnostics:
        own = set(asked["own"])
        answer["macros"] = named_members(unit.cursor, own) | macros(unit.cursor, own)
        try:
            answer["unit"] = SyntaxReader(set(asked["own"])).whole(unit.cursor)
        except (TooLarge, RecursionError):
            answer["errors"] = [[asked["main"], 1, 1, "the source is too large or nested too deeply", False]]
    # libclang threads may still hold stdout's buffer when the process ends: write and leave at once
    sys.stdout.write(json.dumps(answer, separators=(",", ":")))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
